"""The keyword leg: BM25 of each passage and of its whole document, over the postings of the question's terms.

The score of a passage is the geometric mean of the two: a passage with the words, in a document about them, wins over
one that mentions them in passing; a passage without any of them scores 0. Rarity and mean length are those within the
filter: within one conversation, the names of its speakers are not rare. What a question says several times counts more.
A word that occurs nowhere is taken for the most similar one that does. Figures: docs/decisions/006 and 031.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest
from itertools import takewhile
from threading import Event

import numpy as np
from numpy.typing import NDArray

from kb.core.arrays import among, level_of, nonzero
from kb.index.chunk_index import ChunkIndex, DocOrds
from kb.index.kernels import Counts, Indices, Rows, Totals, kernels
from kb.index.postings import ENTRY, HELD_POSTINGS, PostingsCache, ResolvedPostings
from kb.index.terms import STOP_WORDS, Asked
from kb.index.vocabulary import Vocabulary
from kb.search.filter_scope import Scope
from kb.search.ranking import Scored
from kb.store.backend import Database, Transaction

K1 = 1.2
B = 0.75
K3 = 8  # how soon a further occurrence in the question counts less
ROUNDING = 1 - 1e-5  # so that no row is lost to rounding
FREQUENT = 500  # chunks with a term from which on its postings are also resolved ahead
AT_ONCE = 64  # rarer terms that are read together
MOST_TERMS = 250_000  # terms that are read ahead
MISSPELT_SHARE = 0.5  # of a question's words that may occur nowhere for them to count as misspelt
FEW_WORDS = 2  # that may in any case
LIKELY = 3  # terms that may be tried for a word that occurs nowhere
MOST_FREQUENT = 0.8 * HELD_POSTINGS  # what frequent terms may take of the memory; the rest is for the others

Scores = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Lookup:
    """What the index has of a question's terms."""

    postings: dict[str, ResolvedPostings]  # of each term that occurs somewhere
    weights: dict[str, float]  # of all terms
    corrected: dict[str, str]  # words that occur nowhere, and the terms that were looked up in their place


class Keywords:
    """Keyword scores of every row of a scope, and the best rows: at least `count`, and seldom many more."""

    def __init__(self, scope: Scope, found: Lookup, count: int) -> None:
        self.terms = found.postings  # also outside the scope
        self.corrected = found.corrected
        self._weights = found.weights
        self._snapshot = scope.snapshot
        self._doc_ords = scope.snapshot.doc_ords
        self._passages = np.zeros(len(scope.snapshot.chunk_ids), np.float32)  # BM25 by row
        self._whole = np.zeros(len(scope.snapshot.document_ids), np.float32)  # BM25 by document ordinal
        # Of all terms of the question. One that was corrected counts here as it was written, too: it is less sure.
        unknown = sum(weight for term, weight in found.weights.items() if term not in found.postings)
        self._rarities = unknown * rarity(0, scope.chunks)
        for term, at in found.postings.items():
            self._add(at, found.weights[term], scope)
        # Share of the question's words, by rarity, that occur anywhere; a corrected one does.
        corrected = sum(found.weights[term] for term in set(found.corrected.values()))
        missing = max(unknown - corrected, 0.0) * rarity(0, scope.chunks)
        self.known = 1 - missing / self._rarities if self._rarities else 1.0
        # Every row of the scope in which any term occurs.
        self.hits = Scored(*kernels.hits(self._passages, self._whole, self._doc_ords, scope.rows))
        self.look_for(count)

    def look_for(self, count: int) -> None:
        """Determine the best rows: this many, and those that tie with the last."""
        self.level = float(level_of(self.hits.scores, count)) if len(self.hits.rows) > count else 0.0
        self.best = self.reaching(self.level)

    def _add(self, at: ResolvedPostings, weight: float, scope: Scope) -> None:
        if scope.rows is None or scope.doc_ords is None:  # kept for every search of this snapshot without a filter
            at.impacts = passages, whole = at.impacts or impacts(at, scope)
        else:
            at = at.at(
                among(at.rows, scope.rows, scope.holds), among(at.doc_ords, scope.doc_ords, scope.holds_document)
            )
            passages, whole = impacts(at, scope)
        self._rarities += weight * rarity(len(at.rows), scope.chunks)
        if weight != 1:
            passages, whole = passages * np.float32(weight), whole * np.float32(weight)
        kernels.add(at.rows, passages, self._passages)
        kernels.add(at.doc_ords, whole, self._whole)

    @property
    def anywhere(self) -> int:
        """Number of chunks with any of the terms, within the scope or not."""
        held = [at.rows for at in self.terms.values()]
        return len(np.unique(np.concatenate(held))) if held else 0

    @property
    def doc_ords(self) -> DocOrds:
        """Every document of the scope in which any term occurs."""
        return nonzero(self._whole > 0)

    def scores(self, rows: Rows) -> Scores:
        """Score of each row; 0 if no term occurs."""
        scores: Scores = np.sqrt(self._passages.take(rows) * self._whole.take(self._doc_ords.take(rows)))
        return scores

    def coverage(self, row: int) -> float:
        """The score of a row per rarity of the question: how much of what was asked for it holds. About 2 is all.

        Counted over the whole collection: a filter must not change how sure a search is of a passage.
        """
        everything = Scope.unfiltered(self._snapshot)
        doc_ord = int(self._doc_ords[row])
        passage = whole = rarities = 0.0
        for term, weight in self._weights.items():
            at = self.terms.get(term)
            rarities += weight * rarity(len(at) if at else 0, everything.chunks)
            if at is not None:
                at.impacts = passages, wholes = at.impacts or impacts(at, everything)
                passage += weight * value_at(at.rows, row, passages)
                whole += weight * value_at(at.doc_ords, doc_ord, wholes)
        return math.sqrt(passage * whole) / rarities if rarities else 0.0

    def better_than(self, score: float) -> int:
        return int(np.count_nonzero(self.hits.scores > np.float32(score)))

    def reaching(self, score: float, below: float = math.inf) -> Scored:
        """Every row with a term whose score is at least `score` and less than `below`."""
        scores = self.hits.scores
        large = scores >= np.float32(score * ROUNDING)
        if below < math.inf:
            large &= scores < np.float32(below * ROUNDING)
        return self.hits.where(large)


class KeywordIndex:
    def __init__(self) -> None:
        self._postings = PostingsCache()
        self._vocabulary = Vocabulary()
        self._warmed = 0  # how often postings had been forgotten when they were read ahead

    @property
    def cached_postings(self) -> int:
        return self._postings.size

    def clear(self) -> None:
        """Forget all postings: the full-text index was changed by other means."""
        self._postings.clear()

    @property
    def is_cold(self) -> bool:
        """Whether postings are still to be read ahead, or were forgotten since."""
        return self._warmed != self._postings.times_forgotten or self._vocabulary.is_behind

    def warm(self, database: Database, live: ChunkIndex, stopping: Event) -> None:
        """Read postings ahead of searches, as far as there is room.

        Frequent terms come first, as they take longest to read; the most frequent of them last, as the cache keeps
        longest what was used last. The others are many, and each takes little room.
        """
        snapshot = live.snapshot()
        with database.read() as tx:
            vocabulary = takewhile(lambda _: not stopping.is_set(), tx.fulltext.vocabulary())
            askable = (one for one in vocabulary if one[0] not in STOP_WORDS)
            known = nlargest(MOST_TERMS, askable, key=lambda one: one[1])
        self._vocabulary.read([term for term, _ in known], snapshot)
        frequent = fitting([one for one in known if one[1] >= FREQUENT], MOST_FREQUENT)
        for term in reversed(frequent):
            if stopping.is_set():
                return
            scope = Scope.unfiltered(live.snapshot())
            with database.read() as tx:
                for at in self._postings.of(tx, scope.snapshot, [term]).values():
                    at.impacts = impacts(at, scope)
        # In the order in which the file has them, which is faster.
        others = sorted(fitting([one for one in known if one[1] < FREQUENT], HELD_POSTINGS - self._postings.room))
        for start in range(0, len(others), AT_ONCE):
            if stopping.is_set():
                return
            snapshot = live.snapshot()
            with database.read() as tx:
                self._postings.hold(tx, snapshot, others[start : start + AT_ONCE])
        self._warmed = self._postings.times_forgotten

    def search(self, tx: Transaction, scope: Scope, asked: Mapping[str, Asked], count: int) -> Keywords:
        found = self._known(tx, scope, list(asked))
        weights = {term: one.count * (K3 + 1) / (K3 + one.count) for term, one in asked.items()}
        corrected: dict[str, str] = {}
        words = [term for term, one in asked.items() if one.is_word]
        unknown = [term for term in words if term not in found]
        if len(unknown) > max(MISSPELT_SHARE * len(words), FEW_WORDS):  # it is in another language
            unknown = []
        for term in unknown:
            for likely in self._vocabulary.nearest(tx, scope.snapshot, term)[:LIKELY]:
                if known := self._known(tx, scope, [likely]):
                    found |= known
                    weights.setdefault(likely, weights[term])
                    corrected[asked[term].word] = likely
                    break
        return Keywords(scope, Lookup(found, weights, corrected), count)

    def _known(self, tx: Transaction, scope: Scope, terms: Sequence[str]) -> dict[str, ResolvedPostings]:
        """The postings of those terms that occur somewhere."""
        found = self._postings.of(tx, scope.snapshot, terms)
        return {term: at for term, at in found.items() if len(at.rows)}


def fitting(terms: Sequence[tuple[str, int]], room: float) -> list[str]:
    """The first of these terms, given with the number of their postings, that fit into the room together."""
    taken = np.cumsum([chunks + ENTRY for _, chunks in terms])
    return [term for term, _ in terms[: int(np.searchsorted(taken, room, side="right"))]]


def value_at(keys: Indices, key: int, values: Scores) -> float:
    """The value that belongs to a key, 0 if there is none. The keys are ascending."""
    at = int(np.searchsorted(keys, key))
    return float(values[at]) if at < len(keys) and keys[at] == key else 0.0


def impacts(at: ResolvedPostings, scope: Scope) -> tuple[Scores, Scores]:
    """What one term adds to the score of each passage and of each document with it."""
    snapshot = scope.snapshot
    return (
        bm25(at.counts, snapshot.chunk_lengths, at.rows, scope.mean_length, scope.chunks),
        bm25(at.totals, snapshot.doc_lengths, at.doc_ords, scope.mean_document_length, scope.documents),
    )


def bm25(occurrences: Counts | Totals, lengths: Indices, at: Indices, mean_length: float, of: int) -> Scores:
    """BM25 of one term in the texts at `at`, which hold it. `lengths` and `of` are those of all texts."""
    often = occurrences.astype(np.uint32, copy=False)
    weight = rarity(len(at), of) * (K1 + 1)
    return kernels.saturated(often, lengths, at, K1 * B / mean_length, K1 * (1 - B), weight)


def rarity(having: int, of: int) -> float:
    """The inverse document frequency of a term that so many texts have."""
    return math.log1p((of - having + 0.5) / (having + 0.5))
