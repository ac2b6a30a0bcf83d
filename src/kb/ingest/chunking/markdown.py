"""The structure of Markdown, as far as cutting it needs: headings, fences, tables, lists, front matter.

It reads line by line and never fails. A `#` inside a fence is no heading; a fence that is never closed runs to
the end, as CommonMark has it. Headings have one to six levels; an underlined one has one line, because prose
followed by dashes is more often meant as a rule.
"""

import re

from kb.core.types import Interrupt
from kb.ingest.chunking.breaks import LINE_END, LONG_LINE, Layout, Rank, is_blank, line_rank, lines

MAX_TITLE = 200  # characters of a heading that its path shows
MAX_HEADER = 20_000  # characters of a table's header that are looked at
MAX_FRONT_MATTER = 2**20  # characters

_FRONT_MATTER = re.compile(r"\ufeff?---[ \t]*(?:\r\n?|\n)(?=(?:[ \t]*#.*(?:\r\n?|\n))?[\w\"'-]+[ \t]*:)")
_FRONT_MATTER_END = re.compile(r"[\r\n](?:---|\.\.\.)[ \t]*(?=[\r\n]|\Z)")
_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*))?$", re.DOTALL)
_CLOSING_HASHES = re.compile(r"(?:^|[ \t])#+$")
_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()]*\)")
_MARKUP = re.compile(r"`|\*\*")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+)[ \t]*$")
_FENCE = re.compile(r"[ \t]*(`{3,}(?=[^`]*$)|~{3,})")
_RULE = re.compile(r" {0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})$")
_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]")
_DELIMITER_ROW = re.compile(r"(?=.*-)(?=.*\|)[ \t|:-]+$")


def markdown_layout(text: str, interrupt: Interrupt) -> Layout:
    reader = _Reader(text)
    for start, end in lines(text, interrupt):
        reader.read(start, end)
    return reader.finish()


def heading_title(text: str, start: int, end: int) -> str:
    """What a heading says, without its markup."""
    line = text[start : min(end, start + LONG_LINE)]
    atx = _ATX.match(line)
    title = _CLOSING_HASHES.sub("", (atx[2] or "").rstrip()) if atx else LINE_END.split(line, 1)[0]
    title = _MARKUP.sub("", _LINK.sub(r"\1", title[: 5 * MAX_TITLE]))
    return " ".join(title.split())[:MAX_TITLE].strip()


def table_header(text: str, start: int, end: int) -> str:
    """The names of a table's columns, joined by " | "."""
    head = text[start : min(end, start + MAX_HEADER)].strip().strip("|")
    return " | ".join(cell.strip() for cell in head.split("|") if cell.strip())[:MAX_TITLE].strip()


class _Reader:
    """Reads a text line by line and notes where it may be cut."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._layout = Layout()
        self._path: list[tuple[int, int]] = []  # level and number of the headings in force
        self._after_blank = False
        self._after_heading = 0  # the level of the heading that nothing has followed yet
        self._heading_before = 0  # the same, when the open paragraph began
        self._after_front_matter = False
        self._fence: tuple[int, str] | None = None  # where the open fence began, and its marker
        self._item: int | None = None  # where the open list item began
        self._paragraph = 0  # lines of the open paragraph
        self._last = 0  # where the last line that was not blank began
        self._in_table = False
        self._after_delimiter = False  # the line before parts the head of a table from its rows
        self._end = 0  # of the last line that was not blank
        self._front_matter_end = self._read_front_matter()

    def read(self, start: int, end: int) -> None:
        line = self._text[start : min(end, start + LONG_LINE)]
        if start < self._front_matter_end:
            return
        if self._fence:
            self._read_fenced(line, start, end)
        elif not line or (line.isspace() and is_blank(self._text, start, end)):
            self._close()
            self._after_blank = True
        else:
            self._read_block(line, start, end)
            self._after_blank = False
            self._last, self._end = start, end

    def finish(self) -> Layout:
        self._close()
        if self._fence:
            self._keep_whole(self._fence[0], len(self._text))
        return self._layout

    def _read_front_matter(self) -> int:
        opening = _FRONT_MATTER.match(self._text)
        closing = opening and _FRONT_MATTER_END.search(self._text, opening.end() - 1, MAX_FRONT_MATTER)
        if not closing:
            return 0
        self._layout.add(0, Rank.HEADING)
        self._keep_whole(0, closing.end())
        self._after_front_matter = True
        return closing.end()

    def _read_fenced(self, line: str, start: int, end: int) -> None:
        assert self._fence is not None
        opened, marker = self._fence
        body = line.strip()
        if body.startswith(marker) and not body.strip(marker[0]):
            self._keep_whole(opened, end)
            self._fence = None
        elif body:
            self._layout.add(start, Rank.ITEM if self._after_blank else Rank.LINE)
        self._after_blank = not body
        self._last, self._end = start, end

    def _read_block(self, line: str, start: int, end: int) -> None:
        if atx := _ATX.match(line):
            self._close()
            self._add_heading(start, end, len(atx[1]))
        elif self._is_underline(line):
            self._after_heading = self._heading_before
            self._add_heading(self._last, end, 1 if "=" in line else 2)
            self._paragraph = 0
        elif fence := _FENCE.match(line):
            self._close()
            self._break(start, Rank.BLOCK if self._after_blank else Rank.LINE)
            self._fence = (start, fence[1])
        elif self._is_row(line):
            self._read_row(line, start, end)
        elif _RULE.match(line):
            self._close()
            self._break(start, Rank.BLOCK)
        elif _ITEM.match(line):
            self._close()
            self._break(start, Rank.ITEM)
            self._item = start
        else:
            self._read_prose(line, start)

    def _is_underline(self, line: str) -> bool:
        if self._paragraph != 1 or not _UNDERLINE.match(line):
            return False
        return not self._text.startswith(">", self._last)

    def _is_row(self, line: str) -> bool:
        if line.lstrip().startswith("|") or (self._in_table and "|" in line):
            return True
        # A table without outer bars shows at its second line.
        has_head = self._paragraph and self._text.find("|", self._last, self._end) >= 0
        return bool(has_head and _DELIMITER_ROW.match(line))

    def _read_row(self, line: str, start: int, end: int) -> None:
        is_delimiter = (self._in_table or bool(self._paragraph)) and bool(_DELIMITER_ROW.match(line))
        self._note_table(end, is_delimiter=is_delimiter)
        if self._paragraph and is_delimiter:
            self._keep_line(self._last, self._end)
        self._close_item()
        self._paragraph = 0
        # The head stays with the first row.
        if not is_delimiter and not self._after_delimiter:
            self._break(start, Rank.BLOCK if self._after_blank else Rank.LINE)
        self._keep_line(start, end)
        self._in_table = True
        self._after_delimiter = is_delimiter

    def _note_table(self, end: int, *, is_delimiter: bool) -> None:
        """A table's rows follow its delimiter; the line before that is its header."""
        tables = self._layout.tables
        if is_delimiter and not self._after_delimiter:
            tables.add(end, end)
            tables.headers.add(self._last, self._end)
        elif self._in_table and tables.ends:
            tables.ends[-1] = end

    def _read_prose(self, line: str, start: int) -> None:
        self._in_table = self._after_delimiter = False
        rank = line_rank(self._text, start, after_blank=self._after_blank)
        if rank is Rank.BLOCK and line[0] in " \t":
            rank = Rank.ITEM  # likely another paragraph of a list item
        if not self._paragraph:
            self._heading_before = self._after_heading
        self._break(start, rank)
        if self._item is None:
            self._paragraph += 1

    def _add_heading(self, start: int, end: int, level: int) -> None:
        headings = self._layout.headings
        while self._path and self._path[-1][0] >= level:
            self._path.pop()
        headings.parents.append(self._path[-1][1] if self._path else -1)
        self._path.append((level, len(headings.starts)))
        headings.add(start, end)
        # The first subsection of a section that has no text of its own begins nothing new.
        begins = not 0 < self._after_heading < level
        if begins:
            self._after_heading = 0
        self._break(start, Rank.HEADING, level if begins else 0)
        self._after_heading = level
        self._keep_line(start, end)

    def _break(self, start: int, rank: Rank, level: int = 0) -> None:
        """Note that a passage may begin here; what follows a heading directly should stay with it."""
        if self._after_front_matter:
            self._after_front_matter = False
            rank, level = Rank.HEADING, 2
        self._layout.add(start, Rank.BARE if self._after_heading else rank, level)
        self._after_heading = 0

    def _keep_line(self, start: int, end: int) -> None:
        self._layout.keep_verbatim(start, end)
        if self._text[start].isspace():  # else there is no break in it: after a sentence, the next begins at its text
            self._layout.whole.add(start, end)

    def _keep_whole(self, start: int, end: int) -> None:
        self._layout.whole.add(start, end)
        self._layout.keep_verbatim(start, end)

    def _close(self) -> None:
        self._close_item()
        self._paragraph = 0
        self._in_table = self._after_delimiter = False

    def _close_item(self) -> None:
        if self._item is not None:
            self._layout.whole.add(self._item, self._end)
        self._item = None
