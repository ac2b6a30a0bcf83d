"""The dense leg: the cosine of the question to chunks and to whole documents.

Every cosine that an answer rests on is exact. Which ones are worth computing is told by bounds (`kb.index.sign_bits`).
"""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kb.core.arrays import level_of, nonzero
from kb.index import kernels, sign_bits
from kb.index.kernels import Distances, Rows, SignBits
from kb.search.filter_scope import Scope
from kb.store.backend import Vector

MOST = 1.0001  # that any cosine is, rounding included

Cosines = NDArray[np.float32]

NONE: Rows = np.empty(0, np.int64)


class Dense:
    """One question within one scope."""

    def __init__(self, scope: Scope, question: Vector) -> None:
        self._scope = scope
        self._snapshot = scope.snapshot
        self._question = question
        assert len(question) == scope.snapshot.vectors.shape[1]  # nobody looks again

    def cosines(self, rows: Rows) -> Cosines:
        """Both sides are unit vectors, so the product is the cosine."""
        if rows is self._scope.rows and (held := self._scope.vectors) is not None:
            return kernels.cosines(held, self._question)
        return kernels.cosines(self._snapshot.vectors, self._question, rows)

    def with_documents(self, rows: Rows) -> Cosines:
        """The mean of the cosine to each chunk and of that to the direction of its whole document."""
        held = self._snapshot
        return kernels.cosines_with_documents(
            held.vectors, held.doc_vectors, self._question, held.doc_ords, held.doc_vector_rows, rows
        )

    def within_reach(self, rows: Rows, needed: Cosines) -> NDArray[np.int64]:
        """Which of these may have as large a mean as they need."""
        held = self._snapshot
        return kernels.within_reach(
            held.sign_bits,
            held.doc_sign_bits,
            self._question_bits,
            held.doc_ords,
            held.doc_vector_rows,
            held.bound.cosines,
            rows,
            needed,
        )

    def likely(self, count: int) -> Rows:
        """All places up to some distance, about as many as asked for: some of the nearest are among them."""
        farthest = np.uint16(len(self._question))
        nearness = farthest - self._distances
        level = level_of(nearness, count) if len(nearness) > count else 0
        return self._where(nearness >= level)

    def most(self) -> float:
        """What `with_documents` is at most, for any place. Less than `MOST`, but everybody has to be looked at."""
        own, whole = self._most(self._distances), self._most(self._doc_distances)
        return (own + max(own, whole)) / 2

    def _most(self, distances: Distances) -> float:
        return float(self._snapshot.bound.cosines[distances.min()]) if len(distances) else -1.0

    def reaching(self, cosine: float) -> Rows:
        """Every place whose cosine may be this large."""
        reach = self._snapshot.bound.reach(cosine)
        return self._where(self._distances <= np.uint16(reach)) if reach >= 0 else NONE

    def documents_reaching(self, cosine: float) -> Rows:
        """Every place of the documents, of several chunks, whose direction's cosine may be this large."""
        reach = self._snapshot.bound.reach(cosine)
        if reach < 0:
            return NONE
        vector_rows = nonzero(self._doc_distances <= np.uint16(reach))
        if not self._scope.is_everything:
            vector_rows = self._scope.every_doc_vector_row.take(vector_rows)
        return self._snapshot.rows_of(self._snapshot.doc_vector_ords[vector_rows])

    def _where(self, holds: NDArray[np.bool_]) -> Rows:
        """The places of those of whom it holds, in the order of `_distances`."""
        at = nonzero(holds)
        return at if self._scope.is_everything else self._scope.every_row.take(at)

    @cached_property
    def _question_bits(self) -> SignBits:
        words: SignBits = sign_bits.pack(self._question[None])[0]
        return words

    @cached_property
    def _distances(self) -> Distances:
        """Of every place of the scope."""
        rows = None if self._scope.is_everything else self._scope.every_row
        return sign_bits.distances(self._snapshot.sign_bits, self._question_bits, rows)

    @cached_property
    def _doc_distances(self) -> Distances:
        """Of every whole document of the scope that has several chunks."""
        vector_rows = None if self._scope.is_everything else self._scope.every_doc_vector_row
        return sign_bits.distances(self._snapshot.doc_sign_bits, self._question_bits, vector_rows)
