"""The documents within the filter of a search, in one snapshot.

Computing a scope takes longer than searching it, so the latest ones are cached until something is written.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kb.core.arrays import nonzero
from kb.core.lru import VersionedCache
from kb.core.searches import EVERYTHING, Filter
from kb.index.chunk_index import DocOrds, Snapshot
from kb.index.kernels import Rows
from kb.store import documents
from kb.store.backend import Database, Vector

KEPT = 32
SIDE_BY_SIDE = 2048  # chunks up to which a scope keeps a copy of its vectors (3 MB at 384 dimensions)


@dataclass(frozen=True)
class Scope:
    """The documents and chunks that take part, and their statistics for BM25."""

    snapshot: Snapshot
    doc_ords: DocOrds | None  # ascending; None for every document that is alive
    rows: Rows | None  # of their chunks, likewise
    holds: NDArray[np.bool_]  # by row
    holds_document: NDArray[np.bool_]  # by ordinal
    chunks: int
    documents: int
    terms: int
    matching: int | None  # documents that the filter lets through, those without chunks too; None without a filter

    @property
    def is_everything(self) -> bool:
        """Whether every row of the snapshot takes part; dead rows do not."""
        return self.chunks == len(self.snapshot.chunk_ids)

    @property
    def mean_length(self) -> float:
        return self.terms / max(self.chunks, 1) or 1.0

    @property
    def mean_document_length(self) -> float:
        return self.terms / max(self.documents, 1) or 1.0

    @cached_property
    def every_row(self) -> Rows:
        return nonzero(self.snapshot.alive) if self.rows is None else self.rows

    @cached_property
    def vectors(self) -> Vector | None:
        """Contiguous copy of a small scope's vectors: repeated filtered queries read all of it."""
        return None if self.rows is None or self.chunks > SIDE_BY_SIDE else self.snapshot.vectors[self.rows]

    @cached_property
    def every_doc_vector_row(self) -> Rows:
        """Rows of its documents in `doc_vectors`."""
        doc_ords = nonzero(self.snapshot.doc_alive) if self.doc_ords is None else self.doc_ords
        vector_rows = self.snapshot.doc_vector_rows.take(doc_ords)
        return vector_rows.take(nonzero(vector_rows >= 0)).astype(np.int64)

    @staticmethod
    def unfiltered(snapshot: Snapshot) -> "Scope":
        return Scope(
            snapshot,
            doc_ords=None,
            rows=None,
            holds=snapshot.alive,
            holds_document=snapshot.doc_alive,
            chunks=snapshot.count,
            documents=snapshot.document_count,
            terms=snapshot.terms,
            matching=None,
        )

    @staticmethod
    def of_documents(snapshot: Snapshot, document_ids: NDArray[np.int64]) -> "Scope":
        doc_ords = snapshot.doc_ords_of(document_ids).astype(np.int64)
        doc_ords = np.sort(doc_ords[doc_ords >= 0])
        rows = snapshot.rows_of(doc_ords)
        return Scope(
            snapshot,
            doc_ords=doc_ords,
            rows=rows,
            holds=marked(rows, len(snapshot.alive)),
            holds_document=marked(doc_ords, len(snapshot.doc_alive)),
            chunks=len(rows),
            documents=len(doc_ords),
            terms=int(snapshot.doc_lengths[doc_ords].sum()),
            matching=len(document_ids),
        )


class Scopes:
    """Scopes of recent filters, all of one snapshot: the arrays of an older one can then be freed."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._kept: VersionedCache[Filter, Scope] = VersionedCache(KEPT)

    def of(self, snapshot: Snapshot, condition: Filter, changes: int) -> Scope:
        """`changes` is the database's count of changes, taken before this call: what is read here is not older."""
        kept = self._kept.at((snapshot.version, changes))
        if (known := kept.get(condition)) is not None:
            return known
        if condition == EVERYTHING:
            scope = Scope.unfiltered(snapshot)
            if scope.is_everything:  # takes no time to make
                return scope
        else:
            with self._database.read() as tx:
                scope = Scope.of_documents(snapshot, documents.matching(tx, condition))
        kept.put(condition, scope)
        return scope


def marked(rows: NDArray[np.int64], size: int) -> NDArray[np.bool_]:
    held = np.zeros(size, np.bool_)
    held[rows] = True
    return held
