"""The best of the scored rows, always in the same order."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kb.core.arrays import nonzero, where_first
from kb.index.chunk_index import Snapshot
from kb.index.kernels import Rows

SORTED = 256  # rows up to which sorting all is faster than selecting the best first


class Scored(NamedTuple):
    """Rows with their scores."""

    rows: Rows
    scores: NDArray[np.float32]

    def where(self, kept: NDArray[np.bool_]) -> "Scored":
        return self.at(nonzero(kept))

    def at(self, some: NDArray[np.int64]) -> "Scored":
        return Scored(self.rows.take(some), self.scores.take(some))

    def joined(self, others: "Scored") -> "Scored":
        """Both together. They must have no row in common."""
        return Scored(np.concatenate((self.rows, others.rows)), np.concatenate((self.scores, others.scores)))


def top_k_with_ties(found: Scored, snapshot: Snapshot, count: int) -> Scored:
    """Top k and the rows that tie with the last of them, or a few more; best first, ties by chunk id."""
    if len(found.rows) > max(count, SORTED):
        found = found.where(found.scores >= np.partition(found.scores, -count)[-count])
    return found.at(np.lexsort((snapshot.chunk_ids.take(found.rows), -found.scores)))


def top_k_diversified(found: Scored, snapshot: Snapshot, count: int, factor: float) -> Scored:
    """Top k after the per-document penalty: all passages of a document but its best one times `factor`.

    A penalty never raises a score: once k penalised scores beat the last unpenalised one, no deeper row can get in.
    """
    depth = 2 * count
    while True:
        ranked = top_k_with_ties(found, snapshot, depth)
        diversified = top_k_with_ties(Scored(ranked.rows, penalised(ranked, snapshot, factor)), snapshot, count)
        exhausted = len(ranked.rows) == len(found.rows)
        if exhausted or diversified.scores[count - 1] > ranked.scores[-1]:
            return Scored(diversified.rows[:count], diversified.scores[:count])
        depth *= 4


def kth_best(found: Scored, count: int) -> float:
    """The score of the k-th best; 0 if there are fewer."""
    return float(np.partition(found.scores, -count)[-count]) if len(found.scores) >= count else 0.0


def kth_best_diversified(found: Scored, snapshot: Snapshot, count: int, factor: float) -> float:
    """The score of the last row that `top_k_diversified` returns; 0 if there are fewer."""
    ranked = found.at((-found.scores).argsort())
    return kth_best(Scored(ranked.rows, penalised(ranked, snapshot, factor)), count)


def penalised(ranked: Scored, snapshot: Snapshot, factor: float) -> NDArray[np.float32]:
    """Penalise every passage of a document but its best one."""
    scores = ranked.scores * np.float32(factor)
    firsts = where_first(snapshot.doc_ords.take(ranked.rows))
    scores[firsts] = ranked.scores[firsts]
    return scores
