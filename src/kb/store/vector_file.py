"""Vectors of a model that is not in use yet, in a file of the data folder, until they take the place of the others.

They are made over minutes or hours, and the file is only appended to: a process that dies loses the rows that it was
writing. Every row has a checksum, and what is torn or damaged is made again.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kb.core.errors import StorageFull
from kb.store.backend import Vector

HEADER = 64  # bytes: the model's fingerprint and the number of dimensions
FACTOR = np.uint64(0x9E3779B97F4A7C15)


class VectorFile:
    """The vectors of one model. A file of another model is begun anew."""

    def __init__(self, path: Path, model: str, dimensions: int) -> None:
        self._path = path
        self._row = np.dtype([("id", "<i8"), ("vector", "<f4", (dimensions,)), ("checksum", "<u8")])
        self._header = f"{model} {dimensions}\n".encode().ljust(HEADER)
        with translated(path):
            if self._read_header() != self._header:
                path.write_bytes(self._header)
                path.chmod(0o600)
            else:  # without the rest of a row that was being written
                whole = (path.stat().st_size - HEADER) // self._row.itemsize
                with path.open("r+b") as file:
                    file.truncate(HEADER + whole * self._row.itemsize)
        self._rows = self._sound_rows()

    def __len__(self) -> int:
        return len(self._rows)

    def missing(self, chunk_ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Those of these chunks that have no vector here."""
        return np.setdiff1d(chunk_ids, np.fromiter(self._rows, np.int64, len(self._rows)))

    def append(self, chunk_ids: Sequence[int], vectors: Vector) -> None:
        rows = np.empty(len(chunk_ids), self._row)
        rows["id"], rows["vector"] = chunk_ids, vectors
        rows["checksum"] = checksums(rows)
        with translated(self._path), self._path.open("r+b") as file:
            end = file.seek(0, os.SEEK_END)
            first = (end - HEADER) // self._row.itemsize
            file.seek(HEADER + first * self._row.itemsize)  # over what a full disk cut off
            file.write(rows.tobytes())
        self._rows.update(zip(chunk_ids, range(first, first + len(chunk_ids)), strict=True))

    def load(self, chunk_ids: NDArray[np.int64], into: Vector) -> int:
        """Write the vector of each chunk into its row. Return how many have none; their rows stay."""
        at = np.array([self._rows.get(id_, -1) for id_ in chunk_ids.tolist()], np.int64)
        there = np.flatnonzero(at >= 0)
        if len(there):
            into[there] = self._mapped()["vector"][at[there]]
        return len(chunk_ids) - len(there)

    def remove(self) -> None:
        self._path.unlink(missing_ok=True)

    def _read_header(self) -> bytes:
        if not self._path.exists():
            return b""
        with self._path.open("rb") as file:
            return file.read(HEADER)

    def _mapped(self) -> NDArray[np.void]:
        if self._path.stat().st_size == HEADER:
            return np.empty(0, self._row)
        return np.memmap(self._path, self._row, "r", HEADER)

    def _sound_rows(self) -> dict[int, int]:
        """The row of each chunk; of damaged ones none, and of a chunk with two the later."""
        rows = self._mapped()
        sound = np.flatnonzero(checksums(rows) == rows["checksum"])
        return dict(zip(rows["id"][sound].tolist(), sound.tolist(), strict=True))


@contextmanager
def translated(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as wrong:
        raise StorageFull(
            f"{path} cannot be written: {wrong.strerror}. Free some disk space, then try again."
        ) from wrong


def checksums(rows: NDArray[np.void]) -> NDArray[np.uint64]:
    """A number for each row that differs if its id or its vector does."""
    words = np.ascontiguousarray(rows["vector"]).view("<u4").astype(np.uint64)
    factors = FACTOR * (2 * np.arange(words.shape[1], dtype=np.uint64) + np.uint64(1))
    found: NDArray[np.uint64] = words @ factors + rows["id"].astype(np.uint64) * FACTOR + np.uint64(1)
    return found
