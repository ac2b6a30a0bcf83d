"""sqlite-vec's `vec0` table alone: exact, with tags as metadata columns."""

from collections.abc import Iterable

import apsw
import sqlite_vec

from benchmarks.corpus import TAGS, Batch, Vectors
from benchmarks.stores.store import TOP, Hits, Store

CREATE = f"""
CREATE VIRTUAL TABLE chunks USING vec0(
  number INTEGER PRIMARY KEY, embedding FLOAT[384] distance_metric=cosine,
  {", ".join(f"{tag} BOOLEAN" for tag in TAGS)}, +text TEXT)
"""
INSERT = f"INSERT INTO chunks (number, embedding, {', '.join(TAGS)}, text) VALUES (?, ?, {'?, ' * len(TAGS)}?)"


class Vec0(Store):
    def fill(self, batches: Iterable[Batch], count: int) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.open()
        self._connection.execute(CREATE)
        for batch in batches:
            rows = (
                (number, vector.tobytes(), *(int(tag in tags) for tag in TAGS), text)
                for number, vector, tags, text in zip(
                    batch.numbers, batch.vectors, batch.tags, batch.texts, strict=True
                )
            )
            with self._connection:
                self._connection.executemany(INSERT, rows)

    def open(self) -> None:
        self._connection = apsw.Connection(str(self.folder / "chunks.db"))
        self._connection.pragma("journal_mode", "wal")
        self._connection.enable_load_extension(True)
        self._connection.load_extension(sqlite_vec.loadable_path())

    def search(self, question: str, vector: Vectors, tag: str | None) -> Hits:
        within = f"AND {tag} = 1" if tag else ""
        statement = f"SELECT number, text FROM chunks WHERE embedding MATCH ? AND k = {TOP} {within} ORDER BY distance"
        return [(int(number), str(text)) for number, text in self._connection.execute(statement, (vector.tobytes(),))]

    def close(self) -> None:
        self._connection.close()
