"""Text in, passages out.

A passage is exactly a slice of the source, trimmed of white space. Passages are in order, do not overlap, and
every character that is not white space is in exactly one of them. Tokenised alone, none has more than `budget`
tokens, and none has more than eight times as many characters: to a BERT tokenizer, a megabyte without spaces may
be a single unknown word. Only a single character that has more tokens than that is left as it is.

The text is tokenised once; where it may be cut is in `kb.ingest.breaks`, where it is cut in `kb.ingest.cut`.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from kb.ingest.breaks import Layout, code_layout, text_layout
from kb.ingest.cut import cut, cut_long
from kb.ingest.markdown import markdown_layout

VERSION = "2"
CONTEXT_VERSION = "1"
SEPARATOR = " > "  # between the parts of a heading path

Kind = Literal["markdown", "code", "text"]

_LAYOUTS: dict[Kind, Callable[[str], Layout]] = {
    "markdown": markdown_layout,
    "code": code_layout,
    "text": text_layout,
}
_WORD_ENDS = " \t\r\n"  # to every tokenizer
_SLACK = 4  # tokens by which a slice between words may differ from its share of the whole text


class Tokenizer(Protocol):
    def offsets(self, text: str) -> NDArray[np.int32]: ...

    def count(self, text: str) -> int: ...


@dataclass(frozen=True, slots=True)
class Passage:
    index: int
    start: int  # the passage is source[start:end]
    end: int
    heading: str | None  # the heading path, outermost first, that all of it stands under; a table's header last


def chunk(text: str, kind: Kind, tokenizer: Tokenizer, budget: int) -> list[Passage]:
    if not text or text.isspace():
        return []
    layout = _LAYOUTS[kind](text)
    starts = tokenizer.offsets(text)[:, 0].tolist()
    spans: list[tuple[int, int]] = []
    for begin, finish in cut(text, layout, starts, budget):
        tokens = bisect_left(starts, finish) - bisect_left(starts, begin)
        start, end = _trimmed(text, begin, finish)
        if start < end and tokens <= budget - _SLACK and _between_words(text, start, end):
            spans.append((start, end))
        else:
            spans.extend(_fitting(text, start, end, tokenizer, budget))
    outline = _Outline(text, layout)
    return [Passage(index, start, end, outline.path(start, end)) for index, (start, end) in enumerate(spans)]


def context(title: str | None, heading: str | None) -> str:
    """What is put before a passage when it is embedded: where it stands."""
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
    """The span, or parts of it, each of which keeps the budget when it is tokenised alone."""
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
    """Tells under which headings a passage stands."""

    def __init__(self, text: str, layout: Layout) -> None:
        self._headings = headings = layout.headings
        self._tables = layout.tables
        self._rows = [table.start for table in layout.tables]
        self._starts = [heading.start for heading in headings]
        ends = (end for _, end in pairwise([*self._starts, len(text)]))
        self._has_body = [bool(text[heading.end : end].strip()) for heading, end in zip(headings, ends, strict=True)]

    def path(self, start: int, end: int) -> str | None:
        """The deepest path that every section with text in the passage shares."""
        first, last = bisect_right(self._starts, start) - 1, bisect_left(self._starts, end) - 1
        sections = range(first, last + 1)
        told = [section for section in sections if section < 0 or self._has_body[section]] or list(sections)
        paths = [self._headings[section].path if section >= 0 else () for section in told]
        shared = 0
        for titles in zip(*paths, strict=False):
            if len(set(titles)) > 1:
                break
            shared += 1
        return SEPARATOR.join((*paths[0][:shared], *self._header(start))) or None

    def _header(self, start: int) -> tuple[str, ...]:
        """The header of the table in whose rows the passage begins: without it they would say little."""
        last = bisect_right(self._rows, start) - 1
        if last < 0 or start >= self._tables[last].end or not self._tables[last].header:
            return ()
        return (self._tables[last].header,)
