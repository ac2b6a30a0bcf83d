"""The terms of all published chunks, for the ones that are spelt nearly like a word that occurs nowhere.

A term has a signature: one bit for each pair of neighbouring letters. One edit changes few pairs, so only terms whose
signatures are near are compared letter by letter. The terms of new chunks are added when they are needed; those of
removed chunks stay, so a caller checks that a term still occurs.
"""

import threading
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kb.core.arrays import nonzero
from kb.index.chunk_index import Snapshot
from kb.store.backend import Transaction

SHORTEST, LONG = 5, 8  # letters of a word from which on it may be one edit away, and two
PAIRS_OF_EDIT = 6  # at most, that one edit removes and adds
COMPARED = 32  # terms at most that are compared letter by letter
MOST_NEW = 512  # chunks whose terms a search reads; more are left to the next reading of all


class Vocabulary:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._terms: list[str] = []
        self._lengths = np.empty(0, np.int64)
        self._signatures = np.empty(0, np.uint64)
        self._upto = self._loads = 0  # the snapshot whose terms are held
        self.is_behind = False  # too many chunks came since

    def read(self, terms: Sequence[str], snapshot: Snapshot) -> None:
        """Take these for the terms of all chunks of a snapshot."""
        with self._lock:
            self._terms, self._lengths, self._signatures = [], self._lengths[:0], self._signatures[:0]
            self._add(terms)
            self._upto, self._loads = snapshot.version, snapshot.loads
            self.is_behind = False

    def nearest(self, tx: Transaction, snapshot: Snapshot, word: str) -> list[str]:
        """Terms that one or two edits make of a word, the nearest first, of these the most similar in their pairs."""
        edits = 0 if len(word) < SHORTEST else 1 if len(word) < LONG else 2
        with self._lock:
            if not edits:
                return []
            self._follow(tx, snapshot)
            lengths = np.abs(self._lengths - len(word))
            pairs = np.bitwise_count(self._signatures ^ signatures([word])[0])
            near = nonzero((lengths <= edits) & (pairs <= edits * PAIRS_OF_EDIT))
            near = near.take(np.argsort(pairs.take(near), kind="stable")[:COMPARED])
            terms = list(dict.fromkeys(self._terms[at] for at in near.tolist()))
        terms = [term for term in terms if term[0] == word[0]]  # few people mistype the first letter
        found = [(distance, term) for term in terms if (distance := edit_distance(word, term, edits)) <= edits]
        return [term for _, term in sorted(found, key=lambda one: one[0])]

    def _follow(self, tx: Transaction, snapshot: Snapshot) -> None:
        """Add the terms of chunks that came since, unless they are too many."""
        if snapshot.loads != self._loads:
            self._upto, self._loads = 0, snapshot.loads
        new = snapshot.new_since(self._upto) if snapshot.version > self._upto else np.empty(0, np.int64)
        self.is_behind = len(new) > MOST_NEW
        if len(new) and not self.is_behind:
            came = {term for _, terms in tx.fulltext.terms_of(new.tolist()) for term in terms}
            self._add(sorted(came.difference(self._terms)))
            self._upto = snapshot.version

    def _add(self, terms: Sequence[str]) -> None:
        words = [term for term in terms if term.isalpha() and len(term) >= SHORTEST - 1]
        if words:
            self._terms += words
            self._lengths = np.append(self._lengths, np.fromiter(map(len, words), np.int64, len(words)))
            self._signatures = np.append(self._signatures, signatures(words))


def signatures(words: Sequence[str]) -> NDArray[np.uint64]:
    """For each word a bit for every pair of neighbouring letters, its edges included."""
    letters = np.frombuffer("".join(f"\n{word}" for word in words).encode("utf-32-le", "surrogatepass"), np.uint32)
    following = np.append(letters[1:], np.uint32(ord("\n")))
    bits = np.uint64(1) << ((letters * np.uint32(31) + following * np.uint32(17)) % np.uint32(61)).astype(np.uint64)
    starts = np.cumsum([0, *(len(word) + 1 for word in words[:-1])])
    found: NDArray[np.uint64] = np.bitwise_or.reduceat(bits, starts)
    return found


def edit_distance(one: str, other: str, most: int) -> int:
    """Letters to insert, remove, replace or swap with a neighbour; `most + 1` stands for any larger number."""
    if abs(len(one) - len(other)) > most:
        return most + 1
    before, row = [0] * (len(other) + 1), list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        earlier, before, row = before, row, [i]
        for j, wanted in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == wanted:
                cost = min(cost, earlier[j - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return most + 1
    return min(row[-1], most + 1)
