"""Chunks that are written and not published yet: what the index in memory will need, without their texts and terms."""

from array import array
from collections.abc import Sequence

import numpy as np

from kb.store.backend import Transaction, Vector
from kb.store.chunks import NewChunk

# Vectors that are kept at hand, 100 MB of them. Of a larger document they are read again from the database.
MAX_VECTORS = 65_536


class Written:
    """`vectors` says how many are kept at hand; all when None."""

    def __init__(self, vectors: int | None = MAX_VECTORS) -> None:
        self.ids = array("q")
        self.terms = array("i")
        self.of_metadata: list[bool] = []
        self._vectors: list[Vector] = []
        self._most = vectors

    def add(self, ids: Sequence[int], batch: Sequence[NewChunk]) -> None:
        self.ids.extend(ids)
        self.terms.extend(chunk.terms for chunk in batch)
        self.of_metadata.extend(chunk.of_metadata for chunk in batch)
        if self._most is None or len(self.ids) <= self._most:
            self._vectors.append(np.stack([chunk.vector for chunk in batch]))
        else:
            self._vectors.clear()

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def vectors(self) -> list[Vector]:
        """As they were added, batch by batch; none when there are too many."""
        return self._vectors

    def fill(self, tx: Transaction, into: Vector) -> None:
        """Write the vectors, in order, into an array; `tx` may be over, but its connection is open."""
        if self._vectors:
            np.concatenate(self._vectors, out=into)
        else:
            tx.vectors.load(np.array(self.ids, np.int64), into)
