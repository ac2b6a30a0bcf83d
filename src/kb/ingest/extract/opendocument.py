"""The files of OpenDocument: a ZIP archive with the text in one member, and what the file says of itself in another."""

import posixpath
from collections.abc import Iterator
from functools import cached_property

from lxml import etree

from kb.core.errors import JobFailure
from kb.core.types import Json
from kb.ingest.extract.archive import Archive
from kb.ingest.extract.pictures import HeadingPath, Shown, kind_of
from kb.ingest.extract.tables import markdown_table
from kb.ingest.extract.tidy import detail, one_line, tidy
from kb.ingest.extract.titles import real_title
from kb.ingest.extract.tools import Source
from kb.ingest.extract.xml import attribute, local

CONTENT, STYLES, META, MANIFEST = "content.xml", "styles.xml", "meta.xml", "META-INF/manifest.xml"
DETAILS = {"initial-creator": "author", "creator": "author", "subject": "subject", "keyword": "keywords"}
DETAILS["description"] = "description"
MAX_SPACES = 100  # that one element stands for
MAX_REPEATED = 64  # columns of a table in a text
MAX_LEVEL = 6  # of a heading
BREAKS = {"line-break": "\n", "tab": "\t"}
# What is no text of the document: deleted passages, and the indexes and numbers that a program makes.
SKIPPED = (
    "tracked-changes",
    "forms",
    "sequence-decls",
    "variable-decls",
    "user-field-decls",
    "binary-data",
    "settings",
)
DRAWING = "{urn:oasis:names:tc:opendocument:xmlns:drawing:1.0}"
NOTES = ("note", "annotation")
PICTURES = "Pictures"  # the folder that they are in
VECTORS = ("svg", "svm", "emf", "wmf")  # a second copy of a picture, of the shapes that it was drawn with


class OpenDocument(Archive):
    def __init__(self, source: Source) -> None:
        super().__init__(source)
        if self.has(MANIFEST) and next(self.xml(MANIFEST).iter("{*}encryption-data"), None) is not None:
            raise JobFailure("encrypted", "The file is protected with a password.")

    def body(self) -> etree._Element:
        """What the document holds, without its styles."""
        found = next(self.xml(CONTENT).iter("{*}body"), None)
        if found is None or not len(found):
            raise JobFailure("corrupt", "The file has no content.")
        return found[0]

    def margins(self) -> Iterator[str]:
        """Headers and footers, each text once."""
        root = self.xml(STYLES) if self.has(STYLES) else etree.Element("none")
        found = (block for margin in root.iter("{*}header", "{*}footer") for block in blocks(margin))
        yield from dict.fromkeys(found)

    def pictures(self, element: etree._Element) -> Iterator[Shown]:
        """The pictures inside of an element, in order, each under its headings; none of a table that is text."""
        headings = HeadingPath()
        for found in element.iter("{*}h", "{*}frame"):
            if local(found) == "h":
                headings.enter(level_of(found), one_line("".join(runs(found, []))))
            elif found.find("{*}table") is None and next(found.iterancestors("{*}tracked-changes"), None) is None:
                copies = [posixpath.normpath(attribute(one, "href") or "") for one in found.iterchildren("{*}image")]
                held = sorted(filter(self.has, copies), key=lambda name: kind_of(name) in VECTORS)
                yield from (Shown(name, str(headings) or None) for name in held[:1])

    @cached_property
    def _details(self) -> list[tuple[str, str]]:
        elements = self.xml(META).iter() if self.has(META) else ()
        return [(local(element), detail(element.text)) for element in elements if detail(element.text)]

    @property
    def title(self) -> str | None:
        return real_title(dict(self._details).get("title"))

    @property
    def metadata(self) -> Json:
        found: dict[str, list[str]] = {}
        for name, value in self._details:
            if name in DETAILS:
                found.setdefault(DETAILS[name], []).append(value)
        return {name: ", ".join(dict.fromkeys(values)) for name, values in found.items()}


def blocks(element: etree._Element) -> Iterator[str]:
    """Headings, paragraphs, items and tables in order, as Markdown, however deeply they are wrapped."""
    for child in element:
        kind = local(child)
        if kind in ("p", "h"):
            yield from paragraph(child)
        elif kind == "table":
            yield table_text(child)
        elif kind == "list":
            yield "\n".join(items(child))
        elif kind in ("title", "desc"):  # the description of a picture
            if text := one_line("".join(child.itertext())):
                yield f"[{text}]"
        elif kind in NOTES:
            yield note_text(child)
        elif kind not in SKIPPED:
            yield from blocks(child)


def paragraph(element: etree._Element) -> Iterator[str]:
    """A paragraph or heading; notes and boxes in it follow it."""
    apart: list[etree._Element] = []
    text = tidy("".join(runs(element, apart)))
    if text and local(element) == "h":
        yield f"{'#' * level_of(element)} {' '.join(text.split())}"
    elif text:
        yield text
    for frame in apart:
        if local(frame) in NOTES:
            yield note_text(frame)
        else:
            yield from blocks(frame)


def level_of(heading: etree._Element) -> int:
    level = attribute(heading, "outline-level") or "1"
    return min(int(level) if level.isdigit() else 1, MAX_LEVEL)


def runs(element: etree._Element, apart: list[etree._Element]) -> Iterator[str]:
    """The characters of a paragraph in order. What stands beside its text is put into `apart`."""
    yield element.text or ""
    for child in element:
        kind = local(child)
        if kind == "s":
            count = attribute(child, "c") or "1"
            yield " " * min(int(count) if count.isdigit() else 1, MAX_SPACES)
        elif kind in BREAKS:
            yield BREAKS[kind]
        elif kind in NOTES or kind == "frame" or (str(child.tag).startswith(DRAWING) and kind != "a"):
            apart.append(child)
        elif kind not in SKIPPED and kind != "annotation-end":
            yield from runs(child, apart)
        yield child.tail or ""


def note_text(note: etree._Element) -> str:
    """A footnote or a comment, with who wrote it."""
    author = one_line("".join("".join(who.itertext()) for who in note.iterchildren("{*}creator")))
    bodies = list(note.iterchildren("{*}note-body")) or [note]
    text = " ".join(" ".join(filter(None, blocks(body))) for body in bodies)
    return "" if not text else f"[{author}: {one_line(text)}]" if author else f"[{one_line(text)}]"


def items(element: etree._Element, depth: int = 0) -> Iterator[str]:
    """The items of a list, those of lists inside further in."""
    for item in element.iterchildren("{*}list-item", "{*}list-header"):
        marker = f"{'  ' * depth}- "
        for child in item:
            if local(child) == "list":
                yield from items(child, depth + 1)
                continue
            for block in blocks_of(child):
                yield block if block.startswith("#") else marker + block
                marker = "  " * (depth + 1)


def blocks_of(element: etree._Element) -> Iterator[str]:
    """The blocks of one element, itself included."""
    if local(element) in ("p", "h"):
        yield from filter(None, paragraph(element))
    else:
        yield from filter(None, blocks(element))


def table_text(table: etree._Element) -> str:
    rows: list[list[str]] = []
    for row in rows_of(table):
        cells: list[str] = []
        for cell in row.iterchildren("{*}table-cell", "{*}covered-table-cell"):
            # What is merged stands in every cell that it covers: a row can be read on its own.
            text = " ".join(filter(None, blocks(cell)))
            if local(cell) == "covered-table-cell" and not text:
                text = covered(cells, rows)
            count = attribute(cell, "number-columns-repeated") or "1"
            cells += [text] * min(int(count) if count.isdigit() else 1, MAX_REPEATED)
        rows.append(cells)
    return markdown_table(rows)


def covered(cells: list[str], rows: list[list[str]]) -> str:
    """What a cell to the left or above says that goes on in this one."""
    if cells:
        return cells[-1]
    return rows[-1][0] if rows and rows[-1] else ""


def rows_of(element: etree._Element) -> Iterator[etree._Element]:
    for child in element:
        if local(child) == "table-row":
            yield child
        elif local(child) in ("table-header-rows", "table-rows", "table-row-group"):
            yield from rows_of(child)
