"""The inner loops over many rows, in numpy, for machines on which `kernels.c` was not compiled.

They define what the compiled kernels return too, up to the rounding of a float's last digit. The score of a row does
not depend on the other rows of a call: products are computed row by row (`vecdot`), not as a matrix.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kb.core.arrays import nonzero, starts_of

if TYPE_CHECKING:
    from kb.index.chunk_index import Snapshot

Floats = NDArray[np.float32]
SignBits = NDArray[np.uint64]
Distances = NDArray[np.uint16]
Rows = NDArray[np.int64]
Indices = NDArray[np.int32]
Counts = NDArray[np.uint16]
Totals = NDArray[np.uint32]
Marks = NDArray[np.bool_]
StaticVectors = NDArray[np.int8]
StaticQuestion = NDArray[np.int16]

BLOCK = 16_384
HALF = np.float32(0.5)


class NumpyKernels:
    """Rows that a caller passes must exist; the compiled kernels do not check it."""

    name = "numpy"

    def located(
        self, chunk_ids: Indices, counts: Counts, row_of_chunk: Indices, alive: Marks
    ) -> tuple[Indices, Counts]:
        """Rows of these chunks, with their counts. A chunk without a row, or whose row is dead, is left out.

        A chunk or a row beyond the end belongs to a later snapshot.
        """
        rows = row_of_chunk.take(chunk_ids, mode="clip")
        known = (chunk_ids >= 0) & (chunk_ids < len(row_of_chunk)) & (rows >= 0) & (rows < len(alive))
        known[known] = alive[rows[known]]
        return rows[known], counts[known]

    def totals(self, rows: Indices, counts: Counts, doc_ords: Indices) -> tuple[Indices, Totals]:
        """Documents of these rows, and the sum of the counts of each. Rows of one document must be adjacent."""
        of_rows = doc_ords.take(rows)
        starts = starts_of(of_rows)
        sums = np.add.reduceat(counts, starts, dtype=np.uint32) if len(rows) else np.empty(0, np.uint32)
        return of_rows[starts], sums

    def saturated(
        self, occurrences: Totals, lengths: Indices, at: Indices, slope: float, offset: float, scale: float
    ) -> Floats:
        """`scale` times n / (length x slope + offset + n) for each text at `at`, in which the term occurs n times."""
        often = occurrences.astype(np.float32)
        norm = lengths.take(at).astype(np.float32) * np.float32(slope) + np.float32(offset)
        return often / (norm + often) * np.float32(scale)

    def add(self, rows: Indices, impacts: Floats, sums: Floats) -> None:
        """Add each impact to the sum of its row."""
        np.add.at(sums, rows, impacts)

    def hits(self, passages: Floats, documents: Floats, doc_ords: Indices, at: Rows | None) -> tuple[Rows, Floats]:
        """Rows (of all, or of those at `at`) whose passage scores above 0, with the geometric mean of both scores."""
        rows = nonzero(passages > 0) if at is None else at[passages.take(at) > 0]
        scores: Floats = np.sqrt(passages.take(rows) * documents.take(doc_ords.take(rows)))
        return rows, scores

    def distances(self, sign_bits: SignBits, question: SignBits, at: Rows | None = None) -> Distances:
        """Number of bits in which each row, or each row at `at`, differs from the question."""
        rows = sign_bits if at is None else sign_bits.take(at, axis=0)
        found = np.zeros(len(rows), np.uint16)
        for word, asked in enumerate(question):  # word by word: a third of the time of a sum along the short axis
            found += np.bitwise_count(rows[:, word] ^ asked)
        return found

    def cosines(self, vectors: Floats, question: Floats, at: Rows | None = None) -> Floats:
        """Dot product of the question and each row, or each row at `at`."""
        found: Floats = np.vecdot(vectors if at is None else vectors.take(at, axis=0), question)
        return found

    def static_cosines(
        self, vectors: StaticVectors, scales: Floats, question: StaticQuestion, at: Rows | None = None
    ) -> Floats:
        """The same for whole numbers, times the scale of each row; 0 where it is not above 0."""
        rows = np.arange(len(vectors)) if at is None else at
        found = np.zeros(len(rows), np.float32)
        for start in range(0, len(rows), BLOCK):  # the rows as floats take four times the memory
            some = rows[start : start + BLOCK]
            products = np.vecdot(vectors.take(some, axis=0).astype(np.int32), question.astype(np.int32))
            found[start : start + BLOCK] = products.astype(np.float32) * np.maximum(scales.take(some), 0)
        return found

    def cosines_with_documents(self, held: "Snapshot", question: Floats, at: Rows) -> Floats:
        """Mean of that product and of the one with the document's vector, if the document has one."""
        own = self.cosines(held.vectors, question, at)
        return mean_with_documents(held, own, at, lambda rows: self.cosines(held.doc_vectors, question, rows))

    def within_reach(self, held: "Snapshot", question: SignBits, at: Rows, needed: Floats) -> Rows:
        """Positions in `at` whose mean of both cosines can reach `needed`, by the bounds that their sign bits give."""
        bound = held.bound.cosines
        own = bound.take(self.distances(held.sign_bits, question, at))
        near = nonzero((own + bound[0]) * HALF >= needed)  # if the document were as near as possible
        means = mean_with_documents(
            held,
            own.take(near),
            at.take(near),
            lambda rows: bound.take(self.distances(held.doc_sign_bits, question, rows)),
        )
        return near[means >= needed.take(near)]


def mean_with_documents(held: "Snapshot", own: Floats, at: Rows, of: Callable[[Rows], Floats]) -> Floats:
    """Mean of each row's value and its document's, which `of` computes. Without a document vector, its own value."""
    vector_rows = held.doc_vector_rows.take(held.doc_ords.take(at))
    several = nonzero(vector_rows >= 0)
    whole = own.copy()
    whole[several] = of(vector_rows.take(several).astype(np.int64))
    return (own + whole) * HALF
