"""Where terms occur, in memory: those of recent questions, bounded.

FTS5 holds the postings on disk, and reading those of a frequent term takes far longer than using them. A chunk's
terms never change (new content means new chunks), so what was read once stays right. Chunks that came later are in
the tail: their terms are read once, chunk by chunk, and belong to whoever asks.
"""

import threading
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kb.search.live import Numbers, Places, Snapshot
from kb.store.backend import Postings, Transaction

CACHED_POSTINGS = 8_000_000  # of some 40 bytes each
LONGEST_TAIL = 2048  # chunks, whose terms take some 10 kB each


@dataclass(slots=True)
class TermPlaces:
    """Where a term occurs at one moment, and how often: in passages, and in whole documents."""

    places: Places
    counts: NDArray[np.float32]
    numbers: Numbers  # of the documents
    totals: NDArray[np.float32]
    worth: tuple[NDArray[np.float32], NDArray[np.float32]] | None = None  # to both, kept by whoever worked it out

    @staticmethod
    def of(postings: Postings, snapshot: Snapshot) -> "TermPlaces":
        places, counts = snapshot.places_of(postings.chunk_ids).astype(np.int64), postings.counts
        there = places >= 0
        if not there.all():
            places, counts = places[there], counts[there]
        if len(places) > 1 and np.any(places[1:] < places[:-1]):  # published in another order than written
            order = np.argsort(places)
            places, counts = places[order], counts[order]
        owners = snapshot.owners[places].astype(np.int64)
        new = np.flatnonzero(np.diff(owners, prepend=-1))
        return TermPlaces(places, counts, owners[new], np.add.reduceat(counts, new) if len(new) else counts)

    def within(self, holds: NDArray[np.bool_], holds_document: NDArray[np.bool_]) -> "TermPlaces":
        own, owned = holds[self.places], holds_document[self.numbers]
        return TermPlaces(self.places[own], self.counts[own], self.numbers[owned], self.totals[owned])

    def holds(self, place: int) -> bool:
        at = int(np.searchsorted(self.places, place))
        return at < len(self.places) and int(self.places[at]) == place


@dataclass(slots=True)
class Held:
    """The postings of a term, and where they were at the last moment that was asked for."""

    postings: Postings
    located: tuple[int, TermPlaces] | None = None  # version of the moment


class Tail:
    """The terms of the chunks after those that the held postings know."""

    def __init__(self, after: int) -> None:
        self.after = self.upto = after
        self.chunks = 0
        self._terms: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)  # (chunk id, count)

    def add(self, chunk_id: int, terms: Sequence[str]) -> None:
        for term, count in Counter(terms).items():
            self._terms[term].append((chunk_id, count))
        self.upto = chunk_id
        self.chunks += 1

    def of(self, term: str) -> list[tuple[int, int]]:
        return list(self._terms.get(term, ()))


class PostingsCache:
    def __init__(self) -> None:
        self._held: OrderedDict[str, Held] = OrderedDict()
        self._size = 0
        self._tail = Tail(0)
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        return self._size

    @property
    def is_half_full(self) -> bool:
        return self._size > CACHED_POSTINGS / 2

    def clear(self) -> None:
        with self._lock:
            self._forget(after=0)

    def of(self, tx: Transaction, snapshot: Snapshot, terms: Sequence[str]) -> dict[str, TermPlaces]:
        """Where each term occurs at this moment, which `tx` must have seen."""
        with self._lock:
            self._follow(tx, snapshot)
            held = {term: (self._held[term], self._tail.of(term)) for term in terms if term in self._held}
            for term in held:
                self._held.move_to_end(term)
        return {
            term: located(*held[term], snapshot) if term in held else self._read(tx, term, snapshot) for term in terms
        }

    def _read(self, tx: Transaction, term: str, snapshot: Snapshot) -> TermPlaces:
        with self._lock:
            tail = self._tail
        postings = tx.fulltext.postings(term)
        places = TermPlaces.of(postings, snapshot)
        seen = int(tx.value("SELECT COALESCE(max(id), 0) FROM chunks"))
        with self._lock:
            # Another search may have gone on meanwhile, to a moment that this one has not seen all of.
            if tail is self._tail and seen >= tail.after and term not in self._held:
                known = int(np.searchsorted(postings.chunk_ids, tail.after, side="right"))
                known_postings = Postings(postings.chunk_ids[:known], postings.counts[:known])
                self._keep(term, Held(known_postings, (snapshot.version, places)))
        return places

    def _keep(self, term: str, held: Held) -> None:
        self._held[term] = held
        self._size += len(held.postings.chunk_ids)
        while self._size > CACHED_POSTINGS and len(self._held) > 1:
            _, dropped = self._held.popitem(last=False)
            self._size -= len(dropped.postings.chunk_ids)

    def _follow(self, tx: Transaction, snapshot: Snapshot) -> None:
        """Take in the terms of what was written since."""
        if self._tail.upto >= snapshot.newest:
            return
        new = tx.fulltext.terms_after(self._tail.upto, LONGEST_TAIL + 1) if self._held else []
        if len(new) > LONGEST_TAIL or not self._held:
            self._forget(after=int(tx.value("SELECT max(id) FROM chunks")))
            return
        for chunk_id, terms in new:
            self._tail.add(chunk_id, terms)
        if self._tail.chunks > LONGEST_TAIL:
            self._fold()

    def _fold(self) -> None:
        """From now on the held postings know what was in the tail."""
        folded = {term: joined(held.postings, self._tail.of(term)) for term, held in self._held.items()}
        self._forget(after=self._tail.upto)
        for term, postings in folded.items():
            self._keep(term, Held(postings))

    def _forget(self, after: int) -> None:
        self._held.clear()
        self._size = 0
        self._tail = Tail(after)


def located(held: Held, later: Sequence[tuple[int, int]], snapshot: Snapshot) -> TermPlaces:
    if (before := held.located) is not None and before[0] == snapshot.version:  # another search may change it now
        return before[1]
    places = TermPlaces.of(joined(held.postings, later), snapshot)
    held.located = (snapshot.version, places)
    return places


def joined(known: Postings, later: Sequence[tuple[int, int]]) -> Postings:
    if not later:
        return known
    ids, counts = np.array(later, np.int64).T
    return Postings(np.append(known.chunk_ids, ids), np.append(known.counts, counts.astype(np.float32)))
