"""The keyword leg: BM25 of each passage and of its whole document, over the postings of the question's terms.

What a passage is worth is the geometric mean of the two: a passage that holds the words in a document that is about
them wins over one that mentions them in passing, and a passage without any of them is worth nothing. How rare a word
is, and how long a text usually is, is told among what the filter lets through: within one conversation, the names of
those who speak say nothing. Figures: docs/decisions/006.

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
class Scope:
    """The places that are searched, and what is usual among them."""

    places: NDArray[np.bool_]
    chunks: int
    documents: int
    mean_length: float
    mean_document_length: float

    @staticmethod
    def of(snapshot: Snapshot, places: NDArray[np.bool_]) -> "Scope":
        chunks = int(np.count_nonzero(places))
        documents = int(np.count_nonzero(places & snapshot.heads))
        terms = float(snapshot.lengths.sum(where=places))
        return Scope(places, chunks, documents, terms / max(chunks, 1) or 1.0, terms / max(documents, 1) or 1.0)


@dataclass(frozen=True, slots=True)
class Keywords:
    """What the keyword leg found."""

    scores: NDArray[np.float32]  # of every place; 0 outside the scope and where no term occurs
    places: dict[str, NDArray[np.int32]]  # where each known term occurs, also outside the scope

    @property
    def known_terms(self) -> list[str]:
        return list(self.places)

    @property
    def anywhere(self) -> int:
        """How many chunks hold any of the terms, within the scope or not."""
        return len(np.unique(np.concatenate(list(self.places.values())))) if self.places else 0


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

    def search(self, tx: Transaction, snapshot: Snapshot, scope: Scope, terms: Sequence[str]) -> Keywords:
        scores = np.zeros(len(snapshot.chunk_ids), np.float32)
        whole = np.zeros(int(snapshot.document_ids.max(initial=0)) + 1, np.float32)  # by document id
        found: dict[str, NDArray[np.int32]] = {}
        for term in terms:
            postings = self._postings(tx, snapshot, term)
            places = snapshot.places_of(postings.chunk_ids)
            live = places >= 0
            if not live.any():
                continue
            found[term] = places[live]
            live[live] = scope.places[places[live]]
            places, frequencies = places[live], postings.frequencies[live]
            if not len(places):
                continue
            scores[places] += bm25(frequencies, snapshot.lengths[places] / scope.mean_length, scope.chunks)
            documents, at, totals = per_document(snapshot.document_ids[places], frequencies)
            lengths = snapshot.document_lengths[places[at]] / scope.mean_document_length
            whole[documents] += bm25(totals, lengths, scope.documents)
        hit = np.flatnonzero(scores)
        scores[hit] = np.sqrt(scores[hit] * whole[snapshot.document_ids[hit]])
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


def bm25(frequencies: NDArray[np.float32], lengths: NDArray[np.float64], of: int) -> NDArray[np.float32]:
    """What one term adds to each text that holds it; `lengths` are relative to the mean, `of` counts all texts."""
    rarity = np.log1p((of - len(frequencies) + 0.5) / (len(frequencies) + 0.5))
    score: NDArray[np.float32] = rarity * frequencies * (K1 + 1) / (frequencies + K1 * (1 - B + B * lengths))
    return score.astype(np.float32)


def per_document(
    document_ids: NDArray[np.int64], frequencies: NDArray[np.float32]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
    """Each document once, where its first chunk is in the arrays, and the sum of its frequencies."""
    order = np.argsort(document_ids, kind="stable")  # nearly sorted as they come, which makes this quick
    grouped = document_ids[order]
    new = np.ones(len(grouped), np.bool_)
    np.not_equal(grouped[1:], grouped[:-1], out=new[1:])
    starts = np.flatnonzero(new)
    return grouped[starts], order[starts], np.add.reduceat(frequencies[order], starts)


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
