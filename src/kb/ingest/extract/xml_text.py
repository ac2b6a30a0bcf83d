"""XML of any kind: what stands between the tags, never the tags.

Running text (books, articles: words among elements) becomes paragraphs under the titles of their sections. All else is
data (feeds, settings, outlines): every value and attribute on a line with its path, as in JSON. What is damaged or too
large for a tree loses its tags, and nothing else.
"""

import html
import re
from collections import Counter
from collections.abc import Iterator
from itertools import groupby

from html_to_markdown import convert
from lxml import etree

from kb.core.errors import JobFailure
from kb.core.values import Anchor
from kb.ingest.extract.html import OPTIONS
from kb.ingest.extract.json_text import HEADING, Leaf, Path, lines, pieces, shared_path, shown
from kb.ingest.extract.part import EMPTY, Outcome, Part
from kb.ingest.extract.svg import DECLARATION
from kb.ingest.extract.tidy import one_line, tidy
from kb.ingest.extract.titles import real_title
from kb.ingest.extract.unstructured import Unstructured
from kb.ingest.extract.xml import attribute, local, parse

MAX_CHARACTERS = 8 * 2**20  # as a tree, it takes many times that
RUNNING = 0.05  # of the elements with text: paragraphs, and those that have words and elements side by side
PARAGRAPHS = ("p", "para", "simpara")
TITLES = ("title", "head", "h")  # a child that names its section
NAMES = ("title", "book-title", "article-title")  # of the whole document
NAMED_WITHIN = 200  # elements
FLAT_OFFICE = ("document", "wordDocument")  # their text is in one child, beside styles and settings
NO_WORDS = ("binary", "binary-data", "binData", "fldData", "instrText")  # encoded bytes, and codes of Word's fields
NO_TEXT = (*NO_WORDS, "stylesheet", "style", "script")
LEFT_OUT = "running text; what stands in attributes, stylesheets and embedded files is left out"
NO_DATA = ("schemaLocation", "noNamespaceSchemaLocation", "space")
TAG = re.compile(r"<(?:[/?!]?[A-Za-z][^<>]*|!\[CDATA\[|!--)>?|\]\]>|-->")
# Feeds hold pages as text: with their tags written as entities.
MARKUP = re.compile(r"<(?:p|br|div|a|img|b|i|em|strong|span|ul|ol|li|h[1-6]|table|blockquote|pre|code)\b[^<>]*>", re.I)

Block = tuple[str, str]  # the path of titles that it stands under, and its text


def xml_text(text: str) -> Iterator[Part]:
    """The parts of an XML text. Raises Unstructured if it has no tags at all."""
    if not TAG.search(text):
        raise Unstructured("there is no XML in it")
    if len(text) > MAX_CHARACTERS:
        return without_tags(text, f"XML of more than {MAX_CHARACTERS // 2**20} million characters has no tree")
    try:
        root = parse(DECLARATION.sub("", text, count=1).encode("utf-8", "replace"))
    except JobFailure as failure:
        if failure.code != "corrupt":
            raise
        return without_tags(text, failure.message[0].lower() + failure.message[1:])
    title = title_of(root)
    body = root.find("{*}body") if local(root) in FLAT_OFFICE else None
    if body is not None:
        return section_parts(body, title)
    return section_parts(root, title) if is_running(root) else value_parts(root, title)


def without_tags(text: str, why: str) -> Iterator[Part]:
    said = tidy(html.unescape(TAG.sub(" ", text)))
    yield Part("text", said, outcome=Outcome("ok", f"read without its tags: {why}") if said else EMPTY)


def is_running(root: etree._Element) -> bool:
    with_text = mixed = 0
    for element in root.iter("*"):
        if says(element):
            with_text += 1
            mixed += len(element) > 0 or local(element) in PARAGRAPHS
    return mixed > RUNNING * with_text


def says(element: etree._Element) -> bool:
    """Whether an element has words of its own, apart from those in the elements inside of it."""
    return any(text and not text.isspace() for text in (element.text, *(child.tail for child in element)))


def title_of(root: etree._Element) -> str | None:
    for _, element in zip(range(NAMED_WITHIN), root.iter("*"), strict=False):
        if local(element) in NAMES and (title := real_title(words(element))):
            return title
    return None


def words(element: etree._Element) -> str:
    """All the text in an element, as it stands there."""
    found = [element.text or attribute(element, "alt") or ""]
    for child in element:
        if isinstance(child.tag, str) and local(child) not in NO_WORDS:
            found.append(words(child))
        elif isinstance(child, etree._Entity):
            found.append(html.unescape(child.text or ""))
        found.append(child.tail or "")
    return "".join(found)


def section_parts(root: etree._Element, title: str | None) -> Iterator[Part]:
    for heading, blocks in groupby(section_blocks(root, ""), key=lambda block: block[0]):
        text = "\n\n".join(said for _, said in blocks)
        outcome = Outcome("ok", LEFT_OUT) if text else EMPTY
        yield Part("text", text, Anchor(heading=heading or None), outcome, title=title)


def section_blocks(element: etree._Element, heading: str) -> Iterator[Block]:
    """The paragraphs in an element; a title among its children names all that stands beside it."""
    if says(element):
        yield from ((heading, said) for said in paragraphs(element))
        return
    if not len(element) and (alternative := one_line(attribute(element, "alt") or "")):
        yield heading, alternative
    for child in element.iterchildren("*"):
        if local(child) in TITLES and (title := one_line(words(child))):
            heading = HEADING.join(filter(None, (heading, title)))
            yield heading, title
        elif local(child) not in NO_TEXT:
            yield from section_blocks(child, heading)


def paragraphs(element: etree._Element) -> Iterator[str]:
    """An element with words of its own: elements among them are spans of a line, unless they hold several others."""
    line = [element.text or ""]
    for child in element:
        if isinstance(child, etree._Entity):
            line.append(html.unescape(child.text or ""))
        elif isinstance(child.tag, str) and len(child) > 1 and not says(child):
            yield from filter(None, [plain("".join(line))])
            line = []
            yield from (said for _, said in section_blocks(child, ""))
        elif isinstance(child.tag, str) and local(child) not in NO_WORDS:
            line.append(words(child))
        line.append(child.tail or "")
    yield from filter(None, [plain("".join(line))])


def value_parts(root: etree._Element, title: str | None) -> Iterator[Part]:
    found = list(values(root, ()))
    outcome = Outcome("ok", "1 value with its path" if len(found) == 1 else f"{len(found)} values with their paths")
    for piece in pieces(found):
        shared = shared_path(piece)
        heading = shown(shared, HEADING) or None
        yield Part("text", lines(piece, len(shared)), Anchor(heading=heading), outcome, title=title)


def values(element: etree._Element, path: Path) -> Iterator[Leaf]:
    """The attributes and texts in an element, in order. The root's name says nothing, and is left out."""
    for key, value in element.attrib.items():
        name = str(key).rpartition("}")[2]
        if name not in NO_DATA and (said := one_line(str(value))):
            yield Leaf((*path, name), said)
    if says(element) or not len(element):
        said = plain(words(element))
        if said or (path and not element.attrib):  # that it is there says something
            yield Leaf(path, said)
        return
    children = list(element.iterchildren("*"))
    if local(element) == "dict":  # of a property list: names and values take turns
        for key, value in zip(children[::2], children[1::2], strict=False):
            is_sign = local(value) in ("true", "false")
            yield from values(value, (*path, one_line(words(key)), *((local(value),) if is_sign else ())))
        return
    several = Counter(map(local, children))
    met: Counter[str] = Counter()
    for child in children:
        name = local(child)
        number = (f"[{met[name]}]",) if several[name] > 1 else ()
        met[name] += 1
        yield from values(child, (*path, name, *number))


def plain(text: str) -> str:
    """A value without markup that is written in it."""
    return tidy(convert(text, OPTIONS).content or "") if MARKUP.search(text) else tidy(text)
