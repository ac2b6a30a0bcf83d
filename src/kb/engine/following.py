"""The index in memory follows the database: all of it at start, then what other engines write."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from kb.engine.models import Models
from kb.index.chunk_index import ChunkIndex
from kb.ingest.publish import fill_from
from kb.search.keyword import KeywordIndex
from kb.store import chunks
from kb.store.backend import Database

AT_ONCE = 500  # documents


@dataclass(frozen=True)
class Following:
    _database: Database
    _live: ChunkIndex
    _keywords: KeywordIndex
    _models: Models

    def reload(self) -> None:
        self._keywords.clear()
        if not self._models.follow():
            self._live.load(self._database)

    def adopt(self, document_ids: Sequence[int]) -> None:
        if not self._live.loaded:  # what is loaded later is read from the database then
            return
        for start in range(0, len(document_ids), AT_ONCE):
            self._adopt(document_ids[start : start + AT_ONCE])

    def _adopt(self, document_ids: Sequence[int]) -> None:
        """Replace those documents whose chunks are not those that the index has."""
        snapshot = self._live.snapshot()
        with self._database.read() as tx:
            found = chunks.live(tx, document_ids)
            differing = [
                id_
                for id_ in document_ids
                if not np.array_equal(np.sort(snapshot.chunks_of(id_)), found.chunk_ids[found.document_ids == id_])
            ]
            if not differing:
                return
            new = np.flatnonzero(np.isin(found.document_ids, differing))
            new = new[np.argsort(found.document_ids[new], kind="stable")]
            self._live.replace_many(
                differing,
                found.document_ids[new].tolist(),
                found.chunk_ids[new].tolist(),
                found.terms[new].tolist(),
                partial(fill_from, tx, found.chunk_ids[new]),
                found.of_metadata[new].tolist(),
            )
            self._live.take_static(tx, found.chunk_ids[new].tolist())
