"""The published chunks in memory: ids, documents, lengths and vectors as arrays.

Rebuilt from the database at start and never trusted over it. A change is applied after its commit and before it is
acknowledged. Readers work on a `Snapshot`, one moment that never changes under them.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kb.errors import Unavailable
from kb.store import chunks
from kb.store.backend import Database, Vector

SPARE = 1024  # rows that an array has room for beyond what it holds
DOCUMENTS_AT_ONCE = 4096  # whose vectors are added up at a time, so that no second copy of all of them is made
LOAD_SECONDS = 600
MOST_DEAD = 0.25  # share of removed rows at which the arrays are packed anew


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Arrays of equal length, one place per chunk; places that are not `alive` count for nothing."""

    chunk_ids: NDArray[np.int64]
    document_ids: NDArray[np.int64]
    lengths: NDArray[np.int32]  # terms in the full text
    vectors: Vector
    document_lengths: NDArray[np.int32]  # terms of the whole document that the chunk belongs to
    document_norms: NDArray[np.float32]  # length of the sum of that document's vectors
    heads: NDArray[np.bool_]  # one chunk of each document, by which documents are counted
    alive: NDArray[np.bool_]
    places: NDArray[np.int32]  # chunk id → place, -1 for what is not published
    newest: int  # highest chunk id; a higher one is not in here
    count: int  # chunks that are alive

    def places_of(self, chunk_ids: NDArray[np.int64]) -> NDArray[np.int32]:
        """The place of each chunk, -1 where it has none."""
        found = np.full(len(chunk_ids), -1, np.int32)
        within = chunk_ids < len(self.places)
        found[within] = self.places[chunk_ids[within]]
        # A place beyond the end belongs to a later moment.
        there = (found >= 0) & (found < len(self.alive))
        there[there] = self.alive[found[there]]
        found[~there] = -1
        return found


class LiveChunks:
    """Grows by appending; what is removed stays as a dead row until enough are dead to pack the arrays."""

    def __init__(self, dimensions: int, *, awaiting_reindex: bool = False) -> None:
        self._awaiting = awaiting_reindex  # the index in the file is of no use; a new one is on its way
        self._loaded = threading.Event()
        self._failure: BaseException | None = None
        self._changing = threading.RLock()
        self._dimensions = dimensions
        self._reset(0)

    def load(self, database: Database) -> None:
        """Read everything. Changes that are committed meanwhile wait and are then applied on top.

        May be called again when it failed: what was committed in between is in the database by then.
        """
        self._loaded.clear()
        try:
            with database.read() as tx:
                live = chunks.live(tx)
                vector_ids, vectors = tx.vectors.load()
        except BaseException as failure:
            self._failure = failure
            raise
        else:
            self._failure = None
            at = np.searchsorted(vector_ids, live.chunk_ids)
            at = np.minimum(at, max(len(vector_ids) - 1, 0))
            has_vector = vector_ids[at] == live.chunk_ids if len(vector_ids) else np.zeros(len(at), np.bool_)
            kept = vectors[at] if len(vector_ids) else np.empty((0, self._dimensions), np.float32)
            with self._changing:
                self._reset(len(live.chunk_ids))
                self._append(
                    live.chunk_ids,
                    live.document_ids,
                    live.terms,
                    np.where(has_vector[:, None], kept, np.float32(0)),
                )
                self._publish()
        finally:
            self._loaded.set()

    @property
    def loaded(self) -> bool:
        return self.problem is None

    @property
    def problem(self) -> str | None:
        """Why there is nothing to search in, if so."""
        if self._awaiting and not self._loaded.is_set():
            return "The index has to be made anew; `kb jobs` shows how far it is, `kb reindex` starts it."
        if self._failure is not None:
            return f"The search index cannot be loaded: {self._failure} It is tried again by itself."
        return None if self._loaded.is_set() else "The search index is still loading."

    @property
    def count(self) -> int:
        return self._snapshot.count

    def snapshot(self) -> Snapshot:
        self._wait()
        return self._snapshot

    def replace(self, document_id: int, chunk_ids: Sequence[int], terms: Sequence[int], vectors: Vector) -> None:
        if not self._ready():
            return
        with self._changing:
            self._kill(document_id)
            new = np.asarray(chunk_ids, np.int64)
            self._append(new, np.full(len(new), document_id, np.int64), np.asarray(terms, np.int32), vectors)
            self._publish()

    def replace_many(
        self,
        document_ids: Sequence[int],
        owners: Sequence[int],
        chunk_ids: Sequence[int],
        terms: Sequence[int],
        vectors: Vector,
    ) -> None:
        """The new chunks of many documents at once; `owners` says whose each chunk is."""
        with self._changing:
            self._kill(*document_ids)
            self._append(
                np.asarray(chunk_ids, np.int64), np.asarray(owners, np.int64), np.asarray(terms, np.int32), vectors
            )
            self._publish()
        self._loaded.set()

    def remove(self, document_id: int) -> None:
        if self._ready():
            with self._changing:
                self._kill(document_id)
                self._publish()

    def clear(self) -> None:
        if self._ready():
            with self._changing:
                self._reset(0)

    def _ready(self) -> bool:
        """Whether there is an index to change; one that is being made anew takes what is in the database then."""
        if not self._awaiting:
            self._loaded.wait(LOAD_SECONDS)
        return self._loaded.is_set() and self._failure is None

    def _wait(self) -> None:
        if self._awaiting and not self._loaded.is_set():
            raise Unavailable(f"{self.problem} Try again when it is done.")
        if not self._loaded.wait(LOAD_SECONDS) or self._failure is not None:
            raise Unavailable(f"{self.problem} Try again in a moment.")

    def _reset(self, room: int) -> None:
        size = room + SPARE
        self._count = 0
        self._columns: dict[str, NDArray[Any]] = {
            "chunk_ids": np.zeros(size, np.int64),
            "document_ids": np.zeros(size, np.int64),
            "lengths": np.zeros(size, np.int32),
            "vectors": np.zeros((size, self._dimensions), np.float32),
            "document_lengths": np.zeros(size, np.int32),
            "document_norms": np.ones(size, np.float32),
            "heads": np.zeros(size, np.bool_),
            "alive": np.zeros(size, np.bool_),
        }
        self._places = np.full(size, -1, np.int32)
        self._publish()

    def _append(
        self,
        chunk_ids: NDArray[np.int64],
        document_ids: NDArray[np.int64],
        terms: NDArray[np.int32],
        vectors: Vector,
    ) -> None:
        """Whole documents: all chunks of each come in one call."""
        document_lengths, document_norms, heads = of_documents(document_ids, terms, vectors)
        self._write(
            chunk_ids=chunk_ids,
            document_ids=document_ids,
            lengths=terms,
            vectors=vectors,
            document_lengths=document_lengths,
            document_norms=document_norms,
            heads=heads,
            alive=np.ones(len(chunk_ids), np.bool_),
        )

    def _write(self, **rows: NDArray[Any]) -> None:
        chunk_ids = rows["chunk_ids"]
        start, end = self._count, self._count + len(chunk_ids)
        if end > len(self._columns["alive"]):
            self._grow(end)
        # Rows beyond the count are in nobody's snapshot, so they may be written in place.
        for name, values in rows.items():
            self._columns[name][start:end] = values
        highest = int(chunk_ids.max(initial=0))
        if highest >= len(self._places):
            more = np.full(max(highest + 1 - len(self._places), len(self._places) // 2), -1, np.int32)
            self._places = np.concatenate((self._places, more))
        self._places[chunk_ids] = np.arange(start, end, dtype=np.int32)
        self._count = end

    def _grow(self, needed: int) -> None:
        """Half as much again; readers keep the old arrays."""
        held = len(self._columns["alive"])
        extra = max(needed - held, held // 2) + SPARE
        for name, column in self._columns.items():
            self._columns[name] = np.concatenate((column, np.zeros((extra, *column.shape[1:]), column.dtype)))

    def _kill(self, *document_ids: int) -> None:
        alive = self._columns["alive"][: self._count]
        own = np.isin(self._columns["document_ids"][: self._count], document_ids)
        if own.any():
            alive[own] = False
        if np.count_nonzero(alive) < (1 - MOST_DEAD) * self._count - SPARE:
            self._pack()

    def _pack(self) -> None:
        keep = np.flatnonzero(self._columns["alive"][: self._count])
        kept = {name: column[keep] for name, column in self._columns.items()}
        self._reset(len(keep))
        self._write(**kept)

    def _publish(self) -> None:
        rows = {name: column[: self._count] for name, column in self._columns.items()}
        rows["alive"] = rows["alive"].copy()  # a row that dies later stays alive for whoever is reading now
        self._snapshot = Snapshot(
            **rows,
            places=self._places,
            newest=int(rows["chunk_ids"].max(initial=0)),
            count=int(np.count_nonzero(rows["alive"])),
        )


def of_documents(
    owners: NDArray[np.int64], terms: NDArray[np.int32], vectors: Vector
) -> tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.bool_]]:
    """What each chunk says about its whole document: its terms, the length of its summed vectors; and one head each."""
    heads = np.zeros(len(owners), np.bool_)
    lengths, norms = np.zeros(len(owners), np.int32), np.ones(len(owners), np.float32)
    order = np.argsort(owners, kind="stable")
    starts = np.flatnonzero(np.diff(owners[order], prepend=-1))
    heads[order[starts]] = True
    ends = np.append(starts[1:], len(owners))
    for at in range(0, len(starts), DOCUMENTS_AT_ONCE):
        some = slice(at, at + DOCUMENTS_AT_ONCE)
        first, own = starts[some][0], order[starts[some][0] : ends[some][-1]]
        sizes = (ends - starts)[some]
        lengths[own] = np.repeat(np.add.reduceat(terms[own], starts[some] - first), sizes)
        sums = np.add.reduceat(vectors[own], starts[some] - first, axis=0)
        norms[own] = np.repeat(np.linalg.norm(sums, axis=1).clip(1e-6), sizes)
    return lengths, norms, heads
