"""Sign bits of vectors: a bound on the cosine to every one of them, at a thirtieth of the bytes.

The share of dimensions whose signs differ follows the angle between two vectors: it is the angle's share of a half
turn, give or take what chance does to as many coin tosses. So a distance in bits says how large the cosine can be at
most, and only those that may matter are looked at exactly. Figures: docs/decisions/010.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from kb.core.cpu import usable_cores
from kb.index import kernels
from kb.index.kernels import Distances, Rows, SignBits
from kb.store.backend import Vector

LUCK = 2.5  # standard deviations that a bound allows for; one in 160 is off by more, and few of those matter
SAMPLE = 256  # vectors by which it is checked that these coins are fair
BLOCK = 131_072  # rows that are packed at a time, so that what is in between stays small
WORD = 64
LEAST_SHARE = 150_000  # rows for which it is worth waking up another core
PICKING = 2  # how much longer a row takes that is picked from among others
CORES = usable_cores()
THREADS = ThreadPoolExecutor(CORES, "signs")


def pack(vectors: Vector) -> SignBits:
    """The signs of each row, 64 dimensions to a word: (vectors, words)."""
    count, dimensions = vectors.shape
    words = np.zeros((count, -(-dimensions // WORD)), np.uint64)
    as_bytes = words.view(np.uint8)
    for start in range(0, count, BLOCK):
        packed = np.packbits(vectors[start : start + BLOCK] > 0, axis=1)
        as_bytes[start : start + BLOCK, : packed.shape[1]] = packed
    return words


def distances(sign_bits: SignBits, question: SignBits, at: Rows | None = None) -> Distances:
    """In how many bits each row, or each at `at`, differs from the question; on several cores where there are many."""
    count = len(sign_bits) if at is None else len(at)
    share = max(-(-count // CORES), LEAST_SHARE if at is None else LEAST_SHARE // PICKING)
    if count <= share:
        return kernels.distances(sign_bits, question, at)
    parts = [slice(start, start + share) for start in range(0, count, share)]

    def of(part: slice) -> Distances:
        return (
            kernels.distances(sign_bits[part], question)
            if at is None
            else kernels.distances(sign_bits, question, at[part])
        )

    return np.concatenate(list(THREADS.map(of, parts)))


class Bound:
    """How large the cosine can be at each distance."""

    def __init__(self, dimensions: int, spread: float = 1.0) -> None:
        share = np.linspace(0, 1, 4096)
        farthest = dimensions * share + LUCK * spread * np.sqrt(dimensions * share * (1 - share))
        farthest = np.maximum.accumulate(farthest)
        at = np.interp(np.arange(dimensions + 1), farthest, share)
        self.cosines: NDArray[np.float32] = np.cos(np.pi * at).astype(np.float32)  # by distance

    def reach(self, cosine: float) -> int:
        """The largest distance at which this cosine is possible; -1 when it is at none."""
        return int(np.count_nonzero(self.cosines >= np.float32(cosine))) - 1


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
