"""Vectors as bytes, one row per chunk. Searching happens in memory, so no extension has to understand them."""

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kb.store.backend import Vector
from kb.store.postgres.runner import Runner

log = logging.getLogger(__name__)

ADD = "INSERT INTO chunk_vectors (chunk_id, embedding) VALUES (:id, :embedding)"
ONE = "SELECT embedding FROM chunk_vectors WHERE chunk_id = :id"
REMOVE = "DELETE FROM chunk_vectors WHERE chunk_id = ANY(:ids)"
# Many rows as three values: ids, lengths and vectors. Row by row it would take five times as long.
BLOCK = """
SELECT string_agg(int8send(chunk_id), ''::bytea ORDER BY chunk_id),
       string_agg(int4send(length(embedding)), ''::bytea ORDER BY chunk_id),
       string_agg(embedding, ''::bytea ORDER BY chunk_id)
  FROM (SELECT chunk_id, embedding FROM chunk_vectors WHERE chunk_id > :after ORDER BY chunk_id LIMIT :limit) part
"""
AT_ONCE = 8192  # vectors: 12 MB


@dataclass
class PostgresVectors:
    """As for full text, rows that are added wait, to be sent together."""

    _runner: Runner
    _waiting: list[dict[str, object]] = field(default_factory=list)

    def add(self, chunk_id: int, vector: Vector) -> None:
        self._waiting.append({"id": chunk_id, "embedding": vector.astype("<f4", copy=False).tobytes()})

    def flush(self) -> None:
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            self._runner.run_many(ADD, waiting)

    def remove(self, chunk_ids: Iterable[int]) -> None:
        self.flush()
        if ids := list(map(int, chunk_ids)):
            self._runner.run(REMOVE, {"ids": ids})

    def clear(self, dimensions: int | None = None) -> None:  # noqa: ARG002 - bytes of any length fit
        self._waiting.clear()
        self._runner.run("DELETE FROM chunk_vectors")

    def ids(self) -> NDArray[np.int64]:
        self.flush()
        return self._runner.integers(("chunk_id",), "chunk_vectors")[:, 0]

    def unsound(self) -> list[int]:
        return [int(id_) for ids, vectors in self._blocks() for id_ in ids[~np.isfinite(vectors).all(axis=1)]]

    def get(self, chunk_id: int) -> Vector | None:
        self.flush()
        data = self._runner.value(ONE, {"id": chunk_id})
        vector = None if data is None else np.frombuffer(data, "<f4")
        return vector if vector is not None and np.isfinite(vector).all() else None

    def dimensions(self) -> int | None:
        self.flush()
        found = self._runner.value("SELECT length(embedding) / 4 FROM chunk_vectors LIMIT 1")
        return None if found is None else int(found)

    def load(self, chunk_ids: NDArray[np.int64], into: Vector) -> int:
        order = np.argsort(chunk_ids)
        wanted = chunk_ids[order]
        loaded = 0
        for ids, vectors in self._blocks(into.shape[1], wanted):
            at = np.minimum(np.searchsorted(wanted, ids), max(len(wanted) - 1, 0))
            known = (wanted[at] == ids) & np.isfinite(vectors).all(axis=1)
            into[order[at[known]]] = vectors[known]
            loaded += int(np.count_nonzero(known))
        return len(chunk_ids) - loaded

    def _blocks(
        self, dimensions: int | None = None, wanted: NDArray[np.int64] | None = None
    ) -> Iterator[tuple[NDArray[np.int64], Vector]]:
        """Chunk ids, ascending, with their vectors, without those of another length than `dimensions` or the first."""
        self.flush()
        after, last = -1, None
        if wanted is not None:
            if not len(wanted):
                return
            after, last = int(wanted[0]) - 1, int(wanted[-1])
        while last is None or after < last:
            ((ids, lengths, data),) = self._runner.raw(BLOCK, {"after": after, "limit": AT_ONCE})
            if ids is None:
                return
            found = np.frombuffer(ids, ">i8").astype(np.int64)
            sizes = np.frombuffer(lengths, ">i4").astype(np.int64)
            dimensions = dimensions or int(sizes[0]) // 4
            fitting = sizes == 4 * dimensions
            if fitting.all():
                yield found, np.frombuffer(data, "<f4").reshape(-1, dimensions)
            else:
                log.warning("%d vectors have another length than the model makes", np.count_nonzero(~fitting))
                ends = np.cumsum(sizes)
                rows = [data[end - 4 * dimensions : end] for end in ends[fitting]]
                yield found[fitting], np.frombuffer(b"".join(rows), "<f4").reshape(-1, dimensions)
            after = int(found[-1])
