"""The best of what was scored, in an order that leaves nothing to luck."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kb.search import fuse
from kb.search.live import Places, Snapshot


class Scored(NamedTuple):
    """Places with their scores."""

    places: Places
    scores: NDArray[np.float32]

    def where(self, kept: NDArray[np.bool_]) -> "Scored":
        at = np.flatnonzero(kept)
        return Scored(self.places[at], self.scores[at])


def best(found: Scored, snapshot: Snapshot, count: int) -> Scored:
    """The best, and who is level with the last of them, best first; ties by chunk id."""
    places, scores = found
    if len(places) > count:
        keep = scores >= np.partition(scores, len(scores) - count)[len(scores) - count]
        places, scores = places[keep], scores[keep]
    order = np.lexsort((snapshot.chunk_ids[places], -scores))
    return Scored(places[order], scores[order])


def best_mixed(found: Scored, snapshot: Snapshot, count: int) -> Scored:
    """The same, after the scores of a document's further passages were lowered.

    Lowering never raises anybody, so who is not among the best before it may be left out once enough of those are
    still better afterwards.
    """
    depth = 2 * count
    while True:
        ranked = best(found, snapshot, depth)
        _, firsts = np.unique(snapshot.owners[ranked.places], return_index=True)
        lowered = ranked.scores * np.float32(fuse.SECOND)
        lowered[firsts] = ranked.scores[firsts]
        mixed = best(Scored(ranked.places, lowered), snapshot, count)
        everybody = len(ranked.places) == len(found.places)
        if everybody or mixed.scores[count - 1] > ranked.scores[-1]:
            return Scored(mixed.places[:count], mixed.scores[:count])
        depth *= 4
