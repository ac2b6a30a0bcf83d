"""Vectors in sqlite-vec's `vec0` table: the durable copy that the index in memory is rebuilt from."""

import logging
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import apsw
import numpy as np
from numpy.typing import NDArray

from kb.core.errors import damaged
from kb.store.backend import Vector
from kb.store.rows import readable
from kb.store.sqlite import checksums
from kb.store.sqlite.fulltext import made_anew, parsed

log = logging.getLogger(__name__)

# One string for all rows takes a tenth of the time.
STAMPED = """
SELECT group_concat(id || ' ' || checksum, ' ') FROM (SELECT id, checksum FROM checksums WHERE part = ? ORDER BY id)
"""
ONE = """
SELECT v.embedding, c.checksum FROM chunks_vec v JOIN checksums c ON c.part = ? AND c.id = v.chunk_id
 WHERE v.chunk_id = ?
"""
LOW = 2**32 - 1
TALLY = f"""
SELECT count(*), COALESCE(sum(id), 0), COALESCE(sum(checksum & {LOW}), 0), COALESCE(sum(checksum >> 32), 0)
  FROM checksums WHERE part = ?
"""
BLOBS = """
SELECT c.validity, c.rowids, v.vectors
  FROM chunks_vec_chunks c JOIN chunks_vec_vector_chunks00 v ON v.rowid = c.chunk_id
"""
# The first and the last rows: the recorded offset, the blobs of the block, and the row as sqlite-vec returns it.
SOME_ROWS = """
WITH some AS (SELECT * FROM (SELECT * FROM chunks_vec_rowids ORDER BY rowid LIMIT 3)
              UNION SELECT * FROM (SELECT * FROM chunks_vec_rowids ORDER BY rowid DESC LIMIT 3))
SELECT s.rowid, s.chunk_offset, c.rowids, v.vectors, r.embedding
  FROM some s
  JOIN chunks_vec_chunks c ON c.chunk_id = s.chunk_id
  JOIN chunks_vec_vector_chunks00 v ON v.rowid = s.chunk_id
  JOIN chunks_vec r ON r.chunk_id = s.rowid
"""


class Tally:
    """Sums of the ids and checksums of all vectors: one comparison in place of one per vector."""

    def __init__(self) -> None:
        self._sums = np.zeros(4, np.int64)
        self._finite = True

    def add(self, ids: NDArray[np.int64], vectors: Vector) -> None:
        sums = checksums.sums(vectors)
        self._sums += (len(ids), ids.sum(), (sums & LOW).sum(), (sums >> 32).sum())
        self._finite &= bool(np.isfinite(np.einsum("ij,ij->i", vectors, vectors)).all())

    @property
    def found(self) -> tuple[int, ...] | None:
        return tuple(map(int, self._sums)) if self._finite else None


@dataclass
class SQLiteVectors:
    _connection: apsw.Connection

    def add(self, chunk_id: int, vector: Vector) -> None:
        with damage_named():
            self._connection.execute(
                "INSERT INTO chunks_vec(chunk_id, embedding) VALUES (?, ?)",
                (chunk_id, vector.astype("<f4", copy=False).tobytes()),
            )

    def remove(self, chunk_ids: Iterable[int]) -> None:
        with damage_named():
            self._connection.executemany("DELETE FROM chunks_vec WHERE chunk_id = ?", ((id_,) for id_ in chunk_ids))

    def clear(self, dimensions: int | None = None) -> None:
        def resized(sql: str) -> str:
            return sql if dimensions is None else re.sub(r"FLOAT\[\d+\]", f"FLOAT[{dimensions}]", sql)

        made_anew(self._connection, "chunks_vec", resized)
        checksums.forget_part(self._connection, checksums.VECTORS)

    def ids(self) -> NDArray[np.int64]:
        return np.array([id_ for (id_,) in self._connection.execute("SELECT chunk_id FROM chunks_vec")], np.int64)

    def get(self, chunk_id: int) -> Vector | None:
        with damage_named():
            found = self._connection.execute(ONE, (checksums.VECTORS, chunk_id)).fetchone()
        if found is None:
            return None
        vector = np.frombuffer(found[0], "<f4")
        sound = int(checksums.sums(vector[None])[0]) == found[1] and bool(np.isfinite(vector).all())
        return vector if sound else None

    def dimensions(self) -> int:
        (sql,) = self._connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'chunks_vec'").fetchall()[0]
        found = re.search(r"FLOAT\[(\d+)\]", str(sql), re.IGNORECASE)
        assert found is not None  # the schema was compared when the file was opened
        return int(found[1])

    def load(self, chunk_ids: NDArray[np.int64], into: Vector) -> int:
        order = np.argsort(chunk_ids)
        wanted = chunk_ids[order]
        loaded = 0
        tally = Tally()
        for ids, vectors in self._blocks():
            tally.add(ids, vectors)
            at = np.minimum(np.searchsorted(wanted, ids), max(len(wanted) - 1, 0))
            known = wanted[at] == ids if len(wanted) else np.zeros(len(ids), np.bool_)
            rows = order[at[known]]
            if len(rows) and np.array_equal(rows, np.arange(rows[0], rows[0] + len(rows))):
                into[rows[0] : rows[0] + len(rows)] = vectors if known.all() else vectors[known]
            else:
                into[rows] = vectors[known]
            loaded += len(rows)
        if tally.found != self._connection.execute(TALLY, (checksums.VECTORS,)).fetchone():
            sound = np.concatenate([np.empty(0, np.int64), *(ids for ids, _ in self._sound_blocks())])
            into[unsound := ~np.isin(chunk_ids, sound)] = 0
            return int(np.count_nonzero(unsound))
        return len(chunk_ids) - loaded

    def unsound(self) -> list[int]:
        stamped, sound = self._stamped()[0], [ids for ids, _ in self._sound_blocks()]
        return list(map(int, np.setdiff1d(stamped, np.concatenate(sound) if sound else [])))

    def _sound_blocks(self) -> Iterator[tuple[NDArray[np.int64], Vector]]:
        """Chunk ids with their vectors, except vectors that are damaged or not finite."""
        stamped, wanted = self._stamped()
        if not len(stamped):
            return
        for ids, vectors in self._blocks():
            at = np.searchsorted(stamped, ids)
            sound = (stamped.take(at, mode="clip") == ids) & (wanted.take(at, mode="clip") == checksums.sums(vectors))
            sound &= np.isfinite(np.einsum("ij,ij->i", vectors, vectors))
            if not sound.all():
                log.warning("%d vectors are damaged; `kb doctor --fix` makes them again", np.count_nonzero(~sound))
            yield (ids, vectors) if sound.all() else (ids[sound], vectors[sound])

    def _stamped(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Chunk ids, ascending, and the checksums of their vectors."""
        found = self._connection.execute(STAMPED, (checksums.VECTORS,)).fetchone()
        with readable("checksums"):
            pairs = parsed(found[0] if found else None).reshape(-1, 2)
        return pairs[:, 0].copy(), pairs[:, 1].copy()

    def _blocks(self) -> Iterator[tuple[NDArray[np.int64], Vector]]:
        """Chunk ids with their vectors, in blocks.

        sqlite-vec stores a thousand vectors in one blob. Reading blobs is fifteen times as fast as reading rows, but
        their layout is internal to sqlite-vec: `_kept_in_blobs` checks it on some rows first.
        """
        if not self._kept_in_blobs():
            for id_, vector in self._connection.execute("SELECT chunk_id, embedding FROM chunks_vec"):
                yield np.array([id_], np.int64), np.frombuffer(vector, "<f4")[None]
            return
        for blobs in self._connection.execute(BLOBS):
            try:
                valid, ids, rows = taken_apart(*blobs)
            except (TypeError, ValueError):
                log.warning("a block of vectors is damaged; `kb doctor --fix` makes them again")
            else:
                yield (ids, rows) if valid.all() else (ids[valid], rows[valid])

    def _kept_in_blobs(self) -> bool:
        try:
            some: list[Any] = self._connection.execute(SOME_ROWS).fetchall()
        except apsw.SQLError:
            return False
        try:
            return all(
                np.frombuffer(rowids, "<i8")[offset] == id_
                and vectors[offset * len(row) : (offset + 1) * len(row)] == row
                for id_, offset, rowids, vectors, row in some
            )
        except (TypeError, ValueError, IndexError):
            return False


def taken_apart(validity: bytes, rowids: bytes, vectors: bytes) -> tuple[NDArray[np.bool_], NDArray[np.int64], Vector]:
    """Of each slot of a block: whether it is in use, its chunk id and its vector."""
    ids = np.frombuffer(rowids, "<i8")
    valid = np.unpackbits(np.frombuffer(validity, np.uint8), bitorder="little").astype(np.bool_)
    if len(valid) != len(ids) or not len(ids):
        raise ValueError(f"{len(ids)} ids for {len(valid)} slots")
    return valid, ids, np.frombuffer(vectors, "<f4").reshape(len(ids), -1)


@contextmanager
def damage_named() -> Iterator[None]:
    """Raise our error for damage: sqlite-vec reports it as a general SQL error."""
    try:
        yield
    except apsw.SQLError as error:
        raise damaged(f"The vectors in the database cannot be changed ({error}).") from error
