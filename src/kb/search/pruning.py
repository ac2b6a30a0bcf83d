"""Whom to score: everybody who could be among the best.

A few likely ones are scored first. The last of the best of them is the bar: whoever cannot reach it is left out unseen.
Where the best by keywords set a bar that no meaning alone can reach, which is so for most questions in words that are
known here, whoever lacks the words is left out for certain. In a large scope the signs of vectors bound the cosines of
the others; bounds hold but for rare chance (figures: docs/decisions/010). Scores are exact.
"""

from dataclasses import dataclass

import numpy as np

from kb.core.arrays import distinct
from kb.index.kernels import Rows
from kb.search import fusion
from kb.search.filter_scope import Scope
from kb.search.keyword import Keywords, Scores
from kb.search.ranking import Scored, kth_best, kth_best_diversified, top_k_diversified, top_k_with_ties
from kb.search.vector import MOST, Dense

EXACT_UP_TO = 8192  # chunks among which nothing is left to chance: scoring each takes a millisecond at most
HANDFUL = 1024  # chunks that are scored before it could be said which of them need not be
MARGIN = 1e-5  # so that nobody is missed for the last digits of a score
FIRST = 64  # likely ones of each leg that are scored to set the bar


@dataclass(frozen=True, slots=True)
class Legs:
    """What each leg says about a question; None where the mode does without it."""

    scope: Scope
    keywords: Keywords | None
    dense: Dense | None
    trust: float

    def scored(self, rows: Rows) -> Scored:
        """As the answer shows them: below zero is as good as zero."""
        if self.keywords is None:
            assert self.dense is not None
            return Scored(rows, shown(self.dense.cosines(rows)))
        return self.scored_hits(Scored(rows, self.keywords.scores(rows)))

    def scored_hits(self, hits: Scored) -> Scored:
        """The same of places of which it is known what keywords say."""
        if self.dense is None:
            return Scored(hits.rows, fusion.sureness(hits.scores))
        cosines = self.dense.with_documents(hits.rows)
        return Scored(hits.rows, shown(fusion.fused(hits.scores, cosines, self.trust)))

    def top_k(self, found: Scored, count: int) -> Scored:
        return (top_k_diversified if self._diversified else top_k_with_ties)(found, self.scope.snapshot, count)

    def threshold(self, likely: Scored, top: int) -> float:
        """What a place must reach to be among the best: the more are scored, the higher it can only get."""
        if self._diversified:
            return kth_best_diversified(likely, self.scope.snapshot, top)
        return kth_best(likely, top)

    @property
    def _diversified(self) -> bool:
        return self.dense is not None and self.keywords is not None

    @property
    def matches(self) -> int:
        """How many chunks are an answer, if only a bad one."""
        return self.scope.chunks if self.dense or not self.keywords else len(self.keywords.hits.rows)


def score_all(legs: Legs, _: int = 0) -> Scored:
    """All that are an answer, without any shortcut."""
    if legs.dense is None:
        assert legs.keywords is not None
        return legs.scored_hits(legs.keywords.hits)
    return legs.scored(legs.scope.every_row)


def prune(legs: Legs, top: int, exact_up_to: int = EXACT_UP_TO) -> Scored:
    """A superset of the `top` best: for certain in a scope of so many chunks, but for rare chance in a larger one.

    The best by keywords must be known, as many as `first_of` says.
    """
    if legs.dense is None:
        assert legs.keywords is not None
        return legs.scored_hits(legs.keywords.best)
    few = legs.scope.chunks <= exact_up_to
    if legs.scope.chunks <= min(HANDFUL, exact_up_to):
        return score_all(legs)
    if legs.keywords is None:
        return score_all(legs) if few else by_meaning(legs, legs.dense, top)
    likely = legs.scored_hits(legs.keywords.best)
    threshold = legs.threshold(likely, top)
    if fusion.cosine_for(threshold, legs.trust) <= MOST:
        return score_all(legs) if few else by_both(legs, legs.dense, legs.keywords, likely.rows, top)
    others = legs.keywords.reaching(fusion.bm25_for(threshold, MOST, legs.trust), below=legs.keywords.level)
    if not few:
        others = within_bounds(legs, legs.dense, others, threshold)
    return likely.joined(legs.scored_hits(others))


def by_meaning(legs: Legs, dense: Dense, top: int) -> Scored:
    likely = legs.scored(dense.likely(first_of(top)))
    threshold = legs.threshold(likely, top)
    if threshold <= 0:  # anybody is as good as the last
        return score_all(legs)
    near = dense.reaching(threshold)
    # Both are all up to some distance, so one holds the other.
    return legs.scored(near) if len(near) > len(likely.rows) else likely


def by_both(legs: Legs, dense: Dense, keywords: Keywords, by_words: Rows, top: int) -> Scored:
    """Where meaning may do without keywords. `by_words`: likely ones."""
    likely = distinct(by_words, dense.likely(first_of(top)))
    threshold = legs.threshold(legs.scored(likely), top)
    if threshold <= 0:
        return score_all(legs)
    # With keywords: the nearest of all cannot make up for too few of them.
    hits = keywords.reaching(fusion.bm25_for(threshold, dense.most(), legs.trust))
    # Without: the mean of two cosines has to do alone, and then one of them is at least as large as that.
    alone = fusion.cosine_for(threshold, legs.trust)
    with_words = within_bounds(legs, dense, hits, threshold).rows
    return legs.scored(distinct(likely, with_words, dense.reaching(alone), dense.documents_reaching(alone)))


def within_bounds(legs: Legs, dense: Dense, hits: Scored, threshold: float) -> Scored:
    """Those of them who may reach the bar."""
    needed = fusion.cosines_for(threshold - MARGIN, hits.scores, legs.trust)
    return hits.at(dense.within_reach(hits.rows, needed))


def first_of(top: int) -> int:
    """How many likely ones set the bar."""
    return max(FIRST, 2 * top)


def shown(scores: Scores) -> Scores:
    within: Scores = np.minimum(np.maximum(scores, np.float32(0)), np.float32(1))
    return within
