"""The dense leg: the cosine of the question to chunks and to whole documents.

Every cosine that an answer rests on is exact. Which ones are worth computing is told by bounds (`kb.search.signs`).
"""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kb.arrays import level_of, nonzero
from kb.search import signs
from kb.search.live import Places
from kb.search.scope import EVEN, Scope
from kb.store.backend import Vector

AT_ONCE = 128  # rows that are copied together to be multiplied: the copy stays in the nearest of the large caches

MOST = 1.0001  # that any cosine is, rounding included

Cosines = NDArray[np.float32]

NONE: Places = np.empty(0, np.int64)


class Dense:
    """One question within one scope."""

    def __init__(self, scope: Scope, question: Vector) -> None:
        self._scope = scope
        self._snapshot = scope.snapshot
        self._question = question

    def cosines(self, places: Places) -> Cosines:
        """Both sides are unit vectors, so the product is the cosine."""
        if places is self._scope.places and (held := self._scope.vectors) is not None:
            return (held @ self._question)[: len(places)]
        return products(self._snapshot.vectors, places, self._question)

    def with_documents(self, places: Places) -> Cosines:
        """The mean of the cosine to each chunk and of that to the direction of its whole document."""
        own = self.cosines(places)
        several, rows = self._of_several(places)
        whole = own.copy()
        whole[several] = products(self._snapshot.wholes, rows, self._question)
        return mean_of(own, whole)

    def bounds(self, places: Places) -> Cosines:
        """What `cosines` are at most."""
        return self._snapshot.bound.of(self._snapshot.signs.picked(self._question_signs, places))

    def bounds_with_documents(self, places: Places, own: Cosines) -> Cosines:
        """What `with_documents` is at most. `own`: the chunks' bounds."""
        several, rows = self._of_several(places)
        whole = own.copy()
        whole[several] = self._snapshot.bound.of(self._snapshot.whole_signs.picked(self._question_signs, rows))
        return mean_of(own, whole)

    def _of_several(self, places: Places) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Which of these are of documents of several chunks, and the rows of `wholes` of those."""
        rows = self._snapshot.rows.take(self._snapshot.owners.take(places))
        several = nonzero(rows >= 0)
        return several, rows.take(several)

    def likely(self, count: int) -> Places:
        """All places up to some distance, about as many as asked for: some of the nearest are among them."""
        nearness = signs.FAR - self._distances
        level = level_of(nearness, count) if len(nearness) > count else 0
        return nonzero(nearness >= max(level, 1))  # 0: takes no part

    def most(self) -> float:
        """What `with_documents` is at most, for any place. Less than `MOST`, but everybody has to be looked at."""
        own, whole = self._most(self._distances), self._most(self._whole_distances)
        return (own + max(own, whole)) / 2

    def _most(self, distances: signs.Distances) -> float:
        least = distances.min(initial=signs.FAR)
        return float(self._snapshot.bound.of(least)) if least < signs.FAR else -1.0

    def reaching(self, cosine: float) -> Places:
        """Every place whose cosine may be this large."""
        reach = self._snapshot.bound.reach(cosine)
        return nonzero(self._distances <= np.uint16(reach)) if reach >= 0 else NONE

    def documents_reaching(self, cosine: float) -> Places:
        """Every place of the documents, of several chunks, whose direction's cosine may be this large."""
        reach = self._snapshot.bound.reach(cosine)
        if reach < 0:
            return NONE
        rows = nonzero(self._whole_distances <= np.uint16(reach))
        return self._snapshot.places_in(self._snapshot.whole_numbers[rows])

    @cached_property
    def _question_signs(self) -> signs.Words:
        words: signs.Words = signs.pack(self._question[None])[0]
        return words

    @cached_property
    def _distances(self) -> signs.Distances:
        """By place."""
        distances = self._snapshot.signs.distances(self._question_signs, self._scope.places)
        if self._some_are_dead:
            distances[~self._snapshot.alive] = signs.FAR
        return distances

    @cached_property
    def _whole_distances(self) -> signs.Distances:
        """By row of `wholes`."""
        rows = None
        if self._scope.numbers is not None:
            rows = self._snapshot.rows[self._scope.numbers]
            rows = rows[rows >= 0]
        distances = self._snapshot.whole_signs.distances(self._question_signs, rows)
        if self._some_are_dead:
            distances[~self._snapshot.document_alive[self._snapshot.whole_numbers]] = signs.FAR
        return distances

    @property
    def _some_are_dead(self) -> bool:
        return self._scope.numbers is None and not self._scope.is_everything


def products(vectors: Vector, rows: NDArray[np.integer[Any]], question: Vector) -> Cosines:
    """Of some rows, in their order: to the last digit the same for a row, whoever else is among them."""
    if len(rows) < len(vectors):
        return picked_products(vectors, rows, question)
    whole = len(vectors) - len(vectors) % EVEN
    rest = picked_products(vectors, np.arange(whole, len(vectors)), question)
    return np.concatenate((vectors[:whole] @ question, rest)).take(rows)


def picked_products(vectors: Vector, rows: NDArray[np.integer[Any]], question: Vector) -> Cosines:
    if not len(rows):
        return np.empty(0, np.float32)
    even = np.concatenate((rows, np.zeros(-len(rows) % EVEN, rows.dtype)))
    found = np.empty(len(even), np.float32)
    for start in range(0, len(even), AT_ONCE):
        np.dot(vectors.take(even[start : start + AT_ONCE], axis=0), question, out=found[start : start + AT_ONCE])
    return found[: len(rows)]


def mean_of(own: Cosines, whole: Cosines | float) -> Cosines:
    mean: Cosines = (own + whole) * np.float32(0.5)
    return mean
