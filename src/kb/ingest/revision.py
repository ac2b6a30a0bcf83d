"""A new revision of a document: chunks that are written and not published yet."""

from array import array
from collections.abc import Sequence

import numpy as np

from kb.store.backend import Transaction, Vector
from kb.store.chunks import NewChunk

# Vectors that are kept in memory, 100 MB of them. Those of a larger document are read again from the database.
MAX_VECTORS = 65_536


class NewRevision:
    """What the index in memory needs of the chunks: neither their texts nor their terms.

    `replaces` is the published revision, where the same content is cut anew. `max_vectors` limits the vectors that
    are kept in memory; None keeps all.
    """

    def __init__(self, document_id: int, *, replaces: int = 0, max_vectors: int | None = MAX_VECTORS) -> None:
        self.document_id = document_id
        self.replaces = replaces
        self.number = 0  # until the first chunks are written
        self.published = False
        self.ids = array("q")
        self.terms = array("i")
        self.of_metadata: list[bool] = []
        self.vectors: list[Vector] = []  # batch by batch; empty if there are too many
        self._max_vectors = max_vectors

    def add(self, number: int, ids: Sequence[int], batch: Sequence[NewChunk]) -> None:
        self.number = number
        self.ids.extend(ids)
        self.terms.extend(chunk.terms for chunk in batch)
        self.of_metadata.extend(chunk.of_metadata for chunk in batch)
        if self._max_vectors is None or len(self.ids) <= self._max_vectors:
            self.vectors.append(np.stack([chunk.vector for chunk in batch]))
        else:
            self.vectors.clear()

    def __len__(self) -> int:
        return len(self.ids)

    def fill(self, tx: Transaction, into: Vector) -> None:
        """Write the vectors, in order, into an array; `tx` may be over, but its connection is open."""
        if self.vectors:
            np.concatenate(self.vectors, out=into)
        else:
            tx.vectors.load(np.array(self.ids, np.int64), into)
