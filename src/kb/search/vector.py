"""The dense leg: cosines of the question with chunks and with documents.

Every cosine in an answer is exact. Sign bits bound the others (`kb.index.sign_bits`), so that few are computed.
"""

from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kb.core.arrays import level_of, nonzero
from kb.index import sign_bits
from kb.index.kernels import Distances, Rows, SignBits, kernels
from kb.search.filter_scope import Scope
from kb.store.backend import Vector

MOST = 1.0001  # no cosine is larger, rounding included

Cosines = NDArray[np.float32]
Scan = Callable[[SignBits, SignBits, Rows | None], Distances]

NONE: Rows = np.empty(0, np.int64)


class Dense:
    """One question within one scope."""

    def __init__(self, scope: Scope, question: Vector, scan: Scan = kernels.distances) -> None:
        """`scan` computes the distances of many rows."""
        self._scope = scope
        self._snapshot = scope.snapshot
        self._question = question
        self._scan = scan
        assert len(question) == scope.snapshot.vectors.shape[1]  # the kernels do not check it

    def cosines(self, rows: Rows) -> Cosines:
        """Cosine with each row: the product, as both sides are unit vectors."""
        if rows is self._scope.rows and (held := self._scope.vectors) is not None:
            return kernels.cosines(held, self._question)
        return kernels.cosines(self._snapshot.vectors, self._question, rows)

    def with_documents(self, rows: Rows) -> Cosines:
        """Mean of the cosine with each chunk and of the one with its document."""
        return kernels.cosines_with_documents(self._snapshot, self._question, rows)

    def within_reach(self, rows: Rows, needed: Cosines) -> NDArray[np.int64]:
        """Positions of the rows whose mean can be as large as needed."""
        return kernels.within_reach(self._snapshot, self._question_bits, rows, needed)

    def likely(self, count: int) -> Rows:
        """All rows up to some distance: at least `count`, and seldom many more."""
        farthest = np.uint16(len(self._question))
        nearness = farthest - self._distances
        level = level_of(nearness, count) if len(nearness) > count else 0
        return self._where(nearness >= level)

    @property
    def bounds(self) -> Cosines:
        """Upper bound of the cosine with each row of the scope."""
        return self._snapshot.bound.cosines.take(self._distances)

    def most(self) -> float:
        """Upper bound of `with_documents` over all rows. Tighter than `MOST`, but it scans all sign bits."""
        own, whole = self._most(self._distances), self._most(self._doc_distances)
        return (own + max(own, whole)) / 2

    def _most(self, distances: Distances) -> float:
        return float(self._snapshot.bound.cosines[distances.min()]) if len(distances) else -1.0

    def reaching(self, cosine: float) -> Rows:
        """Every row whose cosine can be this large."""
        reach = self._snapshot.bound.reach(cosine)
        return self._where(self._distances <= np.uint16(reach)) if reach >= 0 else NONE

    def documents_reaching(self, cosine: float) -> Rows:
        """Every row of the documents, of several chunks, whose cosine can be this large."""
        reach = self._snapshot.bound.reach(cosine)
        if reach < 0:
            return NONE
        vector_rows = nonzero(self._doc_distances <= np.uint16(reach))
        if not self._scope.is_everything:
            vector_rows = self._scope.every_doc_vector_row.take(vector_rows)
        return self._snapshot.rows_of(self._snapshot.doc_vector_ords[vector_rows])

    def _where(self, holds: NDArray[np.bool_]) -> Rows:
        """The rows for which it holds, given in the order of `_distances`."""
        at = nonzero(holds)
        return at if self._scope.is_everything else self._scope.every_row.take(at)

    @cached_property
    def _question_bits(self) -> SignBits:
        words: SignBits = sign_bits.pack(self._question[None])[0]
        return words

    @cached_property
    def _distances(self) -> Distances:
        """Of every row of the scope."""
        rows = None if self._scope.is_everything else self._scope.every_row
        return self._scan(self._snapshot.sign_bits, self._question_bits, rows)

    @cached_property
    def _doc_distances(self) -> Distances:
        """Of every document of the scope that has several chunks."""
        vector_rows = None if self._scope.is_everything else self._scope.every_doc_vector_row
        return self._scan(self._snapshot.doc_sign_bits, self._question_bits, vector_rows)
