"""Elements of an HTML page that no browser shows, taken out of it.

What counts is what an element says itself, and what a rule for one class, id or kind of element says. Nothing is
fetched, no script runs, and what depends on the size or kind of the screen is not looked at.
"""

import re
from collections.abc import Iterator

from lxml import etree, html

from kb.ingest.extract.css import BACKGROUND, way_hidden
from kb.ingest.extract.hidden import Hidden
from kb.ingest.extract.tidy import tidy

# Without one of these there is nothing to look for, and the page is left as it is.
HINT = re.compile(
    r"\shidden[\s=>/]|display\s*:\s*none|visibility\s*:|opacity\s*:|transparent|font-size\s*:\s*[0.]|:\s*-\d{4}"
    r"|color\s*:\s*(?:white|#fff|rgb)",
    re.IGNORECASE,
)
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
CONDITIONAL = re.compile(r"@[^{;]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}")
RULE = re.compile(r"([^{}]+)\{([^{}]*)\}")
SELECTOR = re.compile(r"[.#]?[A-Za-z_][\w-]*")
SILENT = {"script", "style", "template", "noscript", "head", "title", "meta", "link"}
STYLED = "//*[@hidden or @style]"
STYLED_OR_NAMED = "//*"
MAX_RULES = 5000


def without_hidden(page: str) -> tuple[str, Hidden]:
    """A page without what is not shown of it, and the text of that."""
    if not HINT.search(page):
        return page, Hidden()
    try:
        root = html.document_fromstring(page, parser=html.HTMLParser(huge_tree=True))
    except (etree.LxmlError, ValueError):
        return page, Hidden()
    styles = COMMENT.sub("", "\n".join(style.text or "" for style in root.iter("style")))
    on_white = not BACKGROUND.search(styles.lower()) and root.find(".//link[@rel='stylesheet']") is None
    rules = hiding_rules(styles, on_white=on_white)
    found = Hidden()
    texts: list[str] = []
    for element, way in list(hidden_elements(root, rules, on_white=on_white)):
        text = tidy(" ".join(said(element)))
        if text:
            texts.append(text)
            found.ways.add(way)
        element.drop_tree()
    found.text = "\n".join(texts)
    return (html.tostring(root, encoding="unicode"), found) if found else (page, Hidden())


def hidden_elements(
    root: html.HtmlElement, rules: dict[str, str], *, on_white: bool
) -> Iterator[tuple[html.HtmlElement, str]]:
    """The outermost elements that are not shown, and in which way."""
    taken: set[html.HtmlElement] = set()
    for element in root.xpath(STYLED_OR_NAMED if rules else STYLED):
        if element.tag in SILENT or element.tag in ("html", "body"):
            continue
        way = way_of(element, rules, on_white=on_white)
        if way and not any(above in taken for above in element.iterancestors()):
            taken.add(element)
            yield element, way


def way_of(element: html.HtmlElement, rules: dict[str, str], *, on_white: bool) -> str | None:
    if "hidden" in element.attrib:
        return "not displayed"
    way = way_hidden(element.get("style") or "", on_white=on_white)
    if way is None and rules:
        names = (element.tag, f"#{element.get('id')}", *(f".{name}" for name in (element.get("class") or "").split()))
        way = next((rules[name] for name in names if name in rules), None)
    if way == "white" and any(has_background(above) for above in element.iterancestors()):
        return None
    return way


def has_background(element: html.HtmlElement) -> bool:
    return element.get("bgcolor") is not None or BACKGROUND.search((element.get("style") or "").lower()) is not None


def hiding_rules(styles: str, *, on_white: bool) -> dict[str, str]:
    """What hides, by its selector: a class, an id, or a kind of element."""
    found: dict[str, str] = {}
    for count, rule in enumerate(RULE.finditer(CONDITIONAL.sub("", styles))):
        way = way_hidden(rule[2], on_white=on_white)
        if way is None or count > MAX_RULES:
            continue
        for selector in rule[1].split(","):
            if SELECTOR.fullmatch(selector.strip()):
                found.setdefault(selector.strip(), way)
    return found


def said(element: html.HtmlElement) -> Iterator[str]:
    """The text of an element, without what never is text."""
    if isinstance(element.tag, str) and element.tag not in SILENT:
        yield element.text or ""
        for child in element:
            yield from said(child)
            yield child.tail or ""
