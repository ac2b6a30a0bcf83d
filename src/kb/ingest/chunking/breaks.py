"""Where a text may be cut, and how good each of these breaks is.

A break stands where the next passage would begin: at the start of a line or of a sentence. Finer breaks (words,
tokens) are looked for only inside what is too long, by the chunker itself. `Layout` is what it works from: arrays,
since a text of 100 MB may have 50 million lines. `interrupt` is called all along, and raises when the work should stop.
"""

import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from kb.core.types import Interrupt
from kb.core.values import Symbol

# The line ends of every platform and of Unicode; a form feed is one too.
LINE_END = re.compile("\r\n|[\r\n\v\f\x85\u2028\u2029]")
WINDOW = 2**16  # characters that are looked at between two calls of `interrupt`
LONG_LINE = 100_000  # characters of a line that say what it is


class Rank(IntEnum):
    """How good a break is, the best first."""

    HEADING = 0  # before a heading, or before a definition in code
    BLOCK = 1  # after a blank line
    ITEM = 2  # before a list item
    LINE = 3
    SENTENCE = 4
    WRAP = 5  # before a line that goes on with a sentence
    BARE = 6  # between a heading and what it heads
    WORD = 7
    TOKEN = 8


def integers() -> "array[int]":
    return array("i")


@dataclass(slots=True)
class Spans:
    """Starts and ends, in order, disjoint."""

    starts: "array[int]" = field(default_factory=integers)
    ends: "array[int]" = field(default_factory=integers)

    def add(self, start: int, end: int) -> None:
        self.starts.append(start)
        self.ends.append(end)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(self.starts, self.ends, strict=True)


@dataclass(slots=True)
class Headings(Spans):
    parents: "array[int]" = field(default_factory=integers)  # the heading that each stands under; -1 for none


@dataclass(slots=True)
class Tables(Spans):
    """The rows of each table, without its header."""

    headers: Spans = field(default_factory=Spans)  # the line with the names of its columns


@dataclass(slots=True)
class Layout:
    """What the structure of a text says about cutting it."""

    at: "array[int]" = field(default_factory=integers)  # lines at which a passage may begin, ascending
    ranks: bytearray = field(default_factory=bytearray)  # of each of them
    levels: bytearray = field(default_factory=bytearray)  # of the section that begins there; 0 for none
    has_sentences: bool = True
    whole: Spans = field(default_factory=Spans)  # not to be cut when it fits, and could be; one may be inside another
    verbatim: Spans = field(default_factory=Spans)  # holds no sentences
    headings: Headings = field(default_factory=Headings)
    tables: Tables = field(default_factory=Tables)
    symbols: Sequence[Symbol] = ()

    def add(self, at: int, rank: Rank, level: int = 0) -> None:
        """Add a break; one at the same position as the latest replaces it."""
        if self.at and self.at[-1] == at:
            self.ranks[-1] = rank
            self.levels[-1] = level or self.levels[-1]
        else:
            self.at.append(at)
            self.ranks.append(rank)
            self.levels.append(level)

    def keep_verbatim(self, start: int, end: int) -> None:
        spans = self.verbatim
        if spans.ends and start - spans.ends[-1] <= 2:  # only a line end lies between
            spans.ends[-1] = end
        else:
            spans.add(start, end)


def lines(text: str, interrupt: Interrupt) -> Iterator[tuple[int, int]]:
    """Start and end of every line, its line end left out."""
    start = done = 0
    while done < len(text):
        interrupt()
        edge = done + WINDOW
        if text[edge - 1 : edge + 1] == "\r\n":
            edge += 1
        for match in LINE_END.finditer(text, done, edge):
            end, after = match.span()
            yield start, end
            start = after
        done = edge
    if start < len(text):
        yield start, len(text)


def is_blank(text: str, start: int, end: int) -> bool:
    return start == end or text[start:end].isspace()


def line_rank(text: str, start: int, *, after_blank: bool) -> Rank:
    """How good a break the start of a line of prose is."""
    if after_blank:
        return Rank.BLOCK
    return Rank.WRAP if text[start : start + 80].lstrip()[:1].islower() else Rank.LINE


def text_layout(text: str, interrupt: Interrupt) -> Layout:
    """Paragraphs and sentences."""
    layout = Layout()
    blank = False
    for start, end in lines(text, interrupt):
        if is_blank(text, start, end):
            blank = True
            continue
        layout.add(start, line_rank(text, start, after_blank=blank or text[start - 1 : start] == "\f"))
        blank = False
    return layout


def breaks(text: str, layout: Layout, interrupt: Interrupt) -> Iterator[tuple[int, int, int]]:
    """Every break with its rank and level, ascending, sentences included; the first is the start of the text."""
    found = _sentences(text, layout.verbatim, interrupt) if layout.has_sentences else iter(())
    sentence = next(found, None)
    if not layout.at or layout.at[0] > 0:
        yield 0, Rank.HEADING, 0
    for at, rank, level in zip(layout.at, layout.ranks, layout.levels, strict=True):
        while sentence is not None and sentence <= at:
            if sentence < at:
                yield sentence, Rank.SENTENCE, 0
            sentence = next(found, None)
        yield at, rank, level
    while sentence is not None:
        yield sentence, Rank.SENTENCE, 0
        sentence = next(found, None)


_SENTENCE = re.compile(
    r"[.!?؟۔…][\"'”’»)\]*_]{0,4}(?:\[\w{1,4}\]){0,9}\s+"  # a citation may follow
    r"|[。！？｡．।॥։።]+[\"'”’」』）》】)\]]{0,4}\s*"
)
_LONGEST_STOP = 64  # characters before the white space, or more: one that the edge of a window cuts is looked at again
_NO_END = re.compile(
    r"(?:^|[\s(\[\"'“‘])"
    r"(?:\w|(?:\w\.)+\w|Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|Gen|Rev|Hon|Mt|vs|etc|cf|al|ca|approx|incl|resp|est|viz"
    r"|[Ff]igs?|[Ee]qs?|[Ss]ecs?|[Cc]hap|[Vv]ols?|[Nn]os|No|Nr|pp|eds?|[Rr]efs?|Inc|Ltd|Co|Corp|Dept|Univ|usw|bzw)\.$"
    r"|(?:^|[\r\n])[ \t]*\d{1,4}\.$"  # the number of a list item
)


def _sentences(text: str, verbatim: Spans, interrupt: Interrupt) -> Iterator[int]:
    """Where a sentence begins after another one, outside of what is verbatim."""
    spans = iter(verbatim)
    start, end = next(spans, (len(text), len(text)))
    for stop, at in _stops(text, interrupt):
        while end <= stop:
            start, end = next(spans, (len(text), len(text)))
        if stop < start and at < len(text) and _ends(text, stop, at):
            yield at


def _stops(text: str, interrupt: Interrupt) -> Iterator[tuple[int, int]]:
    """Every mark that may end a sentence, with the start of the text after it."""
    done = 0
    while done < len(text):
        interrupt()
        edge = done + WINDOW
        for match in _SENTENCE.finditer(text, done, edge):
            stop, done = match.span()
            if done == edge:  # it may be longer than the window shows
                longer = _SENTENCE.match(text, stop)
                assert longer
                done = longer.end()
            yield stop, done
        done = max(done, edge - _LONGEST_STOP)
        if edge >= len(text):
            return


def _ends(text: str, stop: int, after: int) -> bool:
    """Whether the mark at `stop` ends a sentence, as far as its surroundings tell."""
    if text[after].islower() and text[stop] in ".!?…":
        return False
    if text[stop] != ".":
        return True
    begin = max(0, stop - 16)
    return not _NO_END.search(text[begin : stop + 1])
