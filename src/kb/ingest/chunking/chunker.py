"""Text in, passages out.

A passage is exactly a slice of the source, trimmed of white space. Passages are in order, do not overlap, and
every character that is not white space is in exactly one of them, unless the caller has it skipped. Tokenised alone,
none has more than `budget` tokens, and none has more than eight times as many characters: to a BERT tokenizer, a
megabyte without spaces may be a single unknown word. Only a single character that has more tokens than that
is left as it is.

The text is tokenised once. `breaks.py` says where it may be cut, `cut.py` where it is cut. What is known about a text
while it is cut takes a few bytes for each of its characters at most.
"""

import re
import time
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from kb.core.types import Interrupt
from kb.core.values import Symbol
from kb.embedding.tokenizer import Tokenizer
from kb.ingest.chunking.breaks import Layout, text_layout
from kb.ingest.chunking.code import SymbolOutline, code_layout
from kb.ingest.chunking.cut import cut, cut_long
from kb.ingest.chunking.markdown import heading_title, markdown_layout, table_header

VERSION = "2"
CONTEXT_VERSION = "1"
SEPARATOR = " > "  # between the parts of a heading path

Kind = Literal["markdown", "code", "text"]

_LAYOUTS: dict[Kind, Callable[[str, Interrupt], Layout]] = {
    "markdown": markdown_layout,
    "code": code_layout,
    "text": text_layout,
}
_WORD_ENDS = " \t\r\n"  # to every tokenizer
_NOT_BLANK = re.compile(r"\S")
_TITLES = 256  # that are cached
_PACE = 0.05  # seconds between two looks at whether to stop
_SLACK = 4  # tokens by which a slice between words may differ from its share of the whole text


@dataclass(frozen=True, slots=True)
class Slice:
    """One passage, as a slice of the source."""

    index: int
    start: int  # the passage is source[start:end]
    end: int
    heading: str | None  # the heading path, outermost first, that all of it stands under; a table's header last
    symbol: str | None = None  # the definitions in it, of a program: their paths of names


class Slices:
    """The passages of a text. Their number is known; each is made when it is needed."""

    def __init__(self, text: str, layout: Layout) -> None:
        self._outline = _Outline(text, layout)
        self._symbols = SymbolOutline(text, layout.symbols) if layout.symbols else None
        self._starts, self._ends = array("i"), array("i")

    def add(self, start: int, end: int) -> None:
        self._starts.append(start)
        self._ends.append(end)

    def __len__(self) -> int:
        return len(self._starts)

    def __iter__(self) -> Iterator[Slice]:
        for index, (start, end) in enumerate(zip(self._starts, self._ends, strict=True)):
            if self._symbols is None:
                yield Slice(index, start, end, self._outline.path(start, end))
            else:
                names, symbol = self._symbols.place(start, end)
                yield Slice(index, start, end, SEPARATOR.join(names) or None, symbol)


def chunk(
    text: str,
    kind: Kind,
    tokenizer: Tokenizer,
    budget: int,
    interrupt: Interrupt = lambda: None,
    skip: Sequence[tuple[int, int]] = (),
    symbols: Sequence[Symbol] = (),
) -> Slices:
    """Cut a text. `interrupt` is called several times a second, and raises when the work should stop.

    What lies in `skip` (in order, without overlaps) is in no passage. `symbols` are the definitions in code.
    """
    text = _blanked(text, skip)
    if not text or text.isspace():
        return Slices("", Layout())
    interrupt = _paced(interrupt)
    layout = code_layout(text, interrupt, symbols) if symbols else _LAYOUTS[kind](text, interrupt)
    starts = array("i")
    for offsets in tokenizer.offsets_by_batch(text):
        interrupt()
        starts.frombytes(offsets[:, 0].tobytes())
    passages = Slices(text, layout)
    for begin, finish in cut(text, layout, starts, budget, interrupt):
        interrupt()
        tokens = bisect_left(starts, finish) - bisect_left(starts, begin)
        start, end = _trimmed(text, begin, finish)
        if start < end and tokens <= budget - _SLACK and _between_words(text, start, end):
            fitting: Iterable[tuple[int, int]] = [(start, end)]
        else:
            fitting = _fitting(text, start, end, tokenizer, budget)
        for span in fitting:
            for passage in _outside(text, *span, skip):
                passages.add(*passage)
    return passages


def _blanked(text: str, skip: Sequence[tuple[int, int]]) -> str:
    """The text with line ends where something is left out: every other character stays where it is."""
    if not skip:
        return text
    pieces, at = [], 0
    for start, end in skip:
        pieces += [text[at:start], "\n" * (end - start)]
        at = end
    return "".join([*pieces, text[at:]])


def _outside(text: str, start: int, end: int, skip: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The span without what is left out."""
    for begin, finish in skip[bisect_right(skip, start, key=lambda span: span[1]) :]:
        if begin >= end:
            break
        if start < begin and (piece := _trimmed(text, start, begin)) and piece[0] < piece[1]:
            yield piece
        start = finish
    if start < end and (piece := _trimmed(text, start, end)) and piece[0] < piece[1]:
        yield piece


def _paced(interrupt: Interrupt) -> Interrupt:
    """Wrap `interrupt` so that frequent calls reach it every 50 ms at most."""
    due = 0.0

    def paced() -> None:
        nonlocal due
        if time.monotonic() >= due:
            interrupt()
            due = time.monotonic() + _PACE

    return paced


def context(title: str | None, heading: str | None) -> str:
    """The title and headings that are put before a passage when it is embedded."""
    if not title or not heading:
        return title or heading or ""
    if heading == title or heading.startswith(title + SEPARATOR):
        return heading
    return title + SEPARATOR + heading


def fit_context(ctx: str, tokenizer: Tokenizer, room: int) -> str:
    """Shorten a context to `room` tokens: first what lies between title and last heading goes, then the end."""
    parts = ctx.split(SEPARATOR)
    while len(parts) > 2 and tokenizer.count(SEPARATOR.join(parts)) > room:
        del parts[1]
    short = SEPARATOR.join(parts)
    keep = room
    while short and tokenizer.count(short) > room:
        ends = tokenizer.offsets(short)[:, 1]
        short = short[: ends[keep - 1]].rstrip(" >") if keep > 0 else ""
        keep -= 1  # a word that was cut may have more tokens than it had
    return short


def _trimmed(text: str, begin: int, end: int) -> tuple[int, int]:
    piece = text[begin:end]
    start = begin + len(piece) - len(piece.lstrip())
    return start, max(start, begin + len(piece.rstrip()))


def _between_words(text: str, start: int, end: int) -> bool:
    return (start == 0 or text[start - 1] in _WORD_ENDS) and (end == len(text) or text[end] in _WORD_ENDS)


def _fitting(text: str, start: int, end: int, tokenizer: Tokenizer, budget: int) -> Iterator[tuple[int, int]]:
    """The span, or parts of it that each fit the budget when tokenised alone."""
    if start == end:
        return
    piece = text[start:end]
    if len(piece) == 1 or tokenizer.count(piece) <= budget:
        yield start, end
        return
    cuts = [0, *cut_long(piece, tokenizer.offsets(piece)[:, 0].tolist(), 0, len(piece), budget), len(piece)]
    for begin, finish in pairwise(cuts):
        yield from _fitting(text, *_trimmed(text, start + begin, start + finish), tokenizer, budget)


class _Outline:
    """Finds the headings above a passage."""

    def __init__(self, text: str, layout: Layout) -> None:
        self._text = text
        self._headings = layout.headings
        self._tables = layout.tables
        self._titles: dict[int, str] = {}  # of the headings that are in force

    def path(self, start: int, end: int) -> str | None:
        """The deepest path that every section with text in the passage shares."""
        starts = self._headings.starts
        first, last = bisect_right(starts, start) - 1, bisect_left(starts, end) - 1
        sections = range(first, last + 1)
        told = [section for section in sections if section < 0 or self._has_body(section)] or list(sections)
        paths = [self._path_of(section) for section in told]
        shared = 0
        for titles in zip(*paths, strict=False):
            if len(set(titles)) > 1:
                break
            shared += 1
        return SEPARATOR.join((*paths[0][:shared], *self._header(start))) or None

    def _has_body(self, section: int) -> bool:
        starts, begin = self._headings.starts, self._headings.ends[section]
        end = starts[section + 1] if section + 1 < len(starts) else len(self._text)
        return _NOT_BLANK.search(self._text, begin, end) is not None

    def _path_of(self, section: int) -> list[str]:
        """The titles of the headings that a section stands under, outermost first, and its own."""
        titles: list[str] = []
        while section >= 0:
            titles.append(self._title(section))
            section = self._headings.parents[section]
        return [title for title in reversed(titles) if title]

    def _title(self, section: int) -> str:
        if section not in self._titles:
            if len(self._titles) >= _TITLES:
                self._titles.clear()
            start, end = self._headings.starts[section], self._headings.ends[section]
            self._titles[section] = heading_title(self._text, start, end)
        return self._titles[section]

    def _header(self, start: int) -> tuple[str, ...]:
        """The header of the table in whose rows the passage begins: without it they would say little."""
        table = bisect_right(self._tables.starts, start) - 1
        if table < 0 or start >= self._tables.ends[table]:
            return ()
        headers = self._tables.headers
        header = table_header(self._text, headers.starts[table], headers.ends[table])
        return (header,) if header else ()
