"""Pairs of notes with nearly the same meaning, by their vectors in memory.

Every pair is compared, block by block, so memory stays bounded; the time grows with the square of the number of notes.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kb.core.values import DuplicateList, DuplicatePair, NoteRef
from kb.index.chunk_index import ChunkIndex, Snapshot
from kb.store import notes
from kb.store.backend import Database, Vector

BLOCK = 2048  # notes on each side of one product: 16 MB


@dataclass(frozen=True, slots=True)
class Pairs:
    """Arrays of equal length. `a` and `b` are positions in a list of notes, `a` the smaller."""

    a: NDArray[np.int64]
    b: NDArray[np.int64]
    similarity: NDArray[np.float32]

    def best(self, limit: int) -> "Pairs":
        """The most similar first; ties by position, so that the order is always the same."""
        at = np.lexsort((self.b, self.a, -self.similarity))[:limit]
        return Pairs(self.a[at], self.b[at], self.similarity[at])

    def __add__(self, other: "Pairs") -> "Pairs":
        return Pairs(
            np.concatenate((self.a, other.a)),
            np.concatenate((self.b, other.b)),
            np.concatenate((self.similarity, other.similarity)),
        )


def duplicates(database: Database, live: ChunkIndex, min_similarity: float, limit: int) -> DuplicateList:
    """Pairs of notes, the most similar first; the same text is 1.0, whatever its title."""
    snapshot = live.snapshot()
    with database.read() as tx:
        held = notes.contents(tx)
    note_ids, vectors, there = note_vectors(snapshot, np.array([id_ for id_, _ in held], np.int64))
    _, contents = np.unique(np.array([hash_ for _, hash_ in held]), return_inverse=True)
    pairs = similar(vectors, contents[there], min_similarity, limit)
    found = [(int(note_ids[a]), int(note_ids[b])) for a, b in zip(pairs.a, pairs.b, strict=True)]
    with database.read() as tx:
        titles = notes.titles(tx, {id_ for pair in found for id_ in pair})
    return DuplicateList(
        [
            DuplicatePair(NoteRef(a, titles[a]), NoteRef(b, titles[b]), round(float(similarity), 6))
            for (a, b), similarity in zip(found, pairs.similarity, strict=True)
            if a in titles and b in titles  # one of them may be gone by now
        ]
    )


def note_vectors(snapshot: Snapshot, wanted: NDArray[np.int64]) -> tuple[NDArray[np.int64], Vector, NDArray[np.bool_]]:
    """Id and document vector of each note that has chunks, and a mask of these notes among the wanted ones."""
    doc_ords = snapshot.doc_ords_of(wanted)
    there = doc_ords >= 0
    vector_rows, first = snapshot.doc_vector_rows[doc_ords[there]], snapshot.first_rows[doc_ords[there]]
    directions = snapshot.vectors[first]
    directions[vector_rows >= 0] = snapshot.doc_vectors[vector_rows[vector_rows >= 0]]
    return wanted[there], directions, there


def similar(vectors: Vector, contents: NDArray[np.int64], least: float, limit: int) -> Pairs:
    """The most similar pairs. Notes with the same text have the same number in `contents`."""
    pairs = same(contents, limit)
    for top in range(0, len(vectors), BLOCK):
        for left in range(top, len(vectors), BLOCK):
            # Once there are enough pairs, a further one must beat the last of them.
            threshold = max(least, float(pairs.similarity[-1])) if len(pairs.a) == limit else least
            scores = np.minimum(vectors[top : top + BLOCK] @ vectors[left : left + BLOCK].T, np.float32(1))
            a, b = np.nonzero(scores >= np.float32(threshold))
            keep = (a + top < b + left) & (contents[a + top] != contents[b + left])
            a, b = a[keep], b[keep]
            if len(a):
                pairs = (pairs + Pairs(a + top, b + left, scores[a, b])).best(limit)
    return pairs


def same(contents: NDArray[np.int64], limit: int) -> Pairs:
    """Up to `limit` pairs with the same text."""
    order = np.argsort(contents, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(contents[order])) + 1)
    found: list[tuple[int, int]] = []
    for group in groups:
        for number, a in enumerate(group[:-1]):
            found += [(int(a), int(b)) for b in group[number + 1 : number + 1 + limit - len(found)]]
            if len(found) >= limit:
                break
    pairs = np.array(sorted(found)[:limit], np.int64).reshape(-1, 2)
    return Pairs(pairs[:, 0], pairs[:, 1], np.ones(len(pairs), np.float32))
