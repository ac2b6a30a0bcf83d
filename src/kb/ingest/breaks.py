"""Where a text may be cut, and how good a place each is.

A break stands where the next passage would begin: at the start of a line or of a sentence. Finer places (words,
tokens) are looked for only inside what is too long, by the chunker itself. `Layout` is what it works from.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum

# The line ends of every platform and of Unicode; a form feed is one too.
LINE = re.compile("[^\r\n\v\f\x85\u2028\u2029]*(?:\r\n|[\r\n\v\f\x85\u2028\u2029]|\\Z)")


class Rank(IntEnum):
    """How good a place to cut is, the best first."""

    HEADING = 0  # before a heading, or before a definition in code
    BLOCK = 1  # after a blank line
    ITEM = 2  # before a list item
    LINE = 3
    SENTENCE = 4
    WRAP = 5  # before a line that goes on with a sentence
    BARE = 6  # between a heading and what it heads
    WORD = 7
    TOKEN = 8


@dataclass(frozen=True, slots=True)
class Heading:
    start: int
    end: int
    path: tuple[str, ...]  # the titles of the headings it stands under, and its own


@dataclass(frozen=True, slots=True)
class Table:
    """The rows of a table, without its header."""

    start: int
    end: int
    header: str  # the names of its columns, joined by " | "


@dataclass(slots=True)
class Layout:
    """What the structure of a text says about cutting it."""

    breaks: dict[int, Rank] = field(default_factory=dict)
    levels: dict[int, int] = field(default_factory=dict)  # breaks that begin a section, and its level
    whole: list[tuple[int, int]] = field(default_factory=list)  # not to be cut when it fits; in order, disjoint
    verbatim: list[tuple[int, int]] = field(default_factory=list)  # holds no sentences; in order, disjoint
    headings: list[Heading] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)  # in order, disjoint


def lines(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of every line, its line end left out."""
    for match in LINE.finditer(text):
        start, end = match.span()
        if start < end:
            yield start, start + len(match[0].rstrip("\r\n\v\f\x85\u2028\u2029"))


def line_rank(text: str, start: int, *, after_blank: bool) -> Rank:
    """How good a place the start of a line of prose is."""
    if after_blank:
        return Rank.BLOCK
    return Rank.WRAP if text[start : start + 80].lstrip()[:1].islower() else Rank.LINE


def text_layout(text: str) -> Layout:
    """Paragraphs and sentences."""
    layout = Layout()
    blank = False
    for start, end in lines(text):
        if text[start:end].isspace() or start == end:
            blank = True
            continue
        layout.breaks[start] = line_rank(text, start, after_blank=blank or text[start - 1 : start] == "\f")
        blank = False
    add_sentences(layout, text)
    return layout


def code_layout(text: str) -> Layout:
    """Definitions at the left margin after a blank line, other blank lines, lines."""
    layout = Layout()
    blank = False
    for start, end in lines(text):
        if text[start:end].isspace() or start == end:
            blank = True
            continue
        at_margin = not text[start].isspace() and text[start] not in ")]}"
        best = Rank.HEADING if at_margin else Rank.BLOCK
        layout.breaks[start] = best if blank else Rank.LINE
        blank = False
    return layout


_SENTENCE = re.compile(
    r"[.!?؟۔…][\"'”’»)\]*_]{0,4}(?:\[\w{1,4}\]){0,9}\s+"  # a citation may follow
    r"|[。！？｡．।॥։።]+[\"'”’」』）》】)\]]{0,4}\s*"
)
_NO_END = re.compile(
    r"(?:^|[\s(\[\"'“‘])"
    r"(?:\w|(?:\w\.)+\w|Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|Gen|Rev|Hon|Mt|vs|etc|cf|al|ca|approx|incl|resp|est|viz"
    r"|[Ff]igs?|[Ee]qs?|[Ss]ecs?|[Cc]hap|[Vv]ols?|[Nn]os|No|Nr|pp|eds?|[Rr]efs?|Inc|Ltd|Co|Corp|Dept|Univ|usw|bzw)\.$"
    r"|(?:^|[\r\n])[ \t]*\d{1,4}\.$"  # the number of a list item
)


def add_sentences(layout: Layout, text: str) -> None:
    """Add a break after every sentence outside of what is verbatim."""
    verbatim = iter(layout.verbatim)
    start, end = next(verbatim, (len(text), len(text)))
    for match in _SENTENCE.finditer(text):
        at = match.end()
        while end <= match.start():
            start, end = next(verbatim, (len(text), len(text)))
        if match.start() < start and at < len(text) and at not in layout.breaks and _ends(text, match.start(), at):
            layout.breaks[at] = Rank.SENTENCE


def _ends(text: str, stop: int, after: int) -> bool:
    """Whether the mark at `stop` ends a sentence, as far as its surroundings tell."""
    if text[after].islower() and text[stop] in ".!?…":
        return False
    if text[stop] != ".":
        return True
    begin = max(0, stop - 16)
    return not _NO_END.search(text[begin : stop + 1])
