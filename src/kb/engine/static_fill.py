"""Makes the static vectors of passages that have none: they were written before the vectors were installed."""

import logging
import threading
import time
from dataclasses import dataclass
from functools import partial

from kb.embedding.static import StaticEmbedder
from kb.index.chunk_index import ChunkIndex
from kb.ingest.prepare import Preparer
from kb.store import static_vectors
from kb.store.backend import Database

log = logging.getLogger(__name__)

AT_ONCE = 64  # passages: a tenth of a second, so that no writer waits long


@dataclass(frozen=True)
class StaticFill:
    _database: Database
    _preparer: Preparer
    _live: ChunkIndex
    _static: StaticEmbedder

    @property
    def is_installed(self) -> bool:
        return self._static.is_installed

    @property
    def is_needed(self) -> bool:
        return self.is_installed and self._live.loaded and len(self._live.without_static) > 0

    def run(self, stopping: threading.Event, seconds: float | None = None) -> int:
        """Make them, for so many seconds or until all are there. Return how many were made."""
        made, until = 0, time.monotonic() + (seconds or float("inf"))
        while not stopping.is_set() and time.monotonic() < until:
            with self._database.read() as tx:
                rows = static_vectors.missing(tx, AT_ONCE)
                if not rows:  # another engine has made the others
                    self._live.take_static(tx, self._live.without_static.tolist())
                    break
            found = self._preparer.static_vectors([(row["title"], row["heading"], row["text"]) for row in rows])
            ids = [row["id"] for row in rows]
            with self._database.write(publishes=False) as tx:
                static_vectors.put(
                    tx, {id_: vector for id_, vector in zip(ids, found, strict=True) if vector is not None}
                )
                tx.after_commit(partial(self._live.take_static, tx, ids))
            made += len(rows)
        if made:
            log.info(
                "%d passages got their vectors for other languages; %d lack them", made, len(self._live.without_static)
            )
        return made
