"""Pruning: score only the rows that can be among the best.

A few likely rows are scored first. The score of the k-th best of them is the threshold; a row that cannot reach it is
skipped. For most questions whose words occur here, the best rows by keywords set a threshold that no cosine alone can
reach: then every row without the words is skipped, for certain. In a large scope sign bits bound the cosines of the
others; these bounds fail rarely (figures: docs/decisions/010). Scores are exact.
"""

from dataclasses import dataclass

import numpy as np

from kb.core.arrays import distinct, level_of, nonzero
from kb.embedding.description import ScoreConstants
from kb.index.kernels import Rows
from kb.search.filter_scope import Scope
from kb.search.fusion import Fusion
from kb.search.keyword import Keywords, Scores
from kb.search.ranking import Scored, kth_best, kth_best_diversified, top_k_diversified, top_k_with_ties
from kb.search.static_leg import Static
from kb.search.vector import MOST, Dense

EXACT_UP_TO = 8192  # chunks up to which no bound is used: scoring all takes a millisecond at most
HANDFUL = 1024  # chunks up to which scoring all is faster than pruning
MARGIN = 1e-5  # so that no row is lost to rounding
SLACK = 0.08  # one standard deviation of a bound more where every row depends on one, and none is ruled out by words
FIRST = 64  # likely rows of each leg that are scored to set the threshold


@dataclass(frozen=True, slots=True)
class Legs:
    """The legs of a search; None for a leg that the mode does not use, or that counts nothing."""

    scope: Scope
    keywords: Keywords | None
    dense: Dense | None
    fusion: Fusion
    score: ScoreConstants = ScoreConstants()  # what the score of an answer is computed with
    static: Static | None = None  # only beside the dense leg

    def scored(self, rows: Rows) -> Scored:
        """Score these rows, as the answer shows them: between 0 and 1."""
        if self.keywords is None:
            assert self.dense is not None
            cosines = self.dense.cosines(rows)
            if self.static is not None:
                cosines = self.fusion.without_words(cosines, self.static.cosines(rows))
            return Scored(rows, shown(cosines))
        return self.scored_hits(Scored(rows, self.keywords.scores(rows)))

    def scored_hits(self, hits: Scored) -> Scored:
        """The same for rows whose keyword scores are known."""
        if self.dense is None:
            return Scored(hits.rows, self.fusion.sureness(hits.scores))
        scores = self.fusion.fused(hits.scores, self.dense.with_documents(hits.rows))
        if self.static is not None:
            scores = scores + self.fusion.by_static(self.static.cosines(hits.rows))
        return Scored(hits.rows, shown(scores))

    def top_k(self, found: Scored, count: int) -> Scored:
        if self._diversified:
            return top_k_diversified(found, self.scope.snapshot, count, self.fusion.constants.further_passage)
        return top_k_with_ties(found, self.scope.snapshot, count)

    def threshold(self, likely: Scored, top: int) -> float:
        """The score that a row must reach to be among the best. Scoring more rows can only raise it."""
        if self._diversified:
            return kth_best_diversified(likely, self.scope.snapshot, top, self.fusion.constants.further_passage)
        return kth_best(likely, top)

    @property
    def _diversified(self) -> bool:
        return self.dense is not None and self.keywords is not None

    @property
    def matches(self) -> int:
        """Number of chunks that match at all."""
        return self.scope.chunks if self.dense or not self.keywords else len(self.keywords.hits.rows)


def score_all(legs: Legs, _: int = 0) -> Scored:
    """Score every match, without pruning."""
    if legs.dense is None:
        assert legs.keywords is not None
        return legs.scored_hits(legs.keywords.hits)
    return legs.scored(legs.scope.every_row)


def prune(legs: Legs, top: int, exact_up_to: int = EXACT_UP_TO) -> Scored:
    """Score a superset of the `top` best rows: always up to `exact_up_to` chunks, and with rare misses beyond.

    `legs.keywords.best` must hold at least `first_of(top)` rows.
    """
    if legs.dense is None:
        assert legs.keywords is not None
        return legs.scored_hits(legs.keywords.best)
    few = legs.scope.chunks <= exact_up_to
    if legs.scope.chunks <= min(HANDFUL, exact_up_to):
        return score_all(legs)
    if legs.static is not None:
        return score_all(legs) if few else by_all(legs, legs.dense, legs.static, top)
    if legs.keywords is None:
        return score_all(legs) if few else by_meaning(legs, legs.dense, top)
    likely = legs.scored_hits(legs.keywords.best)
    threshold = legs.threshold(likely, top)
    if legs.fusion.cosine_for(threshold) <= MOST:
        return score_all(legs) if few else by_both(legs, legs.dense, legs.keywords, likely.rows, top)
    others = legs.keywords.reaching(legs.fusion.bm25_for(threshold, MOST), below=legs.keywords.level)
    if not few:
        others = within_bounds(legs, legs.dense, others, threshold)
    return likely.joined(legs.scored_hits(others))


def by_all(legs: Legs, dense: Dense, static: Static, top: int) -> Scored:
    """With the static leg, whose cosines with all rows are computed: the dense leg is all that must be bounded."""
    rows = legs.scope.every_row
    if legs.keywords is None:
        static_shares = np.float32(1 - legs.fusion.trust) * static.cosines(rows)
        most = static_shares + np.float32(legs.fusion.trust) * dense.bounds
        found = legs.scored(rows.take(np.argsort(-most)[: first_of(top)]))
        return legs.scored(rows.take(nonzero(most >= legs.threshold(found, top) - MARGIN - legs.fusion.trust * SLACK)))
    shares = legs.fusion.by_words(legs.keywords.scores(rows)) + legs.fusion.by_static(static.cosines(rows))
    level = level_of(shares, first_of(top))
    likely = distinct(rows.take(nonzero(shares >= level)), dense.likely(first_of(top)))
    threshold = legs.threshold(legs.scored(likely), top)
    needed = legs.fusion.cosines_for(threshold - MARGIN, shares) - np.float32(SLACK)
    return legs.scored(distinct(likely, rows.take(dense.within_reach(rows, needed))))


def by_meaning(legs: Legs, dense: Dense, top: int) -> Scored:
    likely = legs.scored(dense.likely(first_of(top)))
    threshold = legs.threshold(likely, top)
    if threshold <= 0:  # every row reaches it
        return score_all(legs)
    near = dense.reaching(threshold)
    # Each holds all rows up to some distance, so the larger one holds the other.
    return legs.scored(near) if len(near) > len(likely.rows) else likely


def by_both(legs: Legs, dense: Dense, keywords: Keywords, by_words: Rows, top: int) -> Scored:
    """For a threshold that a cosine alone can reach. `by_words`: the likely rows by keywords."""
    likely = distinct(by_words, dense.likely(first_of(top)))
    threshold = legs.threshold(legs.scored(likely), top)
    if threshold <= 0:
        return score_all(legs)
    # With keywords: even the largest cosine cannot make up for a lower BM25 score.
    hits = keywords.reaching(legs.fusion.bm25_for(threshold, dense.most()))
    # Without: the mean of two cosines must reach the threshold alone, so one of them is at least as large.
    alone = legs.fusion.cosine_for(threshold)
    with_words = within_bounds(legs, dense, hits, threshold).rows
    return legs.scored(distinct(likely, with_words, dense.reaching(alone), dense.documents_reaching(alone)))


def within_bounds(legs: Legs, dense: Dense, hits: Scored, threshold: float) -> Scored:
    """Those hits that can reach the threshold."""
    needed = legs.fusion.cosines_for(threshold - MARGIN, legs.fusion.by_words(hits.scores))
    return hits.at(dense.within_reach(hits.rows, needed))


def first_of(top: int) -> int:
    """Number of likely rows that set the threshold."""
    return max(FIRST, 2 * top)


def shown(scores: Scores) -> Scores:
    within: Scores = np.minimum(np.maximum(scores, np.float32(0)), np.float32(1))
    return within
