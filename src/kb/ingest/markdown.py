"""The structure of Markdown, as far as cutting it needs: headings, fences, tables, lists, front matter.

It reads line by line and never fails. A `#` inside a fence is no heading; a fence that is never closed runs to
the end, as CommonMark has it. Headings have one to six levels; an underlined one has one line, because prose
followed by dashes is more often meant as a rule.
"""

import re
from dataclasses import replace

from kb.ingest.breaks import Heading, Layout, Rank, Table, add_sentences, line_rank, lines

MAX_TITLE = 200  # characters of a heading that its path shows

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


def markdown_layout(text: str) -> Layout:
    reader = _Reader(text)
    for start, end in lines(text):
        reader.read(start, end)
    return reader.finish()


class _Reader:
    """Takes one line after the other and notes what it means for cutting."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._layout = Layout()
        self._path: list[tuple[int, str]] = []  # level and title of the headings in force
        self._after_blank = False
        self._after_heading = 0  # the level of the heading that nothing has followed yet
        self._heading_before = 0  # the same, when the open paragraph began
        self._after_front_matter = False
        self._fence: tuple[int, str] | None = None  # where the open fence began, and its marker
        self._item: int | None = None  # where the open list item began
        self._paragraph: list[int] = []  # where the lines of the open paragraph began
        self._in_table = False
        self._after_delimiter = False  # the line before parts the head of a table from its rows
        self._end = 0  # of the last line that was not blank
        self._front_matter_end = self._read_front_matter()

    def read(self, start: int, end: int) -> None:
        line = self._text[start:end]
        if start < self._front_matter_end:
            return
        if self._fence:
            self._read_fenced(line, start, end)
        elif not line or line.isspace():
            self._close()
            self._after_blank = True
        else:
            self._read_block(line, start, end)
            self._after_blank = False
            self._end = end

    def finish(self) -> Layout:
        self._close()
        if self._fence:
            self._keep_verbatim(self._fence[0], len(self._text))
        add_sentences(self._layout, self._text)
        return self._layout

    def _read_front_matter(self) -> int:
        opening = _FRONT_MATTER.match(self._text)
        closing = opening and _FRONT_MATTER_END.search(self._text, opening.end() - 1)
        if not closing:
            return 0
        self._layout.breaks[0] = Rank.HEADING
        self._keep_verbatim(0, closing.end())
        self._after_front_matter = True
        return closing.end()

    def _read_fenced(self, line: str, start: int, end: int) -> None:
        assert self._fence is not None
        opened, marker = self._fence
        body = line.strip()
        if body.startswith(marker) and not body.strip(marker[0]):
            self._keep_verbatim(opened, end)
            self._fence = None
        elif body:
            self._layout.breaks[start] = Rank.ITEM if self._after_blank else Rank.LINE
        self._after_blank = not body
        self._end = end

    def _read_block(self, line: str, start: int, end: int) -> None:
        if atx := _ATX.match(line):
            self._close()
            self._add_heading(start, end, len(atx[1]), _CLOSING_HASHES.sub("", (atx[2] or "").rstrip()))
        elif self._is_underline(line):
            title = self._text[self._paragraph[0] : self._end]
            self._after_heading = self._heading_before
            self._add_heading(self._paragraph[0], end, 1 if "=" in line else 2, title)
            self._paragraph = []
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
        if len(self._paragraph) != 1 or not _UNDERLINE.match(line):
            return False
        return not self._text.startswith(">", self._paragraph[0])

    def _is_row(self, line: str) -> bool:
        if line.lstrip().startswith("|") or (self._in_table and "|" in line):
            return True
        # A table without outer bars shows at its second line.
        head = self._text[self._paragraph[-1] : self._end] if self._paragraph else ""
        return "|" in head and bool(_DELIMITER_ROW.match(line))

    def _read_row(self, line: str, start: int, end: int) -> None:
        is_delimiter = (self._in_table or bool(self._paragraph)) and bool(_DELIMITER_ROW.match(line))
        self._note_table(end, is_delimiter=is_delimiter)
        if self._paragraph and is_delimiter:
            self._keep_verbatim(self._paragraph[-1], self._end)
        self._close_item()
        self._paragraph = []
        # The head stays with the first row.
        if not is_delimiter and not self._after_delimiter:
            self._break(start, Rank.BLOCK if self._after_blank else Rank.LINE)
        self._keep_verbatim(start, end)
        self._in_table = True
        self._after_delimiter = is_delimiter

    def _note_table(self, end: int, *, is_delimiter: bool) -> None:
        """A table's rows follow its delimiter; the line before that is its header."""
        tables = self._layout.tables
        if is_delimiter and not self._after_delimiter:
            head = self._text[self._text.rfind("\n", 0, self._end) + 1 : self._end]
            names = " | ".join(cell.strip() for cell in head.strip().strip("|").split("|") if cell.strip())
            tables.append(Table(end, end, names[:MAX_TITLE].strip()))
        elif self._in_table and tables:
            tables[-1] = replace(tables[-1], end=end)

    def _read_prose(self, line: str, start: int) -> None:
        self._in_table = self._after_delimiter = False
        rank = line_rank(self._text, start, after_blank=self._after_blank)
        if rank is Rank.BLOCK and line[0] in " \t":
            rank = Rank.ITEM  # likely another paragraph of a list item
        if not self._paragraph:
            self._heading_before = self._after_heading
        self._break(start, rank)
        if self._item is None:
            self._paragraph.append(start)

    def _add_heading(self, start: int, end: int, level: int, title: str) -> None:
        while self._path and self._path[-1][0] >= level:
            self._path.pop()
        title = _MARKUP.sub("", _LINK.sub(r"\1", title[: 5 * MAX_TITLE]))
        title = " ".join(title.split())[:MAX_TITLE].strip()
        self._path.append((level, title))
        # The first subsection of a section that has no text of its own begins nothing new.
        if not 0 < self._after_heading < level:
            self._after_heading = 0
            self._layout.levels[start] = level
        self._break(start, Rank.HEADING)
        self._after_heading = level
        self._layout.headings.append(Heading(start, end, tuple(title for _, title in self._path if title)))
        self._keep_verbatim(start, end)

    def _break(self, start: int, rank: Rank) -> None:
        """Note that a passage may begin here; what follows a heading directly should stay with it."""
        if self._after_front_matter:
            self._after_front_matter = False
            self._layout.levels[start] = 2
            rank = Rank.HEADING
        self._layout.breaks[start] = Rank.BARE if self._after_heading else rank
        self._after_heading = 0

    def _keep_verbatim(self, start: int, end: int) -> None:
        self._layout.whole.append((start, end))
        self._layout.verbatim.append((start, end))

    def _close(self) -> None:
        self._close_item()
        self._paragraph = []
        self._in_table = self._after_delimiter = False

    def _close_item(self) -> None:
        if self._item is not None:
            self._layout.whole.append((self._item, self._end))
        self._item = None
