"""The loops of a search over many rows, compiled: what `loops.c` needs, and the calls of it.

Each does in one pass what would take numpy a dozen, over arrays that do not stay in the processor's caches beside the
weights of the model; docs/decisions/012 has the figures. An array of another type or in several pieces is refused;
whoever names rows must name such that there are.
"""

import ctypes
from ctypes import c_bool, c_float, c_int64, c_void_p
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from kb.core.errors import Unavailable

LIBRARY = Path(__file__).with_name("libkernels.so")
WIDE = Path(__file__).with_name("libkernels_wide.so")  # the same for x86-64 with AVX2
# Rows for which a loop takes about a tenth of a millisecond at most: of whole vectors, and of anything else.
BRIEF_VECTORS, BRIEF = 1024, 16_384

Floats = NDArray[np.float32]
SignBits = NDArray[np.uint64]
Distances = NDArray[np.uint16]
Rows = NDArray[np.int64]
Indices = NDArray[np.int32]
Counts = NDArray[np.uint16]
Totals = NDArray[np.uint32]
Marks = NDArray[np.bool_]


def located(chunk_ids: Indices, counts: Counts, where: Indices, alive: Marks) -> tuple[Indices, Counts]:
    """Where these chunks are, and their counts; without those who have no place, or one that is not alive.

    A chunk or a place beyond the end belongs to a later moment.
    """
    places, kept = np.empty(len(chunk_ids), np.int32), np.empty(len(chunk_ids), np.uint16)
    found = _library(len(chunk_ids)).loops_located(
        chunk_ids, counts, len(chunk_ids), where, len(where), alive, len(alive), places, kept
    )
    return (places, kept) if found == len(places) else (places[:found].copy(), kept[:found].copy())


def totals(places: Indices, counts: Counts, owners: Indices) -> tuple[Indices, Totals]:
    """The documents of these places, which stand side by side, and the sum of the counts of each."""
    numbers, sums = np.empty(len(places), np.int32), np.empty(len(places), np.uint32)
    found = _library(len(places)).loops_totals(places, counts, len(places), owners, numbers, sums)
    return numbers[:found].copy(), sums[:found].copy()


def saturated(occurrences: Totals, lengths: Indices, at: Indices, slope: float, offset: float, scale: float) -> Floats:
    """Of each text at `at`, which has so many terms: `scale` times n / (length x slope + offset + n)."""
    impacts = np.empty(len(at), np.float32)
    _library(len(at)).loops_saturated(occurrences, lengths, at, len(at), slope, offset, scale, impacts)
    return impacts


def add(places: Indices, impacts: Floats, sums: Floats) -> None:
    """Add what each place is worth to its sum."""
    _library(len(places)).loops_add(places, impacts, len(places), sums)


def hits(passages: Floats, whole: Floats, owners: Indices, at: Rows | None) -> tuple[Rows, Floats]:
    """The places (of all, or of those at `at`) whose passage is worth anything, and the mean with its document's."""
    count = len(passages) if at is None else len(at)
    places, scores = np.empty(count, np.int64), np.empty(count, np.float32)
    found = _library(count).loops_hits(passages, whole, owners, at, count, places, scores)
    return places[:found], scores[:found]


def distances(sign_bits: SignBits, question: SignBits, at: Rows | None = None) -> Distances:
    """In how many bits each row, or each at `at`, differs from the question."""
    found = np.empty(len(sign_bits) if at is None else len(at), np.uint16)
    _library(len(found)).loops_distances(sign_bits, sign_bits.shape[1], question, at, len(found), found)
    return found


def cosines(vectors: Floats, question: Floats, at: Rows | None = None) -> Floats:
    """The product of the question and each row, or each at `at`."""
    found = np.empty(len(vectors) if at is None else len(at), np.float32)
    _library(len(found), BRIEF_VECTORS).loops_cosines(vectors, vectors.shape[1], question, at, len(found), found)
    return found


def cosines_with_documents(
    vectors: Floats, doc_vectors: Floats, question: Floats, owners: Indices, rows: Indices, at: Rows
) -> Floats:
    """The mean of that product and of the one with its document's row of `wholes`, where it has one."""
    found = np.empty(len(at), np.float32)
    dimensions = vectors.shape[1]
    _library(len(at), BRIEF_VECTORS).loops_cosines_with_documents(
        vectors, doc_vectors, dimensions, question, owners, rows, at, len(at), found
    )
    return found


def within_reach(
    sign_bits: SignBits,
    doc_sign_bits: SignBits,
    question: SignBits,
    owners: Indices,
    rows: Indices,
    bound: Floats,
    at: Rows,
    needed: Floats,
) -> Rows:
    """Which of those at `at` may have, by the bounds of their signs, as large a mean of both cosines as they need."""
    found = np.empty(len(at), np.int64)
    words, count = sign_bits.shape[1], len(at)
    reaching = _library(count).loops_within_reach(
        sign_bits, doc_sign_bits, words, question, owners, rows, bound, at, needed, count, found
    )
    return found[:reaching]


class Many:
    """An argument of C that is an array of this type."""

    def __init__(self, kind: DTypeLike, *, optional: bool = False) -> None:
        self._kind = np.dtype(kind)
        self._optional = optional

    def from_param(self, array: NDArray[Any] | None) -> c_void_p | None:
        if array is None and self._optional:
            return None
        assert array is not None
        if array.dtype != self._kind or not array.flags.c_contiguous:
            raise TypeError(f"{array.dtype} with strides {array.strides} instead of {self._kind} in one piece")
        return c_void_p(array.ctypes.data)


def _library(rows: int, brief: int = BRIEF) -> ctypes.CDLL:
    """For so many rows. Beside an import, getting the interpreter back takes longer than most loops: they keep it."""
    return _loaded(ctypes.PyDLL if rows <= brief else ctypes.CDLL)


def _fastest() -> Path:
    """Of those that run here."""
    plain = ctypes.CDLL(str(LIBRARY))
    plain.loops_run_wide.restype = c_bool
    return WIDE if plain.loops_run_wide() else LIBRARY


@cache
def _loaded(kind: type[ctypes.CDLL]) -> ctypes.CDLL:
    floats, words = Many(np.float32), Many(np.uint64)
    places, numbers, count, factor = Many(np.int64), Many(np.int32), c_int64, c_float
    counts, totals, marks = Many(np.uint16), Many(np.uint32), Many(np.bool_)
    some = Many(np.int64, optional=True)
    given: dict[str, tuple[Any, ...]] = {
        "located": (numbers, counts, count, numbers, count, marks, count, numbers, counts),
        "totals": (numbers, counts, count, numbers, numbers, totals),
        "saturated": (totals, numbers, numbers, count, factor, factor, factor, floats),
        "add": (numbers, floats, count, floats),
        "hits": (floats, floats, numbers, some, count, places, floats),
        "distances": (words, count, words, some, count, counts),
        "cosines": (floats, count, floats, some, count, floats),
        "cosines_with_documents": (floats, floats, count, floats, numbers, numbers, places, count, floats),
        "within_reach": (words, words, count, words, numbers, numbers, floats, places, floats, count, places),
    }
    try:
        library = kind(str(_fastest()))
        for name, kinds in given.items():
            function = getattr(library, f"loops_{name}")
            function.argtypes = kinds
            function.restype = count if name in ("located", "totals", "hits", "within_reach") else None
    except (OSError, AttributeError) as wrong:
        raise Unavailable(f"loops.c was not compiled for this machine: {wrong}. Run `make setup`.") from wrong
    return library
