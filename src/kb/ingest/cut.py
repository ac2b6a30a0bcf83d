"""Chooses where to cut a text: the cuts of least total cost.

A cut costs by its place, a passage by the room it leaves empty, so that two even passages beat a full one and a
rest. A section of level 1 or 2 is never joined with its neighbour unless one of them is below the least size, a
quarter of the budget; such small sections are joined until they are not. What is too long and has no better
place inside is cut between words, then between tokens, then anywhere.
"""

import sys
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import ceil, inf
from typing import NamedTuple

from kb.ingest.breaks import Layout, Rank

NOWHERE = sys.maxsize  # after every place in any text
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


class _Place(NamedTuple):
    at: int
    tokens: int  # before it
    rank: Rank
    level: int  # of the heading that stands here; 0 for none
    joined: float  # what going on past every heading before it would cost
    closed: bool  # no passage reaches beyond


def cut(text: str, layout: Layout, starts: Sequence[int], budget: int) -> Iterator[tuple[int, int]]:
    """Start and end of every passage, white space around it included; `starts` says where tokens start."""
    limit = budget * CHARACTERS_PER_TOKEN
    places = _thin(_places(layout, starts, budget, limit), budget)
    end = _Place(len(text), len(starts), Rank.HEADING, 0, places[-1].joined, closed=True)
    filled: list[_Place] = []
    for place, after in pairwise([*places, end]):
        filled.append(place)
        for at in cut_long(text, starts, place.at, after.at, budget):
            rank = Rank.WORD if text[at - 1].isspace() else Rank.TOKEN
            filled.append(_Place(at, bisect_left(starts, at), rank, 0, after.joined, closed=False))
    chosen = _cheapest([*filled, end], budget, limit)
    yield from pairwise(chosen)


def _places(layout: Layout, starts: Sequence[int], budget: int, limit: int) -> list[_Place]:
    at = list(_outside_whole(sorted({0, *layout.breaks}), layout.whole, starts, budget, limit))
    tokens = [bisect_left(starts, place) for place in at]
    levels = [layout.levels.get(place, 0) for place in at]
    closed = _closed(levels, tokens, len(starts), least=budget // 4)
    places = []
    joined = 0.0
    for place, count, level, is_closed in zip(at, tokens, levels, closed, strict=True):
        places.append(_Place(place, count, layout.breaks.get(place, Rank.HEADING), level, joined, is_closed))
        joined += JOIN_COST[level]
    return places


def _outside_whole(
    places: list[int], whole: list[tuple[int, int]], starts: Sequence[int], budget: int, limit: int
) -> Iterator[int]:
    """Leave out the places inside of something that fits and so stays whole."""
    spans = (
        (begin, end)
        for begin, end in whole
        if end - begin <= limit and bisect_left(starts, end) - bisect_left(starts, begin) <= budget
    )
    begin = end = -1
    for place in places:
        while end <= place and begin < NOWHERE:
            begin, end = next(spans, (NOWHERE, NOWHERE))
        if place <= begin:
            yield place


def _closed(levels: list[int], tokens: list[int], total: int, least: int) -> list[bool]:
    """Which places part two sections of level 1 or 2 that both are large enough to stand alone."""
    major = [index for index, level in enumerate(levels) if level in (1, 2)]
    edges = [0, *(tokens[index] for index in major), total]
    closed = [False] * len(levels)
    for index, before, here, after in zip(major, edges, edges[1:], edges[2:], strict=False):
        closed[index] = here - before >= least and after - here >= least
    return closed


def _thin(places: list[_Place], budget: int) -> list[_Place]:
    """Leave out places that have a better one close by: they would cost time and hardly change the choice."""
    close, far = max(1, budget // 16), budget // 4
    kept = places[:1]
    for place, after in pairwise(places[1:]):
        last = kept[-1]
        if place.tokens - last.tokens < close and not place.closed:
            if (place.rank, place.level) >= (last.rank, last.level):
                if after.tokens - last.tokens <= far:
                    continue
            elif len(kept) > 1 and not last.closed and place.tokens - kept[-2].tokens <= far:
                kept.pop()
        kept.append(place)
    return [*kept, places[-1]] if len(places) > 1 else kept


def _cheapest(places: list[_Place], budget: int, limit: int) -> list[int]:
    """The positions to cut at, first and last included, by dynamic programming from the end."""
    at = [place.at for place in places]
    tokens = [place.tokens for place in places]
    closed = [place.closed for place in places]
    joined = [place.joined for place in places]
    cost = [COST[place.rank] for place in places]
    least = max(1, budget // 4)
    fill = [(1 - n / budget) ** 2 + SMALL_COST * max(0.0, 1 - n / least) ** 2 for n in range(budget + 1)]
    end = len(places) - 1
    best = [0.0] * (end + 1)  # the cost of everything from a place to the end
    following = [end] * (end + 1)
    for here in range(end - 1, -1, -1):
        first, reach = tokens[here], at[here] + limit
        passed = joined[here] + JOIN_COST[places[here].level]
        lowest = inf
        for there in range(here + 1, end + 1):
            count = tokens[there] - first
            if count > budget or at[there] > reach:
                break
            total = fill[count] + cost[there] + joined[there] - passed + best[there]
            if total < lowest:
                lowest = total
                following[here] = there
            if closed[there]:
                break
        if lowest == inf:  # a single character that is too long
            following[here] = here + 1
            lowest = best[here + 1]
        best[here] = lowest
    chosen = [0]
    while chosen[-1] != end:
        chosen.append(following[chosen[-1]])
    return [at[place] for place in chosen]


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
    """The best place to cut in the second half of what lies between `begin` and `target`."""
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
