"""Checks of what is made from the chunks: full text, vectors and the index in memory."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from kb.engine.doctor.finding import Finding, found
from kb.engine.static_fill import StaticFill
from kb.index.chunk_index import ChunkIndex
from kb.ingest.prepare import BATCH, Preparer
from kb.store import chunks, health, static_vectors
from kb.store.backend import Database, IndexFollower, Row, Transaction
from kb.store.health import Coverage


@dataclass(frozen=True)
class IndexChecks:
    _database: Database
    _preparer: Preparer
    _live: ChunkIndex
    _follower: IndexFollower
    _static_fill: StaticFill
    _stopping: threading.Event

    def check_ready(self) -> None:
        """Raise while the index is being made: there is nothing to mend yet."""
        if not self._live.failed:
            self._live.snapshot()

    def reload(self, tx: Transaction) -> None:
        """Load the index again after the commit and before the next write, so that no change is lost in between."""
        tx.publishes(None, self._follower.reload)

    def fulltext(self, fix: bool) -> Finding:
        damage = self._database.fulltext_damage()
        if fix and damage:
            with self._database.write() as tx:
                tx.fulltext.rebuild()
                tx.publishes(None, self._follower.reload)
        return found(damage, "The full-text index is damaged: {first}.", len(damage) if fix else 0)

    def fulltext_missing(self, fix: bool) -> Finding:
        missing = self._coverage(health.fulltext_coverage).missing
        fixed = self._again(missing, self._index_again) if fix else 0
        return found(missing, "{n} passages cannot be found by their words: they have no sound full-text row.", fixed)

    def fulltext_stray(self, fix: bool) -> Finding:
        stray = self._coverage(health.fulltext_coverage).stray
        if fix and stray:
            with self._database.write() as tx:
                tx.fulltext.remove(stray)
                tx.publishes(None, self._follower.reload)
        return found(stray, "{n} full-text rows belong to no passage.", len(stray) if fix else 0)

    def vectors_missing(self, fix: bool) -> Finding:
        missing = self._coverage(health.vector_coverage).missing
        fixed = self._again(missing, self._embed_again) if fix else 0
        return found(missing, "{n} passages cannot be found by their meaning: they have no sound vector.", fixed)

    def vectors_stray(self, fix: bool) -> Finding:
        stray = self._coverage(health.vector_coverage).stray
        if fix and stray:
            with self._database.write() as tx:
                tx.vectors.remove(stray)
        return found(stray, "{n} vectors belong to no passage.", len(stray) if fix else 0)

    def static_missing(self, fix: bool) -> Finding:
        """Those that are installed are also made in the background."""
        if not self._static_fill.is_installed:
            return Finding()
        with self._database.read() as tx:
            missing = static_vectors.count_missing(tx)
        fixed = self._static_fill.run(self._stopping) if fix and missing else 0
        if not missing:
            return Finding()
        return Finding(missing, f"{missing} passages are not found yet by questions in other languages.", fixed)

    def memory(self, fix: bool) -> Finding:
        """Compare the index in memory with the database, inside a write: no change comes in between."""
        if not self._live.loaded:
            return Finding(1, "The search index is not loaded yet. Try again in a moment.")
        with self._database.write() as tx:
            self._database.catch_up()
            differing = self._differing(tx)
            if differing and fix:
                self.reload(tx)
        return found(
            differing, "{n} passages are otherwise in memory than in the database.", len(differing) if fix else 0
        )

    def _coverage(self, of: Callable[[Transaction], Coverage]) -> Coverage:
        with self._database.read() as tx:
            return of(tx)

    def _again(self, chunk_ids: Sequence[int], mend: Callable[[list[Row]], None]) -> int:
        """Mend passages in batches, so that no writer waits long; return how many before the engine stops."""
        mended = 0
        for at in range(0, len(chunk_ids), BATCH):
            if self._stopping.is_set():
                break
            some = chunk_ids[at : at + BATCH]
            with self._database.read() as tx:
                rows = health.passages(tx, some)
            mend(rows)
            mended += len(some)
        if mended:
            with self._database.write() as tx:
                self.reload(tx)
        return mended

    def _index_again(self, rows: list[Row]) -> None:
        with self._database.write() as tx:
            for row in still_there(tx, rows):
                columns = self._preparer.segmented(row["title"], row["heading"], row["text"])
                health.set_fulltext(tx, row["id"], columns)

    def _embed_again(self, rows: list[Row]) -> None:
        embedded = self._preparer.embedded([(row["title"], row["heading"], row["text"]) for row in rows])
        vectors = dict(zip((row["id"] for row in rows), embedded, strict=True))
        with self._database.write() as tx:
            for row in still_there(tx, rows):
                tx.vectors.remove([row["id"]])
                tx.vectors.add(row["id"], vectors[row["id"]])

    def _differing(self, tx: Transaction) -> list[int]:
        snapshot, stored = self._live.snapshot(), chunks.live(tx)
        alive = np.flatnonzero(snapshot.alive)
        alive = alive[np.argsort(snapshot.chunk_ids[alive])]
        there, wanted = snapshot.chunk_ids[alive], stored.chunk_ids
        if not np.array_equal(there, wanted):
            return list(map(int, np.setxor1d(there, wanted)))
        owners = snapshot.document_ids[snapshot.doc_ords[alive]]
        same = (owners == stored.document_ids) & (snapshot.chunk_lengths[alive] == stored.terms)
        return list(map(int, wanted[~same]))


def still_there(tx: Transaction, rows: list[Row]) -> list[Row]:
    """These passages as they are now, without those that are gone."""
    return health.passages(tx, [row["id"] for row in rows])
