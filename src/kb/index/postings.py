"""Cache of postings: the chunks in which each term occurs, and how often. Bounded.

The store holds the postings, and reading those of a frequent term takes far longer than using them. A chunk's terms
never change (new content means new chunks), so what was read once stays right. The terms of chunks that were published
later are in the delta, which is read once, chunk by chunk, and serves every term. Whether one came later is told by the
version of the index in memory in which it came: a store may commit chunks in another order than that of their ids.

There are two caches: compact postings by chunk id, for many terms; and postings resolved to the rows of the present
snapshot, for the terms that are asked for most.
"""

import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kb.core.lru import LruCache
from kb.index.chunk_index import Snapshot
from kb.index.kernels import kernels
from kb.store.backend import Postings, Transaction
from kb.store.rows import HIGHEST_ID

HELD_POSTINGS = 50_000_000  # of 6 bytes each
RESOLVED_POSTINGS = 40_000_000  # of some 15 bytes each
ENTRY = 64  # overhead of a cached term, counted in postings
FEW = 64  # a term with at most this many postings is dropped in a merge: there are thousands, and searches wait
LARGEST_DELTA = 2048  # chunks, whose terms take some 10 kB each


@dataclass(frozen=True, slots=True)
class CompactPostings:
    """Postings by chunk id, in 6 bytes each."""

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

    def upto(self, version: int, snapshot: Snapshot) -> "CompactPostings":
        """Those of the chunks that had come by this version; chunks that were never published have not."""
        came_at = snapshot.came_at.take(self.chunk_ids, mode="clip")
        there = (came_at >= 0) & (came_at <= version) & (self.chunk_ids < len(snapshot.came_at))
        return self if there.all() else CompactPostings(self.chunk_ids[there], self.counts[there])

    def followed_by(self, later: Sequence[tuple[int, int]]) -> "CompactPostings":
        ids, counts = np.array(later, np.int64).T
        return CompactPostings(
            np.append(self.chunk_ids, ids.astype(np.int32)), np.append(self.counts, counts.astype(np.uint16))
        )


@dataclass(slots=True)
class ResolvedPostings:
    """Rows and documents in which a term occurs in one snapshot, ascending, and how often in each."""

    rows: NDArray[np.int32]
    counts: NDArray[np.uint16]
    doc_ords: NDArray[np.int32]
    totals: NDArray[np.uint32]
    # On each row and on each document without a filter. The keyword leg computes them once and keeps them here.
    impacts: tuple[NDArray[np.float32], NDArray[np.float32]] | None = None

    def __len__(self) -> int:
        return len(self.rows)

    @staticmethod
    def of(postings: CompactPostings, snapshot: Snapshot) -> "ResolvedPostings":
        rows, counts = kernels.located(postings.chunk_ids, postings.counts, snapshot.row_of_chunk, snapshot.alive)
        if (rows[1:] <= rows[:-1]).any():  # published in another order than written, or taken out of the trash
            rows, first = np.unique(rows, return_index=True)
            counts = counts.take(first)
        return ResolvedPostings(rows, counts, *kernels.totals(rows, counts, snapshot.doc_ords))

    def at(self, rows: NDArray[np.int64], documents: NDArray[np.int64]) -> "ResolvedPostings":
        """Those at these positions in `rows` and in `doc_ords`."""
        return ResolvedPostings(self.rows[rows], self.counts[rows], self.doc_ords[documents], self.totals[documents])

    def holds(self, row: int) -> bool:
        at = int(np.searchsorted(self.rows, row))
        return at < len(self.rows) and int(self.rows[at]) == row


class Delta:
    """The terms of the chunks that are newer than the cached compact postings; `after` and `upto` are versions."""

    def __init__(self, after: int) -> None:
        self.after = self.upto = after
        self.chunks = 0
        self._terms: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)  # (chunk id, count)

    def add(self, chunks: Iterable[tuple[int, Sequence[str]]], upto: int) -> None:
        for chunk_id, terms in chunks:
            for term, count in Counter(terms).items():
                self._terms[term].append((chunk_id, count))
            self.chunks += 1
        self.upto = upto

    @property
    def terms(self) -> Iterable[str]:
        return self._terms.keys()

    def of(self, term: str) -> list[tuple[int, int]]:
        return list(self._terms.get(term, ()))


class PostingsCache:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: LruCache[str, CompactPostings]
        self._resolved: LruCache[str, ResolvedPostings]
        self._version: int  # of the snapshot that they are resolved for
        self._delta: Delta
        self._loads = 0  # of the index that they follow
        self.times_forgotten = 0
        self._forget(after=0)

    @property
    def size(self) -> int:
        """Number of compact postings held."""
        return self._held.weight - ENTRY * len(self._held)

    @property
    def room(self) -> int:
        """What they take, with the overhead of each term, counted in postings."""
        return self._held.weight

    def clear(self) -> None:
        with self._lock:
            self._forget(after=0)

    def of(self, tx: Transaction, snapshot: Snapshot, terms: Sequence[str]) -> dict[str, ResolvedPostings]:
        """The postings of each term in this snapshot. `tx` must not be older than the snapshot."""
        with self._lock:
            self._follow(tx, snapshot)
            delta = self._delta
            cached = self._resolved_at(snapshot)
            found = {term: at for term in terms if (at := cached.get(term)) is not None}
            held = {term: (self._held.get(term), delta.of(term)) for term in terms if term not in found}
        for term, (known, later) in held.items():
            if known is None:
                (postings,) = self._read(tx, snapshot, [term], delta, used=True)
            else:
                postings = known.followed_by(later) if later else known
            found[term] = ResolvedPostings.of(postings, snapshot)
        with self._lock:
            cached = self._resolved_at(snapshot)
            for term in held:
                cached.put(term, found[term])
        return {term: found[term] for term in terms}

    def hold(self, tx: Transaction, snapshot: Snapshot, terms: Sequence[str]) -> None:
        """Read the postings of these terms ahead. They never displace postings that a search used."""
        with self._lock:
            self._follow(tx, snapshot)
            delta = self._delta
            new = [term for term in terms if term not in self._held]
        self._read(tx, snapshot, new, delta, used=False)

    def _read(
        self, tx: Transaction, snapshot: Snapshot, terms: Sequence[str], delta: Delta, *, used: bool
    ) -> list[CompactPostings]:
        found = list(map(CompactPostings.of, tx.fulltext.postings(terms)))
        with self._lock:
            # Another search may have merged the delta meanwhile, with chunks that this transaction does not see.
            if delta is self._delta and snapshot.version >= delta.after and snapshot.loads == self._loads:
                for term, postings in zip(terms, found, strict=True):
                    self._held.put(term, postings.upto(delta.after, snapshot), used=used)
        return found

    def _resolved_at(self, snapshot: Snapshot) -> LruCache[str, ResolvedPostings]:
        """The cache of this snapshot. A search that still reads an older one gets a cache of its own."""
        if snapshot.version > self._version:
            self._resolved, self._version = LruCache(RESOLVED_POSTINGS, weight), snapshot.version
        return self._resolved if snapshot.version == self._version else LruCache(RESOLVED_POSTINGS, weight)

    def _follow(self, tx: Transaction, snapshot: Snapshot) -> None:
        """Add the terms of chunks published since to the delta."""
        if snapshot.loads > self._loads:
            self._loads = snapshot.loads
            self._forget(after=snapshot.version)
        if self._delta.upto >= snapshot.version or snapshot.loads < self._loads:
            return
        new = snapshot.new_since(self._delta.upto)
        if len(new) > LARGEST_DELTA or (len(new) and not len(self._held)):
            self._forget(after=snapshot.version)
            return
        self._delta.add(tx.fulltext.terms_of(new.tolist()), snapshot.version)
        if self._delta.chunks > LARGEST_DELTA:
            self._merge()

    def _merge(self) -> None:
        """Append the delta to the compact postings of its terms, and begin an empty one."""
        delta, self._delta = self._delta, Delta(self._delta.upto)
        for term in delta.terms:
            postings = self._held.get(term)
            if postings is not None and len(postings) > FEW:
                self._held.put(term, postings.followed_by(delta.of(term)))
            else:
                self._held.drop(term)

    def _forget(self, after: int) -> None:
        self.times_forgotten += 1
        self._held = LruCache(HELD_POSTINGS, weight)
        self._resolved, self._version = LruCache(RESOLVED_POSTINGS, weight), -1
        self._delta = Delta(after)


def weight(postings: CompactPostings | ResolvedPostings) -> int:
    return len(postings) + ENTRY
