"""Vectors in sqlite-vec's `vec0` table: the durable copy that the index in memory is rebuilt from."""

import re
from collections.abc import Iterable
from typing import Any

import apsw
import numpy as np
from numpy.typing import NDArray

from kb.store.backend import Vector
from kb.store.sqlite.fulltext import made_anew


class SQLiteVectors:
    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def add(self, chunk_id: int, vector: Vector) -> None:
        self._connection.execute(
            "INSERT INTO chunks_vec(chunk_id, embedding) VALUES (?, ?)",
            (chunk_id, vector.astype("<f4", copy=False).tobytes()),
        )

    def remove(self, chunk_ids: Iterable[int]) -> None:
        self._connection.executemany("DELETE FROM chunks_vec WHERE chunk_id = ?", ((id_,) for id_ in chunk_ids))

    def clear(self, dimensions: int | None = None) -> None:
        def resized(sql: str) -> str:
            return sql if dimensions is None else re.sub(r"FLOAT\[\d+\]", f"FLOAT[{dimensions}]", sql)

        made_anew(self._connection, "chunks_vec", resized)

    def ids(self) -> NDArray[np.int64]:
        return np.array([id_ for (id_,) in self._connection.execute("SELECT chunk_id FROM chunks_vec")], np.int64)

    def load(self) -> tuple[NDArray[np.int64], Vector]:
        found: list[tuple[Any, ...]] = self._connection.execute("SELECT chunk_id, embedding FROM chunks_vec").fetchall()
        ids = np.array([id_ for id_, _ in found], np.int64)
        vectors = np.frombuffer(b"".join(blob for _, blob in found), "<f4")
        order = np.argsort(ids)
        return ids[order], vectors.reshape(len(found), -1)[order] if found else np.empty((0, 0), np.float32)
