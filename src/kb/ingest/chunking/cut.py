"""Chooses where to cut a text: the cuts of least total cost.

A cut costs by its rank, a passage by the room it leaves empty, so that two even passages beat a full one and a
rest. A section of level 1 or 2 is never joined with its neighbour unless one of them is below the least size, a
quarter of the budget; such small sections are joined until they are not. What is too long and has no better
break inside is cut between words, then between tokens, then anywhere.
"""

import sys
import unicodedata
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise
from math import ceil, inf
from typing import NamedTuple

import numpy as np

from kb.core.types import Interrupt
from kb.ingest.chunking.breaks import Layout, Rank, Spans, breaks

NOWHERE = sys.maxsize  # after every position in any text
AT_ONCE = 4096  # candidates between two calls of `interrupt`
CHARACTERS_PER_TOKEN = 8  # more than this many times the budget is too long, however few tokens it has

# What a cut costs. An empty passage would cost 1, one below the least size up to 4.
COST = {
    Rank.HEADING: 0.0,
    Rank.BLOCK: 0.1,
    Rank.ITEM: 0.2,
    Rank.LINE: 0.8,
    Rank.SENTENCE: 1.2,
    Rank.WRAP: 1.5,
    Rank.BARE: 2.0,
    Rank.WORD: 3.0,
    Rank.TOKEN: 5.0,
}
# What going on past a heading costs, by its level.
JOIN_COST = (0.0, 1.5, 1.0, 0.2, 0.1, 0.05, 0.05)
SMALL_COST = 3.0


class _Candidate(NamedTuple):
    """A position at which the text may be cut."""

    at: int
    tokens: int  # before it
    rank: int
    level: int  # of the heading that stands here; 0 for none
    joined: float  # what going on past every heading before it would cost
    closed: bool  # no passage reaches beyond


class _Candidates:
    """Candidates as columns: there may be millions."""

    def __init__(self) -> None:
        self.at = array("i")
        self.tokens = array("i")
        self.ranks = bytearray()
        self.levels = bytearray()
        self.joined = array("d")
        self.closed = bytearray()

    def append(self, candidate: _Candidate) -> None:
        self.at.append(candidate.at)
        self.tokens.append(candidate.tokens)
        self.ranks.append(candidate.rank)
        self.levels.append(candidate.level)
        self.joined.append(candidate.joined)
        self.closed.append(candidate.closed)


def cut(
    text: str, layout: Layout, starts: "array[int]", budget: int, interrupt: Interrupt
) -> Iterator[tuple[int, int]]:
    """Start and end of every passage, white space around it included; `starts` says where tokens start."""
    limit = budget * CHARACTERS_PER_TOKEN
    every = _every_candidate(text, layout, starts, budget, interrupt)
    filled = _Candidates()
    last = None
    for candidate in _thin(every, budget):
        if last is not None:
            _fill(filled, text, starts, last, candidate, budget, interrupt)
        filled.append(candidate)
        last = candidate
    assert last is not None
    end = _Candidate(len(text), len(starts), Rank.HEADING, 0, last.joined, closed=True)
    _fill(filled, text, starts, last, end, budget, interrupt)
    filled.append(end)
    yield from pairwise(_cheapest(filled, budget, limit, interrupt))


def _fill(
    filled: _Candidates,
    text: str,
    starts: "array[int]",
    candidate: _Candidate,
    after: _Candidate,
    budget: int,
    interrupt: Interrupt,
) -> None:
    """Add candidates between two others if the text between them is too long for one passage."""
    if after.tokens - candidate.tokens <= budget and after.at - candidate.at <= budget * CHARACTERS_PER_TOKEN:
        return
    for number, at in enumerate(cut_long(text, starts, candidate.at, after.at, budget)):
        if number % AT_ONCE == 0:
            interrupt()
        rank = Rank.WORD if text[at - 1].isspace() else Rank.TOKEN
        filled.append(_Candidate(at, bisect_left(starts, at), rank, 0, after.joined, closed=False))


def _every_candidate(
    text: str, layout: Layout, starts: "array[int]", budget: int, interrupt: Interrupt
) -> Iterator[_Candidate]:
    tokens = np.asarray(starts)
    closed = _closed(layout, starts, budget // 4, interrupt)
    next_closed = next(closed, NOWHERE)
    joined = 0.0
    found = _outside_whole(breaks(text, layout, interrupt), layout.whole, starts, budget)
    while some := list(islice(found, AT_ONCE)):
        interrupt()
        counts = np.searchsorted(tokens, np.array([at for at, _, _ in some], np.int32)).tolist()
        for (at, rank, level), count in zip(some, counts, strict=True):
            is_closed = at == next_closed
            if is_closed:
                next_closed = next(closed, NOWHERE)
            yield _Candidate(at, count, rank, level, joined, is_closed)
            joined += JOIN_COST[level]


def _outside_whole(
    found: Iterable[tuple[int, int, int]], whole: Spans, starts: "array[int]", budget: int
) -> Iterator[tuple[int, int, int]]:
    """Leave out the candidates inside of something that fits and so stays whole."""
    spans = (
        (begin, end)
        for begin, end in whole
        if end - begin <= budget * CHARACTERS_PER_TOKEN
        and bisect_left(starts, end) - bisect_left(starts, begin) <= budget
    )
    begin = end = -1
    for candidate in found:
        while end <= candidate[0] and begin < NOWHERE:
            begin, end = next(spans, (NOWHERE, NOWHERE))
        if candidate[0] <= begin:
            yield candidate


def _closed(layout: Layout, starts: "array[int]", least: int, interrupt: Interrupt) -> Iterator[int]:
    """The candidates that part two sections of level 1 or 2 which both are large enough to stand alone."""
    before, here = 0, None
    for at, tokens in _major(layout, starts, interrupt):
        if here is not None:
            if here[1] - before >= least and tokens - here[1] >= least:
                yield here[0]
            before = here[1]
        here = at, tokens
    if here is not None and here[1] - before >= least and len(starts) - here[1] >= least:
        yield here[0]


def _major(layout: Layout, starts: "array[int]", interrupt: Interrupt) -> Iterator[tuple[int, int]]:
    """The beginnings of sections of level 1 or 2, with the tokens before each."""
    for first in range(0, len(layout.at), AT_ONCE):
        interrupt()
        levels = np.frombuffer(layout.levels[first : first + AT_ONCE], np.uint8)
        at = np.asarray(layout.at[first : first + AT_ONCE])[(levels == 1) | (levels == 2)]
        yield from zip(at.tolist(), np.searchsorted(np.asarray(starts), at).tolist(), strict=True)


def _thin(candidates: Iterator[_Candidate], budget: int) -> Iterator[_Candidate]:
    """Leave out candidates that have a better one close by: they would cost time and hardly change the choice.

    The first and the last stay.
    """
    close, far = max(1, budget // 16), budget // 4
    before, last = None, next(candidates)  # the latest two that are kept
    candidate = next(candidates, last)
    for after in candidates:
        skips = replaces = False
        if candidate.tokens - last.tokens < close and not candidate.closed:
            if (candidate.rank, candidate.level) >= (last.rank, last.level):
                skips = after.tokens - last.tokens <= far
            elif before is not None and not last.closed:
                replaces = candidate.tokens - before.tokens <= far
        if not skips:
            if not replaces:
                if before is not None:
                    yield before
                before = last
            last = candidate
        candidate = after
    if before is not None:
        yield before
    yield last
    if candidate is not last:
        yield candidate


def _cheapest(candidates: _Candidates, budget: int, limit: int, interrupt: Interrupt) -> Iterator[int]:
    """The positions to cut at, first and last included, by dynamic programming from the end."""
    at, tokens, closed, joined = candidates.at, candidates.tokens, candidates.closed, candidates.joined
    costs = [COST[rank] for rank in Rank]
    ranks, levels = candidates.ranks, candidates.levels
    least = max(1, budget // 4)
    fill = [(1 - n / budget) ** 2 + SMALL_COST * max(0.0, 1 - n / least) ** 2 for n in range(budget + 1)]
    end = len(at) - 1
    best = array("d", bytes(8 * (end + 1)))  # the cost of everything from a candidate to the end
    following = array("i", bytes(4 * (end + 1)))
    for here in range(end - 1, -1, -1):
        if here % AT_ONCE == 0:
            interrupt()
        first, reach = tokens[here], at[here] + limit
        passed = joined[here] + JOIN_COST[levels[here]]
        lowest = inf
        for there in range(here + 1, end + 1):
            count = tokens[there] - first
            if count > budget or at[there] > reach:
                break
            total = fill[count] + costs[ranks[there]] + joined[there] - passed + best[there]
            if total < lowest:
                lowest = total
                following[here] = there
            if closed[there]:
                break
        if lowest == inf:  # a single character that is too long
            following[here] = here + 1
            lowest = best[here + 1]
        best[here] = lowest
    here = 0
    while here != end:
        yield at[here]
        here = following[here]
    yield at[end]


def cut_long(text: str, starts: Sequence[int], begin: int, end: int, budget: int) -> Iterator[int]:
    """Where to cut a stretch that is too long, in even parts: between words, else between tokens, else anywhere."""
    limit = budget * CHARACTERS_PER_TOKEN
    last = bisect_left(starts, end)
    while begin < end:
        first = bisect_left(starts, begin)
        by_characters = ceil((end - begin) / limit)
        parts = max(ceil((last - first) / budget), by_characters)
        if parts <= 1:
            return
        target = begin + ceil((end - begin) / by_characters)
        token = first + max(1, ceil((last - first) / parts))
        if token < last:
            target = min(target, starts[token])
        begin = _near(text, starts, begin, min(target, end - 1))
        yield begin


def _near(text: str, starts: Sequence[int], begin: int, target: int) -> int:
    """The best position to cut at in the second half of what lies between `begin` and `target`."""
    half = begin + (target - begin) // 2
    nearest = bisect_right(starts, target) - 1
    for token in range(nearest, -1, -1):
        if starts[token] <= half:
            break
        if text[starts[token] - 1].isspace():
            return starts[token]
    if nearest >= 0 and starts[nearest] > half:
        return starts[nearest]
    at = target
    while at > half + 1 and (unicodedata.combining(text[at]) or text[at] in "\u200d\ufe0f"):
        at -= 1
    return max(at, begin + 1)
