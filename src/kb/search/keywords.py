"""The keyword leg: BM25 over the postings of the question's terms.

FTS5 holds the postings; those of recent terms stay in memory, bounded. A chunk's terms never change (new content
means new chunks), so what was read once stays right: only chunks that came later are read on top.
"""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kb.search.live import Snapshot
from kb.store.backend import Postings, Transaction

K1 = 1.2
B = 0.75
COLUMN_WEIGHTS = np.array([1.0, 1.0, 1.0], np.float32)  # title, heading, body
CACHED_POSTINGS = 8_000_000  # of 12 bytes each


@dataclass(frozen=True, slots=True)
class TermPostings:
    """Where a term occurs, up to a chunk id."""

    chunk_ids: NDArray[np.int64]
    frequencies: NDArray[np.float32]  # weighted by column
    covers: int


@dataclass(frozen=True, slots=True)
class Keywords:
    """What the keyword leg found."""

    scores: NDArray[np.float32]  # BM25 of every place; 0 where no term occurs
    places: dict[str, NDArray[np.int32]]  # where each known term occurs

    @property
    def known_terms(self) -> list[str]:
        return list(self.places)


class KeywordIndex:
    def __init__(self) -> None:
        self._cache: OrderedDict[str, TermPostings] = OrderedDict()
        self._cached = 0
        self._lock = threading.Lock()
        self._generation = 0  # what was read before the last `clear` is not kept

    @property
    def cached_postings(self) -> int:
        return self._cached

    def clear(self) -> None:
        """Forget all of it: the full text was changed behind its back."""
        with self._lock:
            self._cache.clear()
            self._cached = 0
            self._generation += 1

    def search(self, tx: Transaction, snapshot: Snapshot, terms: Sequence[str]) -> Keywords:
        scores = np.zeros(len(snapshot.chunk_ids), np.float32)
        found: dict[str, NDArray[np.int32]] = {}
        count, mean = snapshot.count, snapshot.mean_length
        for term in terms:
            postings = self._postings(tx, snapshot, term)
            places = snapshot.places_of(postings.chunk_ids)
            live = places >= 0
            places, frequency = places[live], postings.frequencies[live]
            if not len(places):
                continue
            rarity = np.log1p((count - len(places) + 0.5) / (len(places) + 0.5))
            saturation = K1 * (1 - B + B * snapshot.lengths[places] / mean)
            scores[places] += np.float32(rarity) * (frequency * (K1 + 1) / (frequency + saturation)).astype(np.float32)
            found[term] = places
        return Keywords(scores, found)

    def _postings(self, tx: Transaction, snapshot: Snapshot, term: str) -> TermPostings:
        with self._lock:
            generation = self._generation
            held = self._cache.get(term)
            if held is not None and held.covers >= snapshot.newest:
                self._cache.move_to_end(term)
                return held
        covers = int(tx.value("SELECT COALESCE(max(id), 0) FROM chunks"))
        fresh = extended(held, tx.fulltext.postings(term, after=held.covers if held else 0), covers)
        self._keep(term, fresh, generation)
        return fresh

    def _keep(self, term: str, postings: TermPostings, generation: int) -> None:
        with self._lock:
            if generation != self._generation:
                return
            if (old := self._cache.pop(term, None)) is not None:
                self._cached -= len(old.chunk_ids)
            self._cache[term] = postings
            self._cached += len(postings.chunk_ids)
            while self._cached > CACHED_POSTINGS and len(self._cache) > 1:
                _, dropped = self._cache.popitem(last=False)
                self._cached -= len(dropped.chunk_ids)


def extended(held: TermPostings | None, newer: Postings, covers: int) -> TermPostings:
    frequencies = newer.counts @ COLUMN_WEIGHTS
    if held is None:
        return TermPostings(newer.chunk_ids, frequencies, covers)
    if not len(newer.chunk_ids):
        return TermPostings(held.chunk_ids, held.frequencies, covers)
    return TermPostings(
        np.concatenate((held.chunk_ids, newer.chunk_ids)),
        np.concatenate((held.frequencies, frequencies)),
        covers,
    )
