"""Whom to score: everybody who could be among the best.

A few likely ones are scored first. The last of the best of them is the bar: whoever cannot reach it is left out unseen.
Where the best by keywords set a bar that no meaning alone can reach, which is so for most questions in words that are
known here, whoever lacks the words is left out for certain. In a large scope the signs of vectors bound the cosines of
the others; bounds hold but for rare chance (figures: docs/decisions/010). Scores are exact.
"""

from dataclasses import dataclass

import numpy as np

from kb.arrays import distinct
from kb.search import fuse
from kb.search.keywords import Keywords, Scores
from kb.search.live import Places
from kb.search.rank import Scored, best, best_mixed
from kb.search.scope import Scope
from kb.search.vectors import MOST, Dense

EXACT_UP_TO = 8192  # chunks among which nothing is left to chance: scoring each takes a millisecond at most
HANDFUL = 1024  # chunks that are scored before it could be said which of them need not be
FIRST = 64  # likely ones of each leg that are scored to set the bar


@dataclass(frozen=True, slots=True)
class Legs:
    """What each leg says about a question; None where the mode does without it."""

    scope: Scope
    keywords: Keywords | None
    dense: Dense | None
    trust: float

    def scores(self, places: Places) -> Scores:
        """As the answer shows them: below zero is as good as zero."""
        if self.dense is None:
            assert self.keywords is not None
            scores = fuse.sureness(self.keywords.scores(places))
        elif self.keywords is None:
            scores = self.dense.cosines(places)
        else:
            scores = fuse.fused(self.keywords.scores(places), self.dense.with_documents(places), self.trust)
        return np.minimum(np.maximum(scores, np.float32(0)), np.float32(1))

    def best(self, places: Places, count: int) -> Scored:
        mixed = self.dense is not None and self.keywords is not None
        return (best_mixed if mixed else best)(Scored(places, self.scores(places)), self.scope.snapshot, count)

    @property
    def matches(self) -> int:
        """How many chunks are an answer, if only a bad one."""
        return self.scope.chunks if self.dense or not self.keywords else len(self.keywords.hits.places)


def everybody(legs: Legs, _: int = 0) -> Places:
    """All that are an answer, without any shortcut."""
    if legs.dense is None:
        assert legs.keywords is not None
        return legs.keywords.hits.places
    return legs.scope.every_place()


def candidates(legs: Legs, top: int, exact_up_to: int = EXACT_UP_TO) -> Places:
    """A superset of the `top` best: for certain in a scope of so many chunks, but for rare chance in a larger one."""
    if legs.dense is None:
        assert legs.keywords is not None
        return legs.keywords.best(top)
    few = legs.scope.chunks <= exact_up_to
    if legs.scope.chunks <= min(HANDFUL, exact_up_to):
        return everybody(legs)
    if legs.keywords is None:
        return everybody(legs) if few else by_meaning(legs, legs.dense, top)
    likely = legs.keywords.best(first_of(top))
    bar = bar_of(legs, likely, top)
    if fuse.cosine_for(bar, legs.trust) <= MOST:
        return everybody(legs) if few else by_both(legs, legs.dense, legs.keywords, likely, top)
    hits = legs.keywords.reaching(fuse.bm25_for(bar, MOST, legs.trust))
    return hits.places if few else distinct(likely, within_bounds(legs, legs.dense, hits, bar))


def by_meaning(legs: Legs, dense: Dense, top: int) -> Places:
    likely = dense.likely(first_of(top))
    bar = bar_of(legs, likely, top)
    if bar <= 0:  # anybody is as good as the last
        return everybody(legs)
    near = dense.reaching(bar)
    return max(likely, near, key=len)  # both are all up to some distance, so one holds the other


def by_both(legs: Legs, dense: Dense, keywords: Keywords, likely: Places, top: int) -> Places:
    """Where meaning may do without keywords. `likely`: by keywords."""
    likely = distinct(likely, dense.likely(first_of(top)))
    bar = bar_of(legs, likely, top)
    if bar <= 0:
        return everybody(legs)
    # With keywords: the nearest of all cannot make up for too few of them.
    hits = keywords.reaching(fuse.bm25_for(bar, dense.most(), legs.trust))
    # Without: the mean of two cosines has to do alone, and then one of them is at least as large as that.
    alone = fuse.cosine_for(bar, legs.trust)
    return distinct(
        likely, within_bounds(legs, dense, hits, bar), dense.reaching(alone), dense.documents_reaching(alone)
    )


def within_bounds(legs: Legs, dense: Dense, hits: Scored, bar: float) -> Places:
    """Those of them who may reach the bar."""
    for bounds in (dense.rough_bounds, dense.bounds):
        hits = hits.where(fuse.fused(hits.scores, bounds(hits.places), legs.trust) >= bar)
    return hits.places


def first_of(top: int) -> int:
    """How many likely ones set the bar."""
    return max(FIRST, 2 * top)


def bar_of(legs: Legs, likely: Places, top: int) -> float:
    """What a place must reach to be among the best: the more are scored, the higher it can only get."""
    scores = legs.best(likely, top).scores
    return float(scores[top - 1]) if len(scores) >= top else 0.0
