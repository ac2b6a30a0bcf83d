"""The published chunks in memory: ids, documents, lengths, vectors and their signs as arrays.

It is rebuilt from the database at start; the database is the truth. A change is applied after its commit and before it
is acknowledged. Readers work on a `Snapshot`, which never changes.

A chunk has a row, a document has an ordinal; both are given in the order of arrival. The rows of a document are
adjacent.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kb.core.arrays import lengths_of, starts_of
from kb.core.errors import Conflict, Unavailable, is_damage
from kb.index.kernels import Rows, SignBits
from kb.index.sign_bits import WORD, Bound, pack, spread
from kb.store import chunks, static_vectors
from kb.store.backend import Database, Transaction, Vector

SPARE = 1024  # rows that an array has room for beyond what it holds
DOCUMENTS_AT_ONCE = 4096  # documents whose vectors are summed at a time: no second copy of all of them is made
LOAD_SECONDS = 600
LONG = 64  # a document of more chunks is summed by itself
MOST_DEAD = 0.25  # share of dead rows at which the arrays are packed
BOUND_FROM = 4096  # chunks at which the bound of the sign bits is first measured; again whenever they doubled

DocOrds = NDArray[np.int64]
Fill = Callable[[Vector], None]  # writes the vectors of one document, in order, into its rows


class VectorSource(Protocol):
    """Where vectors are read from: `kb.store.backend.Vectors` is one."""

    def load(self, chunk_ids: NDArray[np.int64], into: Vector) -> int: ...


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The index at one moment. Rows and documents that are not `alive` take no part."""

    version: int  # grows with every change
    model: str  # fingerprint of the embedding model that made the vectors

    # By row: one for each chunk.
    chunk_ids: NDArray[np.int64]
    doc_ords: NDArray[np.int32]  # ordinal of the document
    chunk_lengths: NDArray[np.int32]  # terms in the full text
    vectors: Vector
    sign_bits: SignBits
    static_vectors: NDArray[np.int8]  # zeros: it has none; filled in place once it is made
    static_scales: NDArray[np.float32]  # what makes a unit vector of it; -1: it is not made yet
    alive: NDArray[np.bool_]

    # By ordinal: one for each document.
    document_ids: NDArray[np.int64]
    first_rows: NDArray[np.int32]  # row of its first chunk
    sizes: NDArray[np.int32]  # in chunks
    doc_lengths: NDArray[np.int32]  # terms of all its chunks
    doc_vector_rows: NDArray[np.int32]  # its row in `doc_vectors`; -1 for a document of one chunk
    doc_alive: NDArray[np.bool_]

    # By row of `doc_vectors`: one for each document of several chunks.
    doc_vectors: Vector  # mean of its chunks without metadata, as a unit vector
    doc_sign_bits: SignBits
    doc_vector_ords: NDArray[np.int32]  # ordinal of the document

    bound: Bound
    loads: int  # how often everything was read anew: `came_at` begins anew with each
    count: int  # chunks that are alive
    document_count: int
    terms: int  # of all of them
    row_of_chunk: NDArray[np.int32]  # chunk id → row, -1 if it is not published
    came_at: NDArray[np.int32]  # chunk id → the version in which it came, -1 if it has not
    ord_of_document: NDArray[np.int32]  # document id → ordinal, likewise

    def doc_ords_of(self, document_ids: NDArray[np.int64]) -> NDArray[np.int32]:
        """The ordinal of each document, -1 if it is not here."""
        return looked_up(self.ord_of_document, document_ids, self.doc_alive)

    def rows_of_chunks(self, chunk_ids: NDArray[np.int64]) -> NDArray[np.int32]:
        """The row of each chunk, -1 if it is not here."""
        return looked_up(self.row_of_chunk, chunk_ids, self.alive)

    def chunks_of(self, document_id: int) -> NDArray[np.int64]:
        """The chunks of a document; none if it is not here."""
        doc_ords = self.doc_ords_of(np.array([document_id], np.int64))
        return self.chunk_ids[self.rows_of(doc_ords[doc_ords >= 0])]

    def new_since(self, version: int) -> NDArray[np.int64]:
        """The chunks that came after this version, for the first time or out of the trash."""
        return self.chunk_ids[(self.came_at.take(self.chunk_ids) > version) & self.alive]

    def rows_of(self, doc_ords: NDArray[np.integer[Any]]) -> Rows:
        """Every row of these documents."""
        sizes = self.sizes[doc_ords]
        ends = np.cumsum(sizes, dtype=np.int64)
        return np.repeat(self.first_rows[doc_ords] - (ends - sizes), sizes) + np.arange(ends[-1] if len(ends) else 0)


def looked_up(where: NDArray[np.int32], ids: NDArray[np.int64], alive: NDArray[np.bool_]) -> NDArray[np.int32]:
    # An id or a row beyond the end belongs to a later snapshot.
    found = where.take(ids, mode="clip")
    if len(ids) and ids.max() >= len(where):
        found[ids >= len(where)] = -1
    there = found.view(np.uint32) < len(alive)  # -1 is then the largest of all
    there &= alive.take(found, mode="clip") if len(alive) else False
    np.putmask(found, ~there, -1)
    return found


class Columns:
    """Arrays that grow together by appending. No snapshot holds rows beyond its count."""

    def __init__(self, room: int, **kinds: tuple[Any, tuple[int, ...]]) -> None:
        """`kinds`: the type of each column, and the shape of one row."""
        self.count = 0
        self._held = {name: np.zeros((room + SPARE, *shape), kind) for name, (kind, shape) in kinds.items()}

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._held[name][: self.count]

    def extend(self, count: int) -> slice:
        """Make room for this many more rows, and return their slice."""
        start, self.count = self.count, self.count + count
        for name, column in self._held.items():
            if self.count > len(column):  # half as much again; readers keep the old array
                extra = max(self.count - len(column), len(column) // 2) + SPARE
                self._held[name] = np.concatenate((column, np.zeros((extra, *column.shape[1:]), column.dtype)))
        return slice(start, self.count)

    def append(self, **rows: NDArray[Any]) -> slice:
        new = self.extend(len(next(iter(rows.values()))))
        for name, values in rows.items():
            self._held[name][new] = values
        return new


class ChunkIndex:
    """Grows by appending. A removed chunk stays as a dead row until enough rows are dead to pack the arrays."""

    def __init__(self, dimensions: int, *, model: str = "", awaiting_reindex: bool = False) -> None:
        self._awaiting = awaiting_reindex  # the stored index cannot be used; a new one is being made
        self._loaded = threading.Event()
        self._failure: BaseException | None = None
        self._changing = threading.RLock()
        self.dimensions = dimensions
        self.model = model  # fingerprint of the embedding model
        self.without_vector = 0  # chunks loaded without a usable vector
        self._version = 0
        self._loads = 0
        self._came_at = np.full(SPARE, -1, np.int32)
        self._row_of_chunk: NDArray[np.int32]
        self._reset()
        self._publish()

    def load(self, database: Database, vectors: VectorSource | None = None) -> None:
        """Read everything. Changes that are committed meanwhile wait, and are then applied on top.

        May be called again after a failure: it then reads what was committed in between. `vectors` has those of another
        model than the database.
        """
        self._loaded.clear()
        try:
            with database.read() as tx, self._changing:
                live = chunks.live(tx)
                sizes = np.unique(live.document_ids, return_counts=True)[1]
                self._loads += 1
                self._came_at = np.full(SPARE, -1, np.int32)
                self._reset(len(live.chunk_ids), len(sizes), int(np.count_nonzero(sizes > 1)))
                order, new = self._append(live.document_ids, live.chunk_ids, live.terms, live.of_metadata)
                source = vectors or tx.vectors
                self.without_vector = source.load(live.chunk_ids[order], into=self._chunks["vectors"][new])
                self._take_in(new)
                self._load_static(tx)
                self._publish()
        except BaseException as failure:
            self._failure = failure
            raise
        else:
            self._failure = None
        finally:
            self._loaded.set()

    @property
    def loaded(self) -> bool:
        return self.problem is None

    @property
    def problem(self) -> str | None:
        """Why the index cannot be searched; None if it can."""
        if self._awaiting and not self._loaded.is_set():
            return "The index has to be made anew; `kb jobs` shows how far it is, `kb reindex` starts it."
        if self._failure is not None:
            again = "" if self.damaged else " It is tried again by itself."
            return f"The search index cannot be loaded: {self._failure}{again}"
        return None if self._loaded.is_set() else "The search index is still loading."

    @property
    def failed(self) -> bool:
        """Whether the last attempt to load it failed."""
        return self._failure is not None

    @property
    def damaged(self) -> bool:
        """Whether that was because the database is damaged: trying again does not help."""
        return self._failure is not None and is_damage(self._failure)

    @property
    def count(self) -> int:
        return self._snapshot.count

    def check(self) -> None:
        """Wait until it is loaded; raise if it cannot be searched."""
        self._wait()

    def snapshot(self) -> Snapshot:
        self._wait()
        return self._snapshot

    def replace(
        self,
        document_id: int,
        chunk_ids: Sequence[int],
        terms: Sequence[int],
        vectors: Vector | Fill,
        of_metadata: Sequence[bool] = (),
    ) -> None:
        """Replace the chunks of a document. `of_metadata` marks those made from its metadata, which come last.

        `vectors` may be a function that writes them into the rows: a large document's are then not held twice.
        """
        if self._ready():
            self.replace_many([document_id], [document_id] * len(chunk_ids), chunk_ids, terms, vectors, of_metadata)

    def replace_many(
        self,
        document_ids: Sequence[int],
        owner_ids: Sequence[int],
        chunk_ids: Sequence[int],
        terms: Sequence[int],
        vectors: Vector | Fill,
        of_metadata: Sequence[bool] = (),
    ) -> None:
        """Replace the chunks of many documents at once. `owner_ids` has the document of each chunk.

        Chunks that come once more, out of the trash, get other rows.
        """
        with self._changing:
            self._kill(document_ids)
            self._forget_rows(np.asarray(chunk_ids, np.int64))
            order, new = self._append(
                np.asarray(owner_ids, np.int64),
                np.asarray(chunk_ids, np.int64),
                np.asarray(terms, np.int32),
                np.asarray(of_metadata, np.bool_) if len(of_metadata) else np.zeros(len(chunk_ids), np.bool_),
            )
            if callable(vectors):
                vectors(self._chunks["vectors"][new])
            else:
                self._chunks["vectors"][new] = vectors[order]
            self._take_in(new)
            self._publish()
        self._loaded.set()

    def take_static(self, tx: Transaction, chunk_ids: Sequence[int]) -> None:
        """Read the static vectors of chunks that are here already, into their rows: no snapshot holds other ones."""
        if self._ready():
            with self._changing:
                self._load_static(tx, np.asarray(chunk_ids, np.int64))

    @property
    def without_static(self) -> NDArray[np.int64]:
        """Chunks without a static vector."""
        snapshot = self._snapshot
        return snapshot.chunk_ids[(snapshot.static_scales < 0) & snapshot.alive]

    def _load_static(self, tx: Transaction, chunk_ids: NDArray[np.int64] | None = None) -> None:
        held = self._chunks["chunk_ids"] if chunk_ids is None else chunk_ids
        for ids, vectors in static_vectors.of(tx, held):
            rows = looked_up(self._row_of_chunk, ids, self._chunks["alive"])
            rows, found = rows[rows >= 0], vectors[rows >= 0]
            lengths = np.sqrt(np.einsum("ij,ij->i", found, found, dtype=np.int32).astype(np.float32))
            self._chunks["static_vectors"][rows] = found
            self._chunks["static_scales"][rows] = np.where(lengths > 0, 1 / lengths.clip(1), 0)

    def remove(self, *document_ids: int) -> None:
        if self._ready():
            with self._changing:
                self._kill(document_ids)
                self._publish()

    def clear(self) -> None:
        if self._ready():
            with self._changing:
                self._reset()
                self._publish()

    def _ready(self) -> bool:
        """Whether there is an index to change. One that is being made anew reads the database at its end."""
        if not self._awaiting:
            self._loaded.wait(LOAD_SECONDS)
        return self._loaded.is_set() and self._failure is None

    def _wait(self) -> None:
        if self._awaiting and not self._loaded.is_set():
            raise Unavailable(f"{self.problem} Try again when it is done.")
        if self.damaged:
            raise Conflict(f"{self.problem}", damaged=True)
        if not self._loaded.wait(LOAD_SECONDS) or self._failure is not None:
            raise Unavailable(f"{self.problem} Try again in a moment.")

    def _reset(self, chunks: int = 0, documents: int = 0, doc_vectors: int = 0) -> None:
        """Make the arrays empty, with room for this much. Readers keep their snapshot until the next `_publish`."""
        vectors, sign_bits = (np.float32, (self.dimensions,)), (np.uint64, (-(-self.dimensions // WORD),))
        self._chunks = Columns(
            chunks,
            chunk_ids=(np.int64, ()),
            doc_ords=(np.int32, ()),
            chunk_lengths=(np.int32, ()),
            vectors=vectors,
            sign_bits=sign_bits,
            static_vectors=(np.int8, (static_vectors.DIMENSIONS,)),
            static_scales=(np.float32, ()),
            alive=(np.bool_, ()),
            of_metadata=(np.bool_, ()),
        )
        self._documents = Columns(
            documents,
            document_ids=(np.int64, ()),
            first_rows=(np.int32, ()),
            sizes=(np.int32, ()),
            text_sizes=(np.int32, ()),  # in chunks, without those of metadata
            doc_lengths=(np.int32, ()),
            doc_vector_rows=(np.int32, ()),
            doc_alive=(np.bool_, ()),
        )
        self._doc_vectors = Columns(
            doc_vectors, doc_vectors=vectors, doc_sign_bits=sign_bits, doc_vector_ords=(np.int32, ())
        )
        self._row_of_chunk = np.full(chunks + SPARE, -1, np.int32)
        self._ord_of_document = np.full(documents + SPARE, -1, np.int32)
        self._count = self._document_count = self._terms = 0
        self._bound = self._measured_bound()
        self._sampled = BOUND_FROM

    def _measured_bound(self) -> Bound:
        """The bound that fits the vectors held."""
        return Bound(self.dimensions, spread(self._chunks["vectors"]))

    def _append(
        self,
        owner_ids: NDArray[np.int64],
        chunk_ids: NDArray[np.int64],
        terms: NDArray[np.int32],
        of_metadata: NDArray[np.bool_],
    ) -> tuple[NDArray[np.int64], slice]:
        """Append whole documents without their vectors. Return the order in which to write these, and their slice."""
        order = np.argsort(owner_ids, kind="stable")
        owner_ids, chunk_ids, terms, of_metadata = owner_ids[order], chunk_ids[order], terms[order], of_metadata[order]
        starts = starts_of(owner_ids)
        sizes = lengths_of(starts, len(owner_ids))
        new = self._chunks.append(
            chunk_ids=chunk_ids,
            chunk_lengths=terms,
            alive=np.ones(len(owner_ids), np.bool_),
            of_metadata=of_metadata,
            doc_ords=np.zeros_like(terms),
            static_scales=np.full(len(owner_ids), -1, np.float32),
        )
        documents = self._documents.append(
            document_ids=owner_ids[starts],
            first_rows=starts + new.start,
            sizes=sizes,
            text_sizes=sizes - np.add.reduceat(of_metadata, starts, dtype=np.int32) if len(starts) else starts,
            doc_lengths=np.add.reduceat(terms, starts) if len(starts) else starts,
            doc_vector_rows=np.full(len(starts), -1),
            doc_alive=np.ones(len(starts), np.bool_),
        )
        doc_ords = np.arange(documents.start, documents.stop, dtype=np.int32)
        self._chunks["doc_ords"][new] = np.repeat(doc_ords, sizes)
        self._row_of_chunk = noted(self._row_of_chunk, chunk_ids, np.arange(new.start, new.stop))
        first = chunk_ids[~self._has_come(chunk_ids)]
        self._came_at = noted(self._came_at, first, np.full(len(first), self._version + 1))
        self._ord_of_document = noted(self._ord_of_document, owner_ids[starts], doc_ords)
        self._count += len(owner_ids)
        self._document_count += len(starts)
        self._terms += int(terms.sum())
        return order, new

    def _forget_rows(self, chunk_ids: NDArray[np.int64]) -> None:
        """Have chunks that were here before come anew; older snapshots go on using their old rows."""
        again = chunk_ids[self._has_come(chunk_ids)]
        if len(again):
            self._row_of_chunk = self._row_of_chunk.copy()
            self._came_at = noted(self._came_at.copy(), again, np.full(len(again), -1))

    def _has_come(self, chunk_ids: NDArray[np.int64]) -> NDArray[np.bool_]:
        known = (chunk_ids < len(self._came_at)) & (self._came_at.take(chunk_ids, mode="clip") >= 0)
        return np.asarray(known, np.bool_)

    def _take_in(self, new: slice) -> None:
        """Compute what follows from the vectors of new chunks: sign bits and document vectors.

        A document's vector leaves out chunks of metadata: else a short note with an author would be found less well.
        """
        vectors = self._chunks["vectors"]
        self._chunks["sign_bits"][new] = pack(vectors[new])
        if new.start == new.stop:
            return
        first, sizes = self._documents["first_rows"], self._documents["sizes"]
        from_ord = int(self._chunks["doc_ords"][new.start])
        several = from_ord + np.flatnonzero(sizes[from_ord:] > 1)
        for at in range(0, len(several), DOCUMENTS_AT_ONCE):
            some = several[at : at + DOCUMENTS_AT_ONCE]
            directions = summed(vectors, first[some], self._documents["text_sizes"][some])
            directions /= np.linalg.norm(directions, axis=1, keepdims=True).clip(1e-6)
            rows = self._doc_vectors.append(
                doc_vectors=directions, doc_sign_bits=pack(directions), doc_vector_ords=some
            )
            self._documents["doc_vector_rows"][some] = np.arange(rows.start, rows.stop)

    def _kill(self, document_ids: Sequence[int]) -> None:
        doc_ords = looked_up(self._ord_of_document, np.asarray(document_ids, np.int64), self._documents["doc_alive"])
        doc_ords = doc_ords[doc_ords >= 0]
        if not len(doc_ords):
            return
        # Copied, since older snapshots go on using the old ordinals.
        self._ord_of_document = self._ord_of_document.copy()
        self._documents["doc_alive"][doc_ords] = False
        for first, size in zip(
            self._documents["first_rows"][doc_ords], self._documents["sizes"][doc_ords], strict=True
        ):
            self._chunks["alive"][first : first + size] = False
        self._count -= int(self._documents["sizes"][doc_ords].sum())
        self._document_count -= len(doc_ords)
        self._terms -= int(self._documents["doc_lengths"][doc_ords].sum())
        if self._count < (1 - MOST_DEAD) * self._chunks.count - SPARE:
            self._pack()

    def _pack(self) -> None:
        """Rebuild the arrays without the dead rows."""
        old, keep = self._chunks, np.flatnonzero(self._chunks["alive"])
        owner_ids = self._documents["document_ids"][old["doc_ords"][keep]]
        self._reset(len(keep), self._document_count)
        order, new = self._append(
            owner_ids, old["chunk_ids"][keep], old["chunk_lengths"][keep], old["of_metadata"][keep]
        )
        for name in ("vectors", "static_vectors", "static_scales"):
            np.take(old[name], keep[order], axis=0, out=self._chunks[name][new])
        self._take_in(new)

    def fall_behind(self, why: Unavailable) -> None:
        """Answer nothing until the index has been loaded again or replaced."""
        self._failure = why

    @property
    def is_behind(self) -> bool:
        """Whether other engines changed what this one cannot take in."""
        return isinstance(self._failure, Unavailable) and bool(self._failure.details.get("cannot_follow"))

    def take_over(self, other: "ChunkIndex") -> None:
        """Become a loaded index of another model, which nothing else uses, between two searches."""
        with self._changing:
            self._failure = None
            self.dimensions, self.model, self.without_vector = other.dimensions, other.model, other.without_vector
            self._chunks, self._documents, self._doc_vectors = other._chunks, other._documents, other._doc_vectors
            self._row_of_chunk, self._ord_of_document = other._row_of_chunk, other._ord_of_document
            self._came_at, self._loads = other._came_at, self._loads + 1
            self._count, self._document_count, self._terms = other._count, other._document_count, other._terms
            self._bound, self._sampled = other._bound, other._sampled
            self._publish()

    def _publish(self) -> None:
        if self._chunks.count >= self._sampled:
            self._bound = self._measured_bound()
            self._sampled = 2 * self._chunks.count
        self._version += 1
        by_row = ("chunk_ids", "doc_ords", "chunk_lengths", "vectors", "sign_bits", "static_vectors", "static_scales")
        by_doc_ord = ("document_ids", "first_rows", "sizes", "doc_lengths", "doc_vector_rows")
        by_doc_vector = ("doc_vectors", "doc_sign_bits", "doc_vector_ords")
        self._snapshot = Snapshot(
            version=self._version,
            model=self.model,
            **{name: self._chunks[name] for name in by_row},
            **{name: self._documents[name] for name in by_doc_ord},
            **{name: self._doc_vectors[name] for name in by_doc_vector},
            # Copied: what dies later stays alive in this snapshot.
            alive=self._chunks["alive"].copy(),
            doc_alive=self._documents["doc_alive"].copy(),
            bound=self._bound,
            loads=self._loads,
            count=self._count,
            document_count=self._document_count,
            terms=self._terms,
            row_of_chunk=self._row_of_chunk,
            came_at=self._came_at,
            ord_of_document=self._ord_of_document,
        )


def noted(where: NDArray[np.int32], ids: NDArray[np.int64], values: NDArray[np.integer[Any]]) -> NDArray[np.int32]:
    """`where` with these entries; a longer copy if they do not fit."""
    highest = int(ids.max(initial=0))
    if highest >= len(where):
        more = np.full(max(highest + 1 - len(where), len(where) // 2), -1, np.int32)
        where = np.concatenate((where, more))
    where[ids] = values
    return where


def summed(vectors: Vector, first: NDArray[np.int32], sizes: NDArray[np.int32]) -> Vector:
    """The sum of each run of rows."""
    sums = vectors[first]
    for at in np.flatnonzero(sizes > LONG):
        sums[at] = vectors[first[at] : first[at] + sizes[at]].sum(axis=0)
    # The others row by row, all runs at once: a third of the time of numpy's reduceat.
    short = np.flatnonzero(sizes <= LONG)
    for offset in range(1, int(sizes[short].max(initial=0))):
        short = short[sizes[short] > offset]
        sums[short] += vectors[first[short] + offset]
    return sums
