"""RTF: the text in order as Markdown, with headings, tables, notes and comments where they belong.

Headers and footers, which stand on every page, follow once at the end. Pictures and embedded objects are left out.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from kb.core.errors import JobFailure
from kb.core.types import Json
from kb.ingest.extract.code_pages import DEFAULT_PAGE, page_of_charset, page_of_number
from kb.ingest.extract.encoding import decoded
from kb.ingest.extract.hidden import MARKED, marked, separated, with_hidden, without_marks
from kb.ingest.extract.part import EMPTY, Outcome, Part
from kb.ingest.extract.rtf_tokens import Token, tokens
from kb.ingest.extract.tables import markdown_table
from kb.ingest.extract.tidy import detail, tidy
from kb.ingest.extract.titles import real_title
from kb.ingest.extract.tools import Ocr, Source

START = re.compile(rb"\A(?:\xef\xbb\xbf)?\s*\{\s*\\[a-z]")
MAX_DEPTH = 5000  # groups inside of groups
MAX_LEVEL = 6  # of a heading
SMALLEST = 2  # half points: anything smaller cannot be read
CUT = Outcome("ok", "the file ends in the middle: it was cut off")
DETAILS = {"author": "author", "subject": "subject", "keywords": "keywords", "doccomm": "description"}
CHARACTERS = {
    "tab": "\t",
    "line": "\n",
    "lbr": "\n",
    "emdash": "—",
    "endash": "–",
    "lquote": "‘",
    "rquote": "’",
    "ldblquote": "“",
    "rdblquote": "”",
    "bullet": "•",
    "emspace": " ",
    "enspace": " ",
    "qmspace": " ",
    "nestcell": "\t",
    "nestrow": "\n",
}
SYMBOLS = {"~": "\u00a0", "_": "\u2011", "\\": "\\", "{": "{", "}": "}"}  # "-" is a place for a hyphen
PARAGRAPH_ENDS = ("par", "sect", "page", "\n", "\r")
# Groups whose text is none of the document's.
SKIPPED = frozenset(
    """
    colortbl pict nonshppict shprslt sp fldinst datafield objdata objclass objname xe tc rxe bkmkstart bkmkend revtbl
    pnseclvl template comment private atnid atnref atndate atntime atnparent mmathPict nonesttables filetbl fontemb
    fontfile panose falt ftnsep ftnsepc ftncn aftnsep aftnsepc aftncn listname leveltext levelnumbers operator company
    manager category hlinkbase creatim revtim printim buptim linkval propname staticval
    """.split()
)
# Groups that older readers are told to leave out, and that have text all the same.
READ_ALL_THE_SAME = frozenset("shpinst moMath moMathPara ud".split())
APART = frozenset(("footnote", "annotation", "atnauthor", "shptxt"))  # beside the text: notes, comments, boxes
MARGINS = frozenset("header headerl headerr headerf footer footerl footerr footerf".split())


@dataclass(slots=True)
class Flow:
    """Paragraphs that follow each other: of the document, of a note, of a margin."""

    blocks: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # of the paragraph
    line: list[str] = field(default_factory=list)  # the paragraph so far
    cell: list[str] = field(default_factory=list)  # its paragraphs
    row: list[str] = field(default_factory=list)
    table: list[list[str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class State:
    """What holds within a group, until it says otherwise or ends."""

    flow: Flow | None  # where text goes; None: it is left out
    info: str = ""  # the detail that it says, or the table that it describes
    page: str = ""  # the code page of the font; that of the document if empty
    skipped: int = 1  # characters that stand for one of Unicode in older readers
    style: int = 0
    level: int | None = None  # of the outline, from 0, if the paragraph says it
    in_table: bool = False
    vanishes: bool = False
    is_tiny: bool = False
    is_deleted: bool = False


def parts(source: Source, _: Ocr) -> Iterator[Part]:
    data = source.read_bytes()
    page = DEFAULT_PAGE
    if not START.match(data):  # in UTF-16, of which no standard speaks
        data, page = decoded(data).text.encode("utf-8", "replace"), "utf-8"
    document = Document(page)
    document.read(data)
    text, hidden = separated("\n\n".join(filter(None, document.blocks())), document.ways)
    outcome = EMPTY if not text else Outcome() if document.is_whole else CUT
    title = real_title(document.info.get("title")) or document.heading
    metadata: Json = {name: value for key, name in DETAILS.items() if (value := detail(document.info.get(key)))}
    yield from with_hidden(Part("text", text, outcome=outcome, title=title, metadata=metadata), hidden)


class Document:
    def __init__(self, page: str) -> None:
        self.info: dict[str, str] = {}  # what the file says of itself
        self.heading: str | None = None  # the first one
        self.ways: set[str] = set()  # in which text is hidden
        self.is_whole = False  # the last group ended
        self._page = page
        self._body = Flow()
        self._margins = Flow()
        self._state = State(self._body)
        self._stack: list[State] = []
        self._fonts: dict[int, str] = {}  # their code pages
        self._font = 0  # the one that the table of fonts describes
        self._levels: dict[int, int] = {}  # of styles that are headings
        self._style_names: dict[int, str] = {}
        self._bytes = bytearray()  # text that is not decoded yet: a character may have several
        self._pending = 0  # characters to leave out, which an older reader would show
        self._high = 0  # the first half of a pair that makes one character
        self._opens = False  # a group began, and its first word says what it is
        self._starred = False  # that word may be unknown
        self._author = ""  # of the next comment

    def read(self, data: bytes) -> None:
        for token in tokens(data):
            if token.kind == "text":
                self._take(token)
                continue
            if self._bytes:
                self._flush()
            if token.kind == "{":
                self._open()
            elif token.kind == "}":
                if not self._stack:
                    break  # what follows the document is none of it
                self._close()
            elif token.kind == "symbol":
                self._symbol(token.word)
            elif self._opens or self._pending == 0 or token.word == "u":
                self._word(token.word, token.number)
            else:
                self._pending -= 1
        self._flush()
        self.is_whole = not self._stack
        while self._stack:
            self._close()

    def blocks(self) -> Iterator[str]:
        """Paragraphs and tables, then headers and footers, each text once."""
        for flow in (self._body, self._margins):
            self._end_paragraph(flow)
            self._end_table(flow)
        yield from self._body.blocks
        yield from dict.fromkeys(self._margins.blocks)

    def _open(self) -> None:
        if len(self._stack) >= MAX_DEPTH:
            raise JobFailure("too_complex", "Its groups are nested too deeply.")
        self._stack.append(self._state)
        self._opens, self._starred, self._pending = True, False, 0

    def _close(self) -> None:
        ended, self._state = self._state, self._stack.pop()
        self._opens = self._starred = False
        self._pending = 0
        if ended.flow is not None and ended.flow is not self._state.flow:
            self._end_flow(ended, ended.flow)
        elif ended.info == "style" and self._state.info == "stylesheet":
            self._end_style(ended)

    def _end_flow(self, ended: State, flow: Flow) -> None:
        self._end_paragraph(flow)
        self._end_table(flow)
        if flow is self._margins or self._state.flow is None:
            return
        text = " ".join(" ".join(flow.blocks).split())
        if ended.info == "atnauthor":
            self._author = text
        elif text:
            who = f"{self._author}: " if ended.info == "annotation" and self._author else ""
            self._state.flow.notes.append(f"[{who}{text}]")

    def _end_style(self, ended: State) -> None:
        name = self._style_names.get(ended.style, "").strip(" ;").lower()
        if name == "title":
            self._levels[ended.style] = 0
        elif name.startswith("heading ") and name[8:].isdigit():
            self._levels[ended.style] = int(name[8:]) - 1
        elif ended.level is not None:
            self._levels[ended.style] = ended.level

    def _symbol(self, symbol: str) -> None:
        if symbol == "*":
            self._starred = True
        elif self._pending:
            self._pending -= 1
        elif symbol in PARAGRAPH_ENDS:
            self._word("par", None)
        else:
            self._opens = False
            self._say(SYMBOLS.get(symbol, ""))

    def _word(self, word: str, number: int | None) -> None:
        opens, self._opens = self._opens, False
        if opens and self._enters(word):
            return
        state = self._state
        if word == "u":
            self._unicode(number or 0)
        elif word == "uc":
            self._state = replace(state, skipped=max(0, min(number or 0, 100)))
        elif word in CHARACTERS:
            self._say(CHARACTERS[word])
        elif state.flow is not None and word in PARAGRAPH_ENDS:
            self._end_paragraph(state.flow)
        elif state.flow is not None and word in ("cell", "row"):
            self._end_cell(state.flow, is_row=word == "row")
        else:
            self._property(word, number)

    def _enters(self, word: str) -> bool:
        """Whether the first word of a group says that its text goes elsewhere, or nowhere."""
        state, starred = self._state, self._starred
        if word in APART and state.flow is not None:
            self._state = State(Flow(), word, skipped=state.skipped)
        elif word in MARGINS:
            self._state = State(self._margins, skipped=state.skipped)
        elif word in ("info", "fonttbl", "stylesheet"):
            self._state = replace(state, flow=None, info=word)
        elif state.info == "info" and word in ("title", *DETAILS):
            self._state = replace(state, info=word)
        elif word == "upr":
            self._state = replace(state, flow=None, info="upr:" + state.info)
            self._stack[-1] = state
        elif word == "ud" and state.info.startswith("upr:"):
            self._state = replace(self._stack[-2], info=state.info.removeprefix("upr:"))
        elif word in SKIPPED or (starred and word not in READ_ALL_THE_SAME):
            self._state = replace(state, flow=None, info="")
        else:
            if state.info == "stylesheet":
                self._state = replace(state, info="style", style=0, level=None)
            return False
        return True

    def _property(self, word: str, number: int | None) -> None:
        state, on = self._state, number != 0
        if word == "plain":
            self._state = replace(state, page="", vanishes=False, is_tiny=False, is_deleted=False)
        elif word == "pard":
            self._state = replace(state, style=0, level=None, in_table=False)
        elif word == "s":
            self._state = replace(state, style=number or 0)
        elif word == "outlinelevel":
            self._state = replace(state, level=number)
        elif word == "intbl":
            self._state = replace(state, in_table=True)
        elif word == "v":
            self._state = replace(state, vanishes=on)
        elif word == "fs":
            self._state = replace(state, is_tiny=number is not None and 0 <= number < SMALLEST)
        elif word == "deleted":
            self._state = replace(state, is_deleted=on)
        elif word == "f":
            self._font = number or 0
            self._state = replace(state, page=self._fonts.get(self._font, ""))
        else:
            self._code_page(word, number or 0)

    def _code_page(self, word: str, number: int) -> None:
        if word == "ansicpg":
            self._page = page_of_number(number)
        elif word == "mac":
            self._page = "mac_roman"
        elif word in ("pc", "pca"):
            self._page = "cp437" if word == "pc" else "cp850"
        elif self._state.info == "fonttbl" and word == "fcharset":
            self._fonts[self._font] = page_of_charset(number, "")
        elif self._state.info == "fonttbl" and word == "cpg" and number:
            self._fonts[self._font] = page_of_number(number)

    def _take(self, token: Token) -> None:
        """Text in bytes. The first of them may only repeat a character of Unicode for older readers."""
        self._opens = False
        text = token.text
        if self._pending:
            dropped = min(self._pending, len(text))
            self._pending -= dropped
            text = text[dropped:]
        self._bytes += text

    def _flush(self) -> None:
        if self._bytes:
            text = self._bytes.decode(self._state.page or self._page, "replace")
            self._bytes.clear()
            self._say(text)

    def _unicode(self, number: int) -> None:
        self._pending = self._state.skipped
        code = number & 0xFFFF if -0x8000 <= number <= 0xFFFF else number
        if 0xD800 <= code < 0xDC00:
            self._high = code
            return
        if 0xDC00 <= code < 0xE000:
            code = 0x10000 + (self._high - 0xD800 << 10) + (code - 0xDC00) if self._high else 0xFFFD
        self._high = 0
        self._say(chr(code) if 0 < code <= 0x10FFFF else "�")

    def _say(self, text: str) -> None:
        state = self._state
        if state.flow is None:
            if state.info in ("title", *DETAILS):
                self.info[state.info] = self.info.get(state.info, "") + text
            elif state.info == "style":
                self._style_names[state.style] = self._style_names.get(state.style, "") + text
        elif not state.is_deleted:
            way = "vanish" if state.vanishes else "tiny" if state.is_tiny else None
            if way and text.strip():
                self.ways.add(way)
            state.flow.line.append(marked(without_marks(text)) if way else without_marks(text))

    def _end_paragraph(self, flow: Flow) -> None:
        state = self._state
        text = tidy("".join(flow.line))
        notes, flow.line, flow.notes = flow.notes, [], []
        if state.in_table and flow is state.flow:
            flow.cell += filter(None, (text, *notes))
            return
        if text or notes:
            self._end_table(flow)
        if text:
            flow.blocks.append(self._dressed(text) if flow is state.flow else text)
        flow.blocks += notes

    def _dressed(self, text: str) -> str:
        level = self._state.level if self._state.level is not None else self._levels.get(self._state.style)
        if level is None or not 0 <= level < MAX_LEVEL:
            return text
        self.heading = self.heading or MARKED.sub("", text).strip() or None
        return f"{'#' * (level + 1)} {' '.join(text.split())}"

    def _end_cell(self, flow: Flow, *, is_row: bool) -> None:
        text = tidy("".join(flow.line))
        cell = " ".join(filter(None, (*flow.cell, text, *flow.notes)))
        flow.line, flow.cell, flow.notes = [], [], []
        if not is_row or cell:
            flow.row.append(cell)
        if is_row:
            flow.table.append(flow.row)
            flow.row = []

    def _end_table(self, flow: Flow) -> None:
        rest = [*flow.row, *flow.cell]
        table = markdown_table([*flow.table, rest] if rest else flow.table)
        flow.table, flow.row, flow.cell = [], [], []
        if table:
            flow.blocks.append(table)
