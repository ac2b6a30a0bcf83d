"""DOCX: the text in order as Markdown, with headings, tables, notes and comments where they belong.

One part: a DOCX file knows no pages. Headers and footers, which stand on every page, follow once at the end, and then
what OCR reads in its pictures.
"""

from collections.abc import Iterator
from dataclasses import replace

from lxml import etree

from kb.ingest.extract.drawings import alt_texts, drawing_texts
from kb.ingest.extract.hidden import MARKED, marked, separated, with_hidden, without_marks
from kb.ingest.extract.numbering import Numbering
from kb.ingest.extract.ooxml import Package
from kb.ingest.extract.part import EMPTY, Outcome, Part
from kb.ingest.extract.pictures import HeadingPath, Pictures, Shown
from kb.ingest.extract.styles import Styles
from kb.ingest.extract.tables import markdown_table
from kb.ingest.extract.tidy import tidy
from kb.ingest.extract.tools import Ocr, Source
from kb.ingest.extract.xml import attribute, child_value, local, relation_id

# Text that is not there: deleted, moved away, a field's formula, a second copy for old programs.
SKIPPED = {"del", "moveFrom", "instrText", "delText", "Fallback", "pPr", "rPr", "sectPr", "tblPr", "tcPr", "trPr"}
CHARACTERS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-", "ptab": "\t"}
# Equations on one line: x^2, (a)/(b), √(c).
BEFORE = {"sup": "^", "sub": "_", "num": "(", "den": "/(", "rad": "√("}
AFTER = {"num": ")", "den": ")", "rad": ")", "oMath": " "}
WRAPPERS = ("sdt", "sdtContent", "ins", "customXml", "AlternateContent", "Choice")
MAX_SPAN = 64  # columns
NOTES = {"footnoteReference": "footnotes", "endnoteReference": "endnotes", "commentReference": "comments"}


def parts(source: Source, ocr: Ocr) -> Iterator[Part]:
    package = Package(source)
    name = package.main()
    body = Body(package, name)
    blocks = [*body.blocks(package.xml(name)), *body.surroundings()]
    text, hidden = separated("\n\n".join(filter(None, blocks)), body.ways)
    outcome = Outcome() if text else EMPTY
    part = Part("text", text, outcome=outcome, title=package.title or body.title, metadata=package.metadata)
    yield from with_hidden(part, hidden)
    pictures = Pictures(package, ocr)
    yield from pictures.on(part, body.pictures)
    yield from pictures.elsewhere(package.pictures())


class Body:
    def __init__(self, package: Package, name: str) -> None:
        self._package = package
        self._name = name
        self.title: str | None = None  # the first paragraph that looks like one
        self.ways: set[str] = set()  # in which text is hidden
        self.pictures: list[Shown] = []
        self._headings = HeadingPath()
        self._styles = Styles(package, name)
        self._numbering = Numbering(package, name)
        self._paragraph_style = ""
        self._notes = {kind: self._read_notes(kind) for kind in NOTES.values()}
        self._relations = package.relations(name)

    def blocks(self, element: etree._Element) -> Iterator[str]:
        """Paragraphs and tables, in order, however deeply they are wrapped."""
        for child in element:
            kind = local(child)
            if kind == "p":
                yield from self._paragraph(child)
            elif kind == "tbl":
                yield self._table(child)
            elif kind not in SKIPPED:
                yield from self.blocks(child)

    def surroundings(self) -> Iterator[str]:
        """Headers and footers, each text once, and what charts and diagrams say."""
        seen = set()
        self._headings = HeadingPath()
        for name in self._package.related(self._name, "header", "footer"):
            self._relations = self._package.relations(name)
            for block in self.blocks(self._package.xml(name)):
                if block not in seen:
                    seen.add(block)
                    yield block
        yield from drawing_texts(self._package, self._name)

    def _paragraph(self, element: etree._Element) -> Iterator[str]:
        notes: list[str] = []
        boxes: list[etree._Element] = []
        self._paragraph_style = self._styles.of_paragraph(element)
        text = tidy("".join(self._runs(element, notes, boxes)))
        if text:
            yield self._dressed(element, text)
        for box in boxes:
            yield from self.blocks(box)
        yield from notes

    def _dressed(self, element: etree._Element, text: str) -> str:
        level, item = self._styles.level(element), self._styles.item(element)
        label = self._numbering.label(*item) if item else ""
        if level:
            self.title = self.title or MARKED.sub("", text).strip() or None
            heading = " ".join(filter(None, [label.rstrip("-"), *text.split()]))
            self._headings.enter(level, MARKED.sub("", heading).strip())
            return f"{'#' * level} {heading}"
        return f"{label} {text}" if label else text

    def _runs(self, element: etree._Element, notes: list[str], boxes: list[etree._Element]) -> Iterator[str]:
        for child in element:
            kind = local(child)
            if kind == "t":  # of a run, or of an equation
                yield without_marks(child.text or "")
            elif kind == "r" and (way := self._styles.way_hidden(child, self._paragraph_style)):
                self.ways.add(way)
                before = len(self.pictures)
                yield marked("".join(self._runs(child, notes, boxes)))
                self.pictures[before:] = [replace(one, hidden=True) for one in self.pictures[before:]]
            elif kind in CHARACTERS:
                yield CHARACTERS[kind]
            elif kind == "txbxContent":
                boxes.append(child)
            elif kind in NOTES:
                notes.append(self._notes[NOTES[kind]].pop(attribute(child, "id") or "", ""))
            elif kind == "docPr":
                yield from alt_texts(child)
            elif kind in ("blip", "imagedata"):
                self._picture(attribute(child, "embed") or relation_id(child))
            elif kind not in SKIPPED:
                yield BEFORE.get(kind, "")
                yield from self._runs(child, notes, boxes)
                yield AFTER.get(kind, "")

    def _picture(self, relation: str) -> None:
        if (found := self._relations.get(relation)) and self._package.has(found.target):
            self.pictures.append(Shown(found.target, str(self._headings) or None))

    def _table(self, element: etree._Element) -> str:
        rows: list[list[str]] = []
        for row in descendants(element, "tr"):
            cells: list[str] = []
            for cell in descendants(row, "tc"):
                # What is merged stands in every cell that it covers: a row can be read on its own.
                width, goes_on = span(cell)
                above = rows[-1][len(cells)] if rows and goes_on and len(cells) < len(rows[-1]) else ""
                cells += [above or " ".join(self.blocks(cell))] * width
            rows.append(cells)
        return markdown_table(rows)

    def _read_notes(self, kind: str) -> dict[str, str]:
        """Notes by id; separators have no text."""
        found: dict[str, str] = {}
        for name in self._package.related(self._name, kind):
            self._relations = self._package.relations(name)
            for note in self._package.xml(name):
                author = attribute(note, "author")
                blocks = (tidy("".join(self._runs(paragraph, [], []))) for paragraph in note.iter("{*}p"))
                text = " ".join(" ".join(blocks).split())
                if text:
                    found[attribute(note, "id") or ""] = f"[{author}: {text}]" if author else f"[{text}]"
        return found


def descendants(element: etree._Element, kind: str) -> Iterator[etree._Element]:
    """A table's rows or a row's cells, wrapped in content controls or not, but none of a table inside."""
    for child in element:
        if local(child) == kind:
            yield child
        elif local(child) in WRAPPERS:
            yield from descendants(child, kind)


def span(cell: etree._Element) -> tuple[int, bool]:
    """How many columns a cell covers, and whether it goes on with the one above."""
    properties = cell.find("{*}tcPr")
    if properties is None:
        return 1, False
    columns = child_value(properties, "gridSpan") or "1"
    goes_on = properties.find("{*}vMerge") is not None and child_value(properties, "vMerge") != "restart"
    return min(int(columns), MAX_SPAN) if columns.isdigit() else 1, goes_on
