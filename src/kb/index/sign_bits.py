"""Sign bits of vectors: a bound on the cosine to every one of them, at a thirtieth of the bytes.

The share of dimensions whose signs differ estimates the angle between two vectors, as a share of a half turn; its error
is that of as many coin tosses. So a distance in bits bounds the cosine from above, and exact cosines are needed only
for rows whose bound is high enough. Figures: docs/decisions/010.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from kb.core.cpu import usable_cores
from kb.index.kernels import Distances, Rows, SignBits, kernels
from kb.store.backend import Vector

LUCK = 2.5  # standard deviations that a bound allows for; 1 in 160 exceeds it, and few of those matter
SAMPLE = 256  # vectors by which the error is measured
BLOCK = 131_072  # rows that are packed at a time, to bound the memory of intermediate arrays
WORD = 64
LEAST_SHARE = 150_000  # rows for which another core is worth its start
PICKING = 2  # how much longer a row takes when rows are picked instead of scanned


def pack(vectors: Vector) -> SignBits:
    """The signs of each row, 64 dimensions to a word: (vectors, words)."""
    count, dimensions = vectors.shape
    words = np.zeros((count, -(-dimensions // WORD)), np.uint64)
    as_bytes = words.view(np.uint8)
    for start in range(0, count, BLOCK):
        packed = np.packbits(vectors[start : start + BLOCK] > 0, axis=1)
        as_bytes[start : start + BLOCK, : packed.shape[1]] = packed
    return words


class ParallelScan:
    """The kernel `distances` on several cores, for scopes of many rows."""

    def __init__(self) -> None:
        self._cores = usable_cores()
        self._threads = ThreadPoolExecutor(self._cores, "sign-bits")  # none is started before it is needed

    def distances(self, sign_bits: SignBits, question: SignBits, at: Rows | None = None) -> Distances:
        count = len(sign_bits) if at is None else len(at)
        share = max(-(-count // self._cores), LEAST_SHARE if at is None else LEAST_SHARE // PICKING)
        if count <= share:
            return kernels.distances(sign_bits, question, at)

        def of(start: int) -> Distances:
            part = slice(start, start + share)
            if at is None:
                return kernels.distances(sign_bits[part], question)
            return kernels.distances(sign_bits, question, at[part])

        return np.concatenate(list(self._threads.map(of, range(0, count, share))))


class Bound:
    """The largest cosine possible at each distance."""

    def __init__(self, dimensions: int, spread: float = 1.0) -> None:
        share = np.linspace(0, 1, 4096)
        farthest = dimensions * share + LUCK * spread * np.sqrt(dimensions * share * (1 - share))
        farthest = np.maximum.accumulate(farthest)
        at = np.interp(np.arange(dimensions + 1), farthest, share)
        self.cosines: NDArray[np.float32] = np.cos(np.pi * at).astype(np.float32)  # by distance

    def reach(self, cosine: float) -> int:
        """The largest distance at which this cosine is possible; -1 if there is none."""
        return int(np.count_nonzero(self.cosines >= np.float32(cosine))) - 1


def spread(vectors: Vector) -> float:
    """How much larger than by chance the error of the distances is, measured on a sample; at least 1.

    It is 1 for the model that comes with kb. A model whose dimensions correlate has fewer independent bits, and needs
    wider bounds.
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
