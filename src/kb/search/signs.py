"""Sign bits of vectors: a bound on the cosine to every one of them, at a thirtieth of the bytes.

The share of dimensions whose signs differ follows the angle between two vectors: it is the angle's share of a half
turn, give or take what chance does to as many coin tosses. So a distance in bits says how large the cosine can be at
most, and only those that may matter are looked at exactly. Figures: docs/decisions/010.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kb.cores import usable_cores
from kb.store.backend import Vector

Words = NDArray[np.uint64]
Distances = NDArray[np.uint16]

FAR = np.uint16(np.iinfo(np.uint16).max)  # farther than any: what does not take part
LUCK = 2.5  # standard deviations that a bound allows for; one in 160 is off by more, and few of those matter
SAMPLE = 256  # vectors by which it is checked that these coins are fair
BLOCK = 131_072  # rows at a time, so that what is in between stays in the processor's cache
PICKED = 8192  # likewise, of rows that are copied first
WORD = 64
LEAST_SHARE = 150_000  # rows for which it is worth waking up another core
PICKING = 4  # how much longer a row takes that is picked from among others
CORES = usable_cores()
THREADS = ThreadPoolExecutor(CORES, "signs")


def pack(vectors: Vector) -> Words:
    """The signs of each row, 64 dimensions to a word: (vectors, words)."""
    count, dimensions = vectors.shape
    words = np.zeros((count, -(-dimensions // WORD)), np.uint64)
    as_bytes = words.view(np.uint8)
    for start in range(0, count, BLOCK):
        packed = np.packbits(vectors[start : start + BLOCK] > 0, axis=1)
        as_bytes[start : start + BLOCK, : packed.shape[1]] = packed
    return words


@dataclass(frozen=True, slots=True)
class Signs:
    """Of many vectors: row by row, to pick some of them; and word by word, which is how all are compared fastest."""

    rows: Words
    columns: Sequence[Words]

    def distances(self, question: Words, at: NDArray[np.integer[Any]] | None = None) -> Distances:
        """In how many bits each row, or each at `at`, differs from the question; the others are `FAR`."""
        total = np.zeros(len(self.rows), np.uint16) if at is None else np.full(len(self.rows), FAR)

        def compare(part: slice) -> None:
            if at is None:
                count([column[part] for column in self.columns], question, total[part])
            else:
                total[at[part]] = self.picked(question, at[part])

        rows = len(total) if at is None else len(at)
        share = max(-(-rows // CORES), LEAST_SHARE if at is None else LEAST_SHARE // PICKING)
        first, *others = [slice(start, start + share) for start in range(0, max(rows, 1), share)]
        running = [THREADS.submit(compare, part) for part in others]
        compare(first)
        for part in running:
            part.result()
        return total

    def picked(self, question: Words, at: NDArray[np.integer[Any]]) -> Distances:
        """In how many bits each row at `at` differs from the question, in the order of `at`."""
        total = np.empty(len(at), np.uint16)
        for start in range(0, len(at), PICKED):
            part = slice(start, start + PICKED)
            differing = self.rows.take(at[part], axis=0)
            differing ^= question
            first, *others = np.bitwise_count(differing).T
            total[part] = first
            for counts in others:
                total[part] += counts
        return total


def count(columns: Sequence[Words], question: Words, total: Distances) -> None:
    """Add the differing bits to `total`."""
    differing, counts = np.empty(min(len(total), BLOCK), np.uint64), np.empty(min(len(total), BLOCK), np.uint8)
    for start in range(0, len(total), BLOCK):
        here = total[start : start + BLOCK]
        differing, counts = differing[: len(here)], counts[: len(here)]
        for column, word in zip(columns, question, strict=True):
            np.bitwise_xor(column[start : start + BLOCK], word, out=differing)
            np.bitwise_count(differing, out=counts)
            here += counts


class Bound:
    """How large the cosine can be at each distance."""

    def __init__(self, dimensions: int, spread: float = 1.0) -> None:
        share = np.linspace(0, 1, 4096)
        farthest = dimensions * share + LUCK * spread * np.sqrt(dimensions * share * (1 - share))
        farthest = np.maximum.accumulate(farthest)
        at = np.interp(np.arange(dimensions + 1), farthest, share)
        self._cosines: NDArray[np.float32] = np.cos(np.pi * at).astype(np.float32)

    def of(self, distances: Distances | np.uint16) -> NDArray[np.float32]:
        """For distances of those that take part."""
        return np.take(self._cosines, distances)

    def reach(self, cosine: float) -> int:
        """The largest distance at which this cosine is possible; -1 when it is at none."""
        return int(np.count_nonzero(self._cosines >= np.float32(cosine))) - 1


def spread(vectors: Vector) -> float:
    """How much more than chance the distances of some of these vectors stray from their angles; at least 1.

    It is 1 for the model that comes with kb. Of a model whose dimensions say the same as each other, bits say less,
    and bounds must be wider.
    """
    some = vectors[:: max(1, len(vectors) // SAMPLE)][:SAMPLE]
    some = some[np.any(some != 0, axis=1)]
    if len(some) < 2:
        return 1.0
    one, other = np.triu_indices(len(some), 1)
    share = np.arccos(np.clip((some @ some.T)[one, other], -1, 1)) / np.pi
    bits = some > 0
    dimensions = bits.shape[1]
    differing = np.count_nonzero(bits[one] != bits[other], axis=1)
    deviation = np.sqrt(dimensions * (share * (1 - share)).clip(1 / dimensions))
    return max(1.0, float(np.sqrt(np.mean(((differing - dimensions * share) / deviation) ** 2))))
