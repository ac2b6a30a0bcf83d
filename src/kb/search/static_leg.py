"""The static leg: cosines of the question with passages, by vectors that read a hundred languages alike.

It counts as far as the other two cannot be trusted (`kb.search.fusion`). Every cosine is exact: the vectors are a
twelfth of the model's, so all of a scope are compared in about a millisecond per 100,000.
"""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kb.index.kernels import Rows, kernels
from kb.search.filter_scope import Scope

LARGEST = 32_767
Cosines = NDArray[np.float32]


class Static:
    """One question within one scope."""

    def __init__(self, scope: Scope, question: NDArray[np.float32]) -> None:
        self._scope = scope
        # In whole numbers, which are faster: the passages' vectors are bytes. The rounding changes the fourth digit.
        self._question = np.rint(question * (LARGEST / max(float(np.abs(question).max()), 1e-9))).astype(np.int16)
        self._scale = np.float32(1 / max(float(np.linalg.norm(self._question.astype(np.float32))), 1.0))

    def cosines(self, rows: Rows) -> Cosines:
        """Cosine with each row; 0 for a row without a vector."""
        if rows is self._scope.every_row:
            return self._every
        return self._computed(rows)

    @cached_property
    def _every(self) -> Cosines:
        return self._computed(None if self._scope.is_everything else self._scope.every_row)

    def _computed(self, rows: Rows | None) -> Cosines:
        snapshot = self._scope.snapshot
        found = kernels.static_cosines(snapshot.static_vectors, snapshot.static_scales, self._question, rows)
        found *= self._scale
        return found
