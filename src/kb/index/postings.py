"""Where terms occur, in memory: those of recent questions, bounded.

FTS5 holds the postings on disk, and reading those of a frequent term takes far longer than using them. A chunk's
terms never change (new content means new chunks), so what was read once stays right. Chunks that came later are in
the tail: their terms are read once, chunk by chunk, and belong to whoever asks.

Two things are held: postings by chunk id, compact, for many terms; and for the terms that are asked for most, where
those are at the present moment.
"""

import threading
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from kb.core.arrays import among
from kb.index import kernels
from kb.index.chunk_index import Snapshot
from kb.store.backend import Postings, Transaction
from kb.store.stored import HIGHEST_ID

HELD_POSTINGS = 50_000_000  # of 6 bytes each
LOCATED_POSTINGS = 40_000_000  # of some 15 bytes each
ENTRY = 64  # postings whose room a term takes, beside its own
FEW = 64  # postings of a term that is forgotten when the tail is folded in: there are thousands, and searches wait
LARGEST_DELTA = 2048  # chunks, whose terms take some 10 kB each


@dataclass(frozen=True, slots=True)
class CompactPostings:
    """Postings in few bytes."""

    chunk_ids: NDArray[np.int32]
    counts: NDArray[np.uint16]

    def __len__(self) -> int:
        return len(self.chunk_ids)

    @staticmethod
    def of(postings: Postings) -> "CompactPostings":
        ids, counts = postings.chunk_ids, np.minimum(postings.counts, np.iinfo(np.uint16).max)
        if len(ids) and (ids[0] < 0 or ids[-1] > HIGHEST_ID):  # in a damaged index
            held = (ids >= 0) & (ids <= HIGHEST_ID)
            ids, counts = ids[held], counts[held]
        return CompactPostings(ids.astype(np.int32), counts.astype(np.uint16))

    def upto(self, chunk_id: int) -> "CompactPostings":
        known = int(np.searchsorted(self.chunk_ids, chunk_id, side="right"))
        return (
            self if known == len(self) else CompactPostings(self.chunk_ids[:known].copy(), self.counts[:known].copy())
        )

    def followed_by(self, later: Sequence[tuple[int, int]]) -> "CompactPostings":
        ids, counts = np.array(later, np.int64).T
        return CompactPostings(
            np.append(self.chunk_ids, ids.astype(np.int32)), np.append(self.counts, counts.astype(np.uint16))
        )


class Members(NamedTuple):
    """A set of rows, or of documents, in both forms: ascending, and as a mask."""

    ascending: NDArray[np.int64]
    mask: NDArray[np.bool_]

    def among(self, values: NDArray[np.int32]) -> NDArray[np.int64]:
        """Positions of those values, which ascend, that are members."""
        return among(values, self.ascending, self.mask)


@dataclass(slots=True)
class ResolvedPostings:
    """Where a term occurs at one moment, and how often: in passages, and in whole documents. In few bytes too."""

    rows: NDArray[np.int32]
    counts: NDArray[np.uint16]
    doc_ords: NDArray[np.int32]  # of the documents
    totals: NDArray[np.uint32]
    impacts: tuple[NDArray[np.float32], NDArray[np.float32]] | None = None  # to both, kept by whoever worked it out

    def __len__(self) -> int:
        return len(self.rows)

    @staticmethod
    def of(postings: CompactPostings, snapshot: Snapshot) -> "ResolvedPostings":
        rows, counts = kernels.located(postings.chunk_ids, postings.counts, snapshot.row_of_chunk, snapshot.alive)
        if (rows[1:] < rows[:-1]).any():  # published in another order than written
            order = rows.argsort()
            rows, counts = rows.take(order), counts.take(order)
        return ResolvedPostings(rows, counts, *kernels.totals(rows, counts, snapshot.doc_ords))

    def within(self, rows: Members, documents: Members) -> "ResolvedPostings":
        own, owned = rows.among(self.rows), documents.among(self.doc_ords)
        return ResolvedPostings(self.rows[own], self.counts[own], self.doc_ords[owned], self.totals[owned])

    def holds(self, row: int) -> bool:
        at = int(np.searchsorted(self.rows, row))
        return at < len(self.rows) and int(self.rows[at]) == row


Entry = TypeVar("Entry", CompactPostings, ResolvedPostings)


class Recent(Generic[Entry]):
    """What was used last, in the room of so many postings."""

    def __init__(self, capacity: int) -> None:
        self.size = 0
        self._capacity = capacity
        self._entries: OrderedDict[str, Entry] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def room(self) -> int:
        """What it takes, in postings."""
        return self.size + ENTRY * len(self._entries)

    def get(self, term: str) -> Entry | None:
        if term in self._entries:
            self._entries.move_to_end(term)
        return self._entries.get(term)

    def __contains__(self, term: str) -> bool:
        return term in self._entries

    def put(self, term: str, entry: Entry, *, asked: bool = True) -> None:
        """What nobody asked for is the first to go."""
        self.drop(term)
        self._entries[term] = entry
        self._entries.move_to_end(term, last=asked)
        self.size += len(entry)
        while self.room > self._capacity and len(self._entries) > 1:
            self.drop(next(iter(self._entries)))

    def drop(self, term: str) -> None:
        if (old := self._entries.pop(term, None)) is not None:
            self.size -= len(old)


class Delta:
    """The terms of the chunks after those that the held postings know."""

    def __init__(self, after: int) -> None:
        self.after = self.upto = after
        self.chunks = 0
        self._terms: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)  # (chunk id, count)

    def add(self, rows: Iterable[tuple[int, Sequence[str]]]) -> None:
        for chunk_id, terms in rows:
            for term, count in Counter(terms).items():
                self._terms[term].append((chunk_id, count))
            self.upto = chunk_id
            self.chunks += 1

    @property
    def terms(self) -> Iterable[str]:
        return self._terms.keys()

    def of(self, term: str) -> list[tuple[int, int]]:
        return list(self._terms.get(term, ()))


class PostingsCache:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: Recent[CompactPostings]
        self._located: Recent[ResolvedPostings]
        self._version: int  # of the moment at which they are located
        self._delta: Delta
        self.times_forgotten = 0
        self._forget(after=0)

    @property
    def size(self) -> int:
        return self._held.size

    @property
    def room(self) -> int:
        return self._held.room

    def clear(self) -> None:
        with self._lock:
            self._forget(after=0)

    def of(self, tx: Transaction, snapshot: Snapshot, terms: Sequence[str]) -> dict[str, ResolvedPostings]:
        """Where each term occurs at this moment, which `tx` must have seen."""
        with self._lock:
            self._follow(tx, snapshot)
            delta = self._delta
            located = self._located_at(snapshot)
            found = {term: located.get(term) for term in terms}
            held = {term: (self._held.get(term), delta.of(term)) for term in terms if found[term] is None}
        resolved = {
            term: at if (at := found[term]) is not None else self._locate(tx, snapshot, term, *held[term], delta)
            for term in terms
        }
        with self._lock:
            located = self._located_at(snapshot)
            for term in held:
                located.put(term, resolved[term])
        return resolved

    def hold(self, tx: Transaction, snapshot: Snapshot, terms: Sequence[str]) -> None:
        """Read those that are not held yet, for whoever will ask; nothing else has to go for them."""
        with self._lock:
            self._follow(tx, snapshot)
            delta = self._delta
            new = [term for term in terms if term not in self._held]
        self._read(tx, new, delta, asked=False)

    def _locate(
        self,
        tx: Transaction,
        snapshot: Snapshot,
        term: str,
        known: CompactPostings | None,
        later: Sequence[tuple[int, int]],
        delta: Delta,
    ) -> ResolvedPostings:
        if known is not None:
            return ResolvedPostings.of(known.followed_by(later) if later else known, snapshot)
        (postings,) = self._read(tx, [term], delta, asked=True)
        return ResolvedPostings.of(postings, snapshot)

    def _read(self, tx: Transaction, terms: Sequence[str], delta: Delta, *, asked: bool) -> list[CompactPostings]:
        found = [CompactPostings.of(tx.fulltext.postings(term)) for term in terms]
        with self._lock:
            # Another search may have gone on meanwhile, to a moment that this one has not seen all of.
            if delta is self._delta and tx.chunk_ids_given() >= delta.after:
                for term, postings in zip(terms, found, strict=True):
                    self._held.put(term, postings.upto(delta.after), asked=asked)
        return found

    def _located_at(self, snapshot: Snapshot) -> Recent[ResolvedPostings]:
        """What is located at this moment; who still reads an older one than others do keeps it to itself."""
        if snapshot.version > self._version:
            self._located, self._version = Recent[ResolvedPostings](LOCATED_POSTINGS), snapshot.version
        return self._located if snapshot.version == self._version else Recent[ResolvedPostings](LOCATED_POSTINGS)

    def _follow(self, tx: Transaction, snapshot: Snapshot) -> None:
        """Take in the terms of what was written since."""
        if self._delta.upto >= snapshot.newest:
            return
        new = tx.fulltext.terms_after(self._delta.upto, LARGEST_DELTA + 1) if len(self._held) else []
        if len(new) > LARGEST_DELTA or not len(self._held):
            self._forget(after=tx.chunk_ids_given())
            return
        self._delta.add(new)
        if self._delta.chunks > LARGEST_DELTA:
            self._merge()

    def _merge(self) -> None:
        """From now on the held postings know what was in the tail."""
        delta, self._delta = self._delta, Delta(self._delta.upto)
        for term in delta.terms:
            postings = self._held.get(term)
            if postings is not None and len(postings) > FEW:
                self._held.put(term, postings.followed_by(delta.of(term)))
            else:
                self._held.drop(term)

    def _forget(self, after: int) -> None:
        self.times_forgotten += 1
        self._held = Recent[CompactPostings](HELD_POSTINGS)
        self._located, self._version = Recent[ResolvedPostings](LOCATED_POSTINGS), -1
        self._delta = Delta(after)
