"""Compiled inner loops over many rows: the calls of `kernels.c`, and the types of their arguments.

Each does in one pass what takes numpy a dozen, over arrays that do not fit in the processor's caches beside the weights
of the model; docs/decisions/012 has the figures. An array of another type or with gaps is refused. Row numbers are not
checked: the caller must pass rows that exist.
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
# Rows that a kernel handles in about a tenth of a millisecond at most: of whole vectors, and of anything else.
BRIEF_VECTORS, BRIEF = 1024, 16_384

Floats = NDArray[np.float32]
SignBits = NDArray[np.uint64]
Distances = NDArray[np.uint16]
Rows = NDArray[np.int64]
Indices = NDArray[np.int32]
Counts = NDArray[np.uint16]
Totals = NDArray[np.uint32]
Marks = NDArray[np.bool_]


def located(chunk_ids: Indices, counts: Counts, row_of_chunk: Indices, alive: Marks) -> tuple[Indices, Counts]:
    """Rows of these chunks, with their counts. A chunk without a row, or whose row is dead, is left out.

    A chunk or a row beyond the end belongs to a later snapshot.
    """
    rows, kept = np.empty(len(chunk_ids), np.int32), np.empty(len(chunk_ids), np.uint16)
    found = _library(len(chunk_ids)).loops_located(
        chunk_ids, counts, len(chunk_ids), row_of_chunk, len(row_of_chunk), alive, len(alive), rows, kept
    )
    return (rows, kept) if found == len(rows) else (rows[:found].copy(), kept[:found].copy())


def totals(rows: Indices, counts: Counts, doc_ords: Indices) -> tuple[Indices, Totals]:
    """Documents of these rows, and the sum of the counts of each. Rows of one document must be adjacent."""
    found_ords, sums = np.empty(len(rows), np.int32), np.empty(len(rows), np.uint32)
    found = _library(len(rows)).loops_totals(rows, counts, len(rows), doc_ords, found_ords, sums)
    return found_ords[:found].copy(), sums[:found].copy()


def saturated(occurrences: Totals, lengths: Indices, at: Indices, slope: float, offset: float, scale: float) -> Floats:
    """`scale` times n / (length x slope + offset + n) for each text at `at`, in which the term occurs n times."""
    impacts = np.empty(len(at), np.float32)
    _library(len(at)).loops_saturated(occurrences, lengths, at, len(at), slope, offset, scale, impacts)
    return impacts


def add(rows: Indices, impacts: Floats, sums: Floats) -> None:
    """Add each impact to the sum of its row."""
    _library(len(rows)).loops_add(rows, impacts, len(rows), sums)


def hits(passages: Floats, documents: Floats, doc_ords: Indices, at: Rows | None) -> tuple[Rows, Floats]:
    """Rows (of all, or of those at `at`) whose passage scores above 0, with the geometric mean of both scores."""
    count = len(passages) if at is None else len(at)
    rows, scores = np.empty(count, np.int64), np.empty(count, np.float32)
    found = _library(count).loops_hits(passages, documents, doc_ords, at, count, rows, scores)
    return rows[:found], scores[:found]


def distances(sign_bits: SignBits, question: SignBits, at: Rows | None = None) -> Distances:
    """Number of bits in which each row, or each row at `at`, differs from the question."""
    found = np.empty(len(sign_bits) if at is None else len(at), np.uint16)
    _library(len(found)).loops_distances(sign_bits, sign_bits.shape[1], question, at, len(found), found)
    return found


def cosines(vectors: Floats, question: Floats, at: Rows | None = None) -> Floats:
    """Dot product of the question and each row, or each row at `at`."""
    found = np.empty(len(vectors) if at is None else len(at), np.float32)
    _library(len(found), BRIEF_VECTORS).loops_cosines(vectors, vectors.shape[1], question, at, len(found), found)
    return found


def cosines_with_documents(
    vectors: Floats, doc_vectors: Floats, question: Floats, doc_ords: Indices, doc_vector_rows: Indices, at: Rows
) -> Floats:
    """Mean of that product and of the one with the document's vector, if the document has one."""
    found = np.empty(len(at), np.float32)
    dimensions = vectors.shape[1]
    _library(len(at), BRIEF_VECTORS).loops_cosines_with_documents(
        vectors, doc_vectors, dimensions, question, doc_ords, doc_vector_rows, at, len(at), found
    )
    return found


def within_reach(
    sign_bits: SignBits,
    doc_sign_bits: SignBits,
    question: SignBits,
    doc_ords: Indices,
    doc_vector_rows: Indices,
    bound: Floats,
    at: Rows,
    needed: Floats,
) -> Rows:
    """Positions in `at` whose mean of both cosines can reach `needed`, by the bounds that their sign bits give."""
    found = np.empty(len(at), np.int64)
    words, count = sign_bits.shape[1], len(at)
    reaching = _library(count).loops_within_reach(
        sign_bits, doc_sign_bits, words, question, doc_ords, doc_vector_rows, bound, at, needed, count, found
    )
    return found[:reaching]


class Many:
    """A C argument: a contiguous array of this type."""

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
    """The library to call for this many rows.

    A brief call keeps the interpreter's lock: while documents are imported, getting it back takes longer than the call.
    """
    return _loaded(ctypes.PyDLL if rows <= brief else ctypes.CDLL)


def _fastest() -> Path:
    """The fastest library that this CPU supports."""
    plain = ctypes.CDLL(str(LIBRARY))
    plain.loops_run_wide.restype = c_bool
    return WIDE if plain.loops_run_wide() else LIBRARY


@cache
def _loaded(kind: type[ctypes.CDLL]) -> ctypes.CDLL:
    floats, bits, rows, indices = Many(np.float32), Many(np.uint64), Many(np.int64), Many(np.int32)
    counts, totals, marks = Many(np.uint16), Many(np.uint32), Many(np.bool_)
    some_rows = Many(np.int64, optional=True)
    size, factor = c_int64, c_float
    arguments: dict[str, tuple[Any, ...]] = {
        "located": (indices, counts, size, indices, size, marks, size, indices, counts),
        "totals": (indices, counts, size, indices, indices, totals),
        "saturated": (totals, indices, indices, size, factor, factor, factor, floats),
        "add": (indices, floats, size, floats),
        "hits": (floats, floats, indices, some_rows, size, rows, floats),
        "distances": (bits, size, bits, some_rows, size, counts),
        "cosines": (floats, size, floats, some_rows, size, floats),
        "cosines_with_documents": (floats, floats, size, floats, indices, indices, rows, size, floats),
        "within_reach": (bits, bits, size, bits, indices, indices, floats, rows, floats, size, rows),
    }
    try:
        library = kind(str(_fastest()))
        for name, kinds in arguments.items():
            function = getattr(library, f"loops_{name}")
            function.argtypes = kinds
            function.restype = size if name in ("located", "totals", "hits", "within_reach") else None
    except (OSError, AttributeError) as wrong:
        raise Unavailable(f"kernels.c was not compiled for this machine: {wrong}. Run `make setup`.") from wrong
    return library
