"""The passages of an answer: their texts and documents, each text once.

Of passages with the same text the best one is a result, and the others are named with it. The store keeps a key of each
chunk's text; a passage without copies has no such key, and needs no lookup.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kb.core.arrays import where_first
from kb.core.lru import VersionedCache
from kb.core.searches import Copy, Hit
from kb.search.filter_scope import Scope
from kb.store import chunks
from kb.store.backend import Database
from kb.store.chunks import StoredPassage

KEPT = 4096  # passages, of some 2 kB each
NAMED = 10  # copies of a passage that are named; the others are counted

Ids = NDArray[np.int64]


class Passages:
    """Caches those shown recently until the database changes: the next question often finds some again."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._kept: VersionedCache[int, StoredPassage] = VersionedCache(KEPT)

    def of(self, chunk_ids: Sequence[int], changes: int) -> dict[int, StoredPassage]:
        """Those of these chunks that are published.

        `changes` is the database's count of changes, taken before this call: what is read here is not older.
        """
        kept = self._kept.at(changes)
        found = {id_: passage for id_ in chunk_ids if (passage := kept.get(id_)) is not None}
        if len(found) == len(chunk_ids):
            return found
        new = chunks.hits(self._database, [id_ for id_ in chunk_ids if id_ not in found])
        for id_, passage in new.items():
            kept.put(id_, passage)
        return found | new


class Copies:
    """The copies of passages within a scope, during one search."""

    def __init__(self, database: Database, scope: Scope) -> None:
        self._database = database
        self._scope = scope
        self._by_key: dict[int, Ids] = {}
        self._others: dict[int, Ids] = {}  # of each result that has any
        self._left_out: set[int] = set()

    def left_out(self, chunk_id: int) -> bool:
        """Whether an earlier result has the same text."""
        return chunk_id in self._left_out

    def look_up(self, found: Iterable[StoredPassage]) -> None:
        """Look up the copies of these passages."""
        keys = {passage.copies_key for passage in found if passage.copies_key is not None}
        if unknown := [key for key in keys if key not in self._by_key]:
            for key, ids in chunks.with_text_keys(self._database, unknown).items():
                self._by_key[key] = self._within(np.array(ids, np.int64))

    def take(self, chunk_id: int, passage: StoredPassage) -> None:
        """Make a passage a result. Its copies are left out from now on."""
        if passage.copies_key is None:
            return
        ids = self._by_key[passage.copies_key]
        others = ids[ids != chunk_id]
        if len(others):
            self._others[chunk_id] = self._ordered(others, chunk_id)
            self._left_out.update(others.tolist())

    def named(self, hits: list[Hit], passages: Passages, changes: int) -> list[Hit]:
        """The results with their copies."""
        if not self._others:
            return hits
        shown = {id_: others[:NAMED].tolist() for id_, others in self._others.items()}
        found = passages.of([id_ for ids in shown.values() for id_ in ids], changes)
        return [
            self._with_copies(hit, [found[id_] for id_ in shown[hit.chunk_id] if id_ in found])
            if hit.chunk_id in shown
            else hit
            for hit in hits
        ]

    def _with_copies(self, hit: Hit, copies: list[StoredPassage]) -> Hit:
        more = max(len(self._others[hit.chunk_id]) - NAMED, 0)
        return replace(hit, also_in=[copy_of(one) for one in copies] or None, also_in_more=more or None)

    def _within(self, ids: Ids) -> Ids:
        rows = self._scope.snapshot.rows_of_chunks(ids)
        known = rows >= 0
        ids, rows = ids[known], rows[known]
        return np.sort(ids[self._scope.holds.take(rows)])

    def _ordered(self, ids: Ids, chunk_id: int) -> Ids:
        """Order copies: the first of each other document, then all the rest; each by id."""
        snapshot = self._scope.snapshot
        doc_ords = snapshot.doc_ords.take(snapshot.rows_of_chunks(ids))
        (own,) = snapshot.doc_ords.take(snapshot.rows_of_chunks(np.array([chunk_id])))
        again = np.ones(len(ids), np.bool_)
        again[where_first(doc_ords)] = False
        return ids[np.lexsort((ids, again | (doc_ords == own)))]


def copy_of(passage: StoredPassage) -> Copy:
    fields = passage.fields
    return Copy(*(fields[name] for name in ("document_id", "chunk_id", "title", "filename", "source_path", "anchor")))
