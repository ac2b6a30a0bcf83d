"""SVG: its title, its descriptions and every text in it, in the order of the file."""

from collections.abc import Iterator

from lxml import etree

from kb.ingest.extract.part import EMPTY, Outcome, Part
from kb.ingest.extract.tidy import one_line
from kb.ingest.extract.tools import Ocr, Source
from kb.ingest.extract.xml import attribute, local, parse

TOLD = ("text", "title", "desc", "foreignObject", "flowRoot")
APART = ("div", "p", "br", "flowPara")
SKIPPED = ("style", "script")


def parts(source: Source, _: Ocr) -> Iterator[Part]:
    root = parse(source.read_bytes())
    text = "\n".join(texts(root))
    title = next((one_line(all_text(child)) for child in root.iterchildren("{*}title")), "")
    yield Part("text", text, outcome=Outcome() if text else EMPTY, title=title or None)


def texts(element: etree._Element) -> Iterator[str]:
    if label := one_line(attribute(element, "aria-label") or ""):
        yield label
    for child in element.iterchildren("{*}*", "*"):
        if local(child) in TOLD:
            if text := one_line(all_text(child)):
                yield text
        elif local(child) not in SKIPPED:
            yield from texts(child)


def all_text(element: etree._Element) -> str:
    """Spans of one line belong together, those that are set to a place of their own do not."""
    pieces = [element.text or ""]
    for child in element:
        if isinstance(child.tag, str) and local(child) not in SKIPPED:
            apart = " " if attribute(child, "x") or attribute(child, "y") or local(child) in APART else ""
            pieces += [apart, all_text(child), apart]
        pieces.append(child.tail or "")  # also of a comment, an instruction, an entity
    return "".join(pieces)
