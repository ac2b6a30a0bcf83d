"""The best of what was scored, in an order that leaves nothing to luck."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kb.core.arrays import nonzero, where_first
from kb.index.chunk_index import Snapshot
from kb.index.kernels import Rows
from kb.search import fusion

SORTED = 256  # at once: sooner than the best of them would be picked


class Scored(NamedTuple):
    """Places with their scores."""

    rows: Rows
    scores: NDArray[np.float32]

    def where(self, kept: NDArray[np.bool_]) -> "Scored":
        return self.at(nonzero(kept))

    def at(self, some: NDArray[np.int64]) -> "Scored":
        return Scored(self.rows.take(some), self.scores.take(some))

    def joined(self, others: "Scored") -> "Scored":
        """Both, which have none in common."""
        return Scored(np.concatenate((self.rows, others.rows)), np.concatenate((self.scores, others.scores)))


def top_k_with_ties(found: Scored, snapshot: Snapshot, count: int) -> Scored:
    """At least the best, and who is level with the last of them, best first; ties by chunk id."""
    if len(found.rows) > max(count, SORTED):
        found = found.where(found.scores >= np.partition(found.scores, -count)[-count])
    return found.at(np.lexsort((snapshot.chunk_ids.take(found.rows), -found.scores)))


def top_k_diversified(found: Scored, snapshot: Snapshot, count: int) -> Scored:
    """So many of the best, after the scores of a document's further passages were lowered.

    Lowering never raises anybody, so who is not among the best before it may be left out once enough of those are
    still better afterwards.
    """
    depth = 2 * count
    while True:
        ranked = top_k_with_ties(found, snapshot, depth)
        diversified = top_k_with_ties(Scored(ranked.rows, penalised(ranked, snapshot)), snapshot, count)
        exhausted = len(ranked.rows) == len(found.rows)
        if exhausted or diversified.scores[count - 1] > ranked.scores[-1]:
            return Scored(diversified.rows[:count], diversified.scores[:count])
        depth *= 4


def kth_best(found: Scored, count: int) -> float:
    """The score that so many reach; 0 where there are not as many."""
    return float(np.partition(found.scores, -count)[-count]) if len(found.scores) >= count else 0.0


def kth_best_diversified(found: Scored, snapshot: Snapshot, count: int) -> float:
    """The score of the last that `top_k_diversified` finds, without their order; likewise."""
    ranked = found.at((-found.scores).argsort())
    return kth_best(Scored(ranked.rows, penalised(ranked, snapshot)), count)


def penalised(ranked: Scored, snapshot: Snapshot) -> NDArray[np.float32]:
    """The scores, with those lowered of whom the same document has a better one before."""
    scores = ranked.scores * np.float32(fusion.SECOND)
    firsts = where_first(snapshot.doc_ords.take(ranked.rows))
    scores[firsts] = ranked.scores[firsts]
    return scores
