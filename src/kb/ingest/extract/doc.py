"""DOC: the text of an old Word document as Markdown, with headings and tables; notes, comments and boxes follow it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from kb.core.errors import JobFailure
from kb.ingest.extract.compound import Compound
from kb.ingest.extract.doc_pieces import Lengths, Run, WordText
from kb.ingest.extract.hidden import MARKED, marked, separated, with_hidden, without_marks
from kb.ingest.extract.part import EMPTY, Outcome, Part
from kb.ingest.extract.tables import markdown_table
from kb.ingest.extract.tidy import tidy
from kb.ingest.extract.tools import Ocr, Source

PARAGRAPH, CELL, LINE, PAGE = "\r", "\a", "\v", "\f"
FIELD, RESULT, FIELD_END = "\x13", "\x14", "\x15"  # around a field: how it is made, and what it shows
MARKS = re.compile(r"[\r\a\f\x13\x14\x15]")
CHARACTERS = {
    "\x1e": "\u2011",
    "\x1f": "",
    "\v": "\n",
    "\x01": "",
    "\x02": "",
    "\x05": "",
    "\x08": "",
    "\x03": "",
    "\x04": "",
}
SHOWN = str.maketrans(CHARACTERS)
LAST_HEADING = 6  # styles 1 to 9 are headings of these levels; more than six are text
ROW_END, VANISHES, DELETED = 0x2417, 0x083C, 0x0800  # properties
CUT = Outcome("ok", "the file says that it has more text than it has: it was cut off")


def parts(source: Source, _: Ocr) -> Iterator[Part]:
    file = Compound(source)
    main = file.stream("WordDocument")
    if not main:
        raise JobFailure("corrupt", "The file holds no document of Word.")
    word = WordText(main, (file.stream("0Table"), file.stream("1Table")))
    document = Document(word)
    blocks = document.read()
    text, hidden = separated("\n\n".join(filter(None, blocks)), document.ways)
    outcome = EMPTY if not text else Outcome() if document.is_whole else CUT
    title = file.title or document.heading
    yield from with_hidden(Part("text", text, outcome=outcome, title=title, metadata=file.metadata), hidden)


@dataclass(slots=True)
class Flow:
    """The blocks so far, and what is not complete yet."""

    blocks: list[str] = field(default_factory=list)
    line: list[str] = field(default_factory=list)
    row: list[str] = field(default_factory=list)
    table: list[list[str]] = field(default_factory=list)
    depth: list[bool] = field(default_factory=list)  # of each field around: whether its result is reached


class Document:
    def __init__(self, word: WordText) -> None:
        self._word = word
        self.heading: str | None = None  # the first one
        self.ways: set[str] = set()  # in which text is hidden
        self.is_whole = True

    def read(self) -> list[str]:
        """The main text, then notes, comments and boxes, then headers and footers, each of those once."""
        lengths = self._word.lengths
        flows = {kind: Flow() for kind in Lengths._fields}
        borders = iter(zip(Lengths._fields, lengths, strict=True))
        kind, left = next(borders)
        for text, place, width in self._words():
            at = 0
            while at < len(text):
                while left <= 0:
                    kind, left = next(borders, ("", len(text)))
                taken = text[at : at + left]
                if kind:
                    self._take(flows[kind], taken, place + at * width, width)
                at, left = at + len(taken), left - len(taken)
        self.is_whole = left <= 0 or kind != "main"
        for flow in flows.values():
            self._end_paragraph(flow, None)
            self._end_table(flow)
        notes = [f"[{block}]" for kind in ("footnotes", "comments", "endnotes") for block in flows[kind].blocks]
        margins = dict.fromkeys([*flows["margins"].blocks, *flows["margin_boxes"].blocks])
        return [*flows["main"].blocks, *notes, *flows["boxes"].blocks, *margins]

    def _words(self) -> Iterator[tuple[str, int, int]]:
        for piece in self._word.pieces():
            yield without_marks(piece.text), piece.start, piece.width

    def _take(self, flow: Flow, text: str, place: int, width: int) -> None:
        at = 0
        for mark in MARKS.finditer(text):
            self._say(flow, text[at : mark.start()], place + at * width, width)
            self._mark(flow, mark[0], place + mark.start() * width)
            at = mark.end()
        self._say(flow, text[at:], place + at * width, width)

    def _mark(self, flow: Flow, mark: str, place: int) -> None:
        if mark == FIELD:
            flow.depth.append(False)
        elif mark == RESULT and flow.depth:
            flow.depth[-1] = True
        elif mark == FIELD_END and flow.depth:
            flow.depth.pop()
        elif mark in (PARAGRAPH, PAGE):
            self._end_paragraph(flow, self._word.paragraphs.at(place))
        elif mark == CELL:
            self._end_cell(flow, self._word.paragraphs.at(place))

    def _say(self, flow: Flow, text: str, place: int, width: int) -> None:
        """Text between marks, in runs of the same properties."""
        if not all(flow.depth):
            return
        at = 0
        while at < len(text):
            run = self._word.characters.at(place + at * width)
            end = max(at + 1, (run.end - place) // width) if run else len(text)
            said = text[at:end].translate(SHOWN)
            at = end
            if run and run.properties.get(DELETED):
                continue
            if run and run.properties.get(VANISHES) == 1 and said.strip():
                self.ways.add("vanish")
                said = marked(said)
            flow.line.append(said)

    def _end_paragraph(self, flow: Flow, run: Run | None) -> None:
        text = tidy("".join(flow.line))
        flow.line = []
        if not text:
            return
        if run and run.properties.get(0x2416):  # a paragraph of a cell
            flow.line = [text, "\n"]
            return
        self._end_table(flow)
        if run and 1 <= run.style <= LAST_HEADING:
            self.heading = self.heading or MARKED.sub("", text).strip() or None
            text = f"{'#' * run.style} {' '.join(text.split())}"
        flow.blocks.append(text)

    def _end_cell(self, flow: Flow, run: Run | None) -> None:
        text = tidy("".join(flow.line))
        flow.line = []
        if run and run.properties.get(ROW_END):
            flow.table.append([*flow.row, text] if text else flow.row)
            flow.row = []
        else:
            flow.row.append(text)

    def _end_table(self, flow: Flow) -> None:
        table = markdown_table([*flow.table, flow.row] if flow.row else flow.table)
        flow.table, flow.row = [], []
        if table:
            flow.blocks.append(table)
