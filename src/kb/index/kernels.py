"""The inner loops over many rows: `kernels.c` where it was compiled for this machine, else the same in numpy.

Each compiled kernel does in one pass what takes numpy a dozen, over arrays that do not fit in the processor's caches
beside the weights of the model; docs/decisions/012 has the figures. An array of another type or with gaps is refused.
"""

import ctypes
from ctypes import c_bool, c_float, c_int64, c_void_p
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from kb.index.numpy_kernels import (
    Counts,
    Distances,
    Floats,
    Indices,
    Marks,
    NumpyKernels,
    Rows,
    SignBits,
    StaticQuestion,
    StaticVectors,
    Totals,
)

if TYPE_CHECKING:
    from kb.index.chunk_index import Snapshot

__all__ = ["Counts", "Distances", "Floats", "Indices", "Rows", "SignBits", "Totals", "kernels"]

FOLDER = Path(__file__).parent
# Rows that a kernel handles in about a tenth of a millisecond at most: of whole vectors, and of anything else.
BRIEF_VECTORS, BRIEF = 1024, 16_384


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


FLOATS, BITS, ROWS, INDICES = Many(np.float32), Many(np.uint64), Many(np.int64), Many(np.int32)
BYTES, SHORTS = Many(np.int8), Many(np.int16)
COUNTS, TOTALS, MARKS = Many(np.uint16), Many(np.uint32), Many(np.bool_)
ROWS_OR_ALL = Many(np.int64, optional=True)
SIGNATURES: dict[str, tuple[Any, ...]] = {
    "located": (INDICES, COUNTS, c_int64, INDICES, c_int64, MARKS, c_int64, INDICES, COUNTS),
    "totals": (INDICES, COUNTS, c_int64, INDICES, INDICES, TOTALS),
    "saturated": (TOTALS, INDICES, INDICES, c_int64, c_float, c_float, c_float, FLOATS),
    "add": (INDICES, FLOATS, c_int64, FLOATS),
    "hits": (FLOATS, FLOATS, INDICES, ROWS_OR_ALL, c_int64, ROWS, FLOATS),
    "distances": (BITS, c_int64, BITS, ROWS_OR_ALL, c_int64, COUNTS),
    "cosines": (FLOATS, c_int64, FLOATS, ROWS_OR_ALL, c_int64, FLOATS),
    "static_cosines": (BYTES, FLOATS, c_int64, SHORTS, ROWS_OR_ALL, c_int64, FLOATS),
    "cosines_with_documents": (FLOATS, FLOATS, c_int64, FLOATS, INDICES, INDICES, ROWS, c_int64, FLOATS),
    "within_reach": (BITS, BITS, c_int64, BITS, INDICES, INDICES, FLOATS, ROWS, FLOATS, c_int64, ROWS),
}
RETURN_A_COUNT = ("located", "totals", "hits", "within_reach")


class CompiledKernels(NumpyKernels):
    """Calls of a compiled library. OSError or AttributeError if it was not compiled for this machine and version."""

    def __init__(self, path: Path, name: str) -> None:
        self.name = name
        self._brief, self._long = (declared(kind(str(path))) for kind in (ctypes.PyDLL, ctypes.CDLL))

    def _library(self, rows: int, brief: int = BRIEF) -> ctypes.CDLL:
        """The library to call for this many rows.

        A brief call keeps the interpreter's lock: beside an import, getting it back takes longer than the call.
        """
        return self._brief if rows <= brief else self._long

    def located(
        self, chunk_ids: Indices, counts: Counts, row_of_chunk: Indices, alive: Marks
    ) -> tuple[Indices, Counts]:
        rows, kept = np.empty(len(chunk_ids), np.int32), np.empty(len(chunk_ids), np.uint16)
        found = self._library(len(chunk_ids)).kernels_located(
            chunk_ids, counts, len(chunk_ids), row_of_chunk, len(row_of_chunk), alive, len(alive), rows, kept
        )
        return (rows, kept) if found == len(rows) else (rows[:found].copy(), kept[:found].copy())

    def totals(self, rows: Indices, counts: Counts, doc_ords: Indices) -> tuple[Indices, Totals]:
        found_ords, sums = np.empty(len(rows), np.int32), np.empty(len(rows), np.uint32)
        found = self._library(len(rows)).kernels_totals(rows, counts, len(rows), doc_ords, found_ords, sums)
        return found_ords[:found].copy(), sums[:found].copy()

    def saturated(
        self, occurrences: Totals, lengths: Indices, at: Indices, slope: float, offset: float, scale: float
    ) -> Floats:
        impacts = np.empty(len(at), np.float32)
        self._library(len(at)).kernels_saturated(occurrences, lengths, at, len(at), slope, offset, scale, impacts)
        return impacts

    def add(self, rows: Indices, impacts: Floats, sums: Floats) -> None:
        self._library(len(rows)).kernels_add(rows, impacts, len(rows), sums)

    def hits(self, passages: Floats, documents: Floats, doc_ords: Indices, at: Rows | None) -> tuple[Rows, Floats]:
        count = len(passages) if at is None else len(at)
        rows, scores = np.empty(count, np.int64), np.empty(count, np.float32)
        found = self._library(count).kernels_hits(passages, documents, doc_ords, at, count, rows, scores)
        return rows[:found], scores[:found]

    def distances(self, sign_bits: SignBits, question: SignBits, at: Rows | None = None) -> Distances:
        found = np.empty(len(sign_bits) if at is None else len(at), np.uint16)
        self._library(len(found)).kernels_distances(sign_bits, sign_bits.shape[1], question, at, len(found), found)
        return found

    def cosines(self, vectors: Floats, question: Floats, at: Rows | None = None) -> Floats:
        found = np.empty(len(vectors) if at is None else len(at), np.float32)
        library = self._library(len(found), BRIEF_VECTORS)
        library.kernels_cosines(vectors, vectors.shape[1], question, at, len(found), found)
        return found

    def static_cosines(
        self, vectors: StaticVectors, scales: Floats, question: StaticQuestion, at: Rows | None = None
    ) -> Floats:
        found = np.empty(len(vectors) if at is None else len(at), np.float32)
        library = self._library(len(found), BRIEF_VECTORS)
        library.kernels_static_cosines(vectors, scales, vectors.shape[1], question, at, len(found), found)
        return found

    def cosines_with_documents(self, held: "Snapshot", question: Floats, at: Rows) -> Floats:
        found = np.empty(len(at), np.float32)
        self._library(len(at), BRIEF_VECTORS).kernels_cosines_with_documents(
            held.vectors, held.doc_vectors, held.vectors.shape[1], question,
            held.doc_ords, held.doc_vector_rows, at, len(at), found,
        )  # fmt: skip
        return found

    def within_reach(self, held: "Snapshot", question: SignBits, at: Rows, needed: Floats) -> Rows:
        found = np.empty(len(at), np.int64)
        reaching = self._library(len(at)).kernels_within_reach(
            held.sign_bits, held.doc_sign_bits, held.sign_bits.shape[1], question,
            held.doc_ords, held.doc_vector_rows, held.bound.cosines, at, needed, len(at), found,
        )  # fmt: skip
        return found[:reaching]


def declared(library: ctypes.CDLL) -> ctypes.CDLL:
    for name, kinds in SIGNATURES.items():
        function = getattr(library, f"kernels_{name}")
        function.argtypes = kinds
        function.restype = c_int64 if name in RETURN_A_COUNT else None
    return library


def fastest(folder: Path) -> NumpyKernels:
    """The fastest kernels of this folder that the CPU supports; numpy's if none was compiled for it."""
    try:
        plain = ctypes.CDLL(str(folder / "libkernels.so"))
        plain.kernels_avx2_supported.restype = c_bool
        if plain.kernels_avx2_supported():
            return CompiledKernels(folder / "libkernels_wide.so", "compiled avx2")
        return CompiledKernels(folder / "libkernels.so", "compiled")
    except (OSError, AttributeError):
        return NumpyKernels()


kernels = fastest(FOLDER)
