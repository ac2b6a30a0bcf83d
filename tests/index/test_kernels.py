"""Every implementation of the kernels returns the same, for any number of rows, and refuses what it would misread."""

from ctypes import ArgumentError
from pathlib import Path

import numpy as np
import pytest

from kb.index.chunk_index import ChunkIndex, Snapshot
from kb.index.kernels import FOLDER, CompiledKernels, Floats, Rows, fastest
from kb.index.numpy_kernels import NumpyKernels
from kb.index.sign_bits import pack

RANDOM = np.random.default_rng(23)
SIZES = [0, 1, 3, 4, 5, 23, 24, 25, 500]  # below and above the number of rows that are prefetched


@pytest.fixture(params=["libkernels.so", "libkernels_wide.so", "numpy"])
def kernels(request: pytest.FixtureRequest) -> NumpyKernels:
    if request.param == "numpy":
        return NumpyKernels()
    if "wide" in request.param and fastest(FOLDER).name != "compiled avx2":
        pytest.skip("this CPU has no AVX2")
    return CompiledKernels(FOLDER / request.param, "compiled")


def unit(count: int, dimensions: int) -> Floats:
    rows = RANDOM.normal(size=(count, dimensions))
    scaled: Floats = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return scaled


def picked(count: int, size: int) -> Rows:
    return RANDOM.integers(count, size=size)


def snapshot(chunks: int = 600, dimensions: int = 384) -> Snapshot:
    """Chunks of documents of all sizes; one with a single chunk has no document vector."""
    index = ChunkIndex(dimensions)
    owners = np.sort(RANDOM.integers(1, chunks // 3, size=chunks)).tolist()
    index.replace_many(owners, owners, range(1, chunks + 1), [1] * chunks, unit(chunks, dimensions))
    return index.snapshot()


def means(held: Snapshot, own: Floats, whole: Floats, at: Rows) -> Floats:
    """Mean of each chunk's value and its document's."""
    rows = held.doc_vector_rows[held.doc_ords[at]]
    mean: Floats = (own[at] + np.where(rows < 0, own[at], whole[rows])) * np.float32(0.5)
    return mean


@pytest.mark.parametrize("size", SIZES)
def test_chunks_are_found_at_their_rows_with_their_counts(kernels: NumpyKernels, size: int) -> None:
    where = RANDOM.permutation(80).astype(np.int32) - 10  # some have none, and some one that comes later
    alive = RANDOM.random(50) < 0.8
    chunk_ids = np.sort(picked(100, size)).astype(np.int32)  # some come later
    counts = RANDOM.integers(1, 9, size=size).astype(np.uint16)
    rows, kept = kernels.located(chunk_ids, counts, where, alive)
    known = [(int(where[id_]), int(count)) for id_, count in zip(chunk_ids, counts, strict=True) if id_ < 80]
    there = [(row, count) for row, count in known if 0 <= row < 50 and alive[row]]
    assert list(zip(rows.tolist(), kept.tolist(), strict=True)) == there


@pytest.mark.parametrize("size", SIZES)
def test_counts_are_added_up_by_document(kernels: NumpyKernels, size: int) -> None:
    doc_ords = np.sort(RANDOM.integers(20, size=600)).astype(np.int32)
    rows = np.sort(picked(600, size)).astype(np.int32)
    counts = RANDOM.integers(1, 2**16, size=size).astype(np.uint16)
    found_ords, sums = kernels.totals(rows, counts, doc_ords)
    assert found_ords.tolist() == np.unique(doc_ords[rows]).tolist()
    assert sums.tolist() == [int(counts[doc_ords[rows] == ord_].sum()) for ord_ in found_ords]


@pytest.mark.parametrize("size", SIZES)
def test_an_impact_grows_with_the_count_but_less_and_less(kernels: NumpyKernels, size: int) -> None:
    lengths = RANDOM.integers(1, 300, size=600).astype(np.int32)
    at, often = picked(600, size).astype(np.int32), RANDOM.integers(1, 50, size=size).astype(np.uint32)
    expected = 3.0 * often / (lengths[at] * 0.01 + 0.3 + often)
    assert kernels.saturated(often, lengths, at, 0.01, 0.3, 3.0) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("size", SIZES)
def test_impacts_are_added_up_by_row(kernels: NumpyKernels, size: int) -> None:
    rows, impacts = picked(40, size).astype(np.int32), RANDOM.random(size, np.float32)
    sums = RANDOM.random(40, np.float32)
    expected = sums + np.bincount(rows, impacts, 40)
    kernels.add(rows, impacts, sums)
    assert sums == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("size", [None, *SIZES])
def test_hits_are_all_rows_that_score(kernels: NumpyKernels, size: int | None) -> None:
    passages, whole = RANDOM.random(600, np.float32), RANDOM.random(150, np.float32)
    passages[RANDOM.random(600) < 0.6] = 0
    doc_ords = np.sort(RANDOM.integers(150, size=600)).astype(np.int32)
    at = None if size is None else np.unique(picked(600, size))
    rows, scores = kernels.hits(passages, whole, doc_ords, at)
    every = np.arange(600) if at is None else at
    assert rows.tolist() == every[passages[every] > 0].tolist()
    assert scores.tolist() == np.sqrt(passages[rows] * whole[doc_ords[rows]]).tolist()


@pytest.mark.parametrize("dimensions", [3, 100, 384])
@pytest.mark.parametrize("size", SIZES)
def test_distances_are_the_bits_that_differ_from_some_rows(kernels: NumpyKernels, dimensions: int, size: int) -> None:
    rows, at = RANDOM.normal(size=(600, dimensions)).astype(np.float32), picked(600, size)
    found = kernels.distances(pack(rows), pack(rows[:1])[0], at)
    assert found.tolist() == np.count_nonzero((rows[at] > 0) != (rows[0] > 0), axis=1).tolist()


@pytest.mark.parametrize("dimensions", [3, 100, 384, 1024])
@pytest.mark.parametrize("size", SIZES)
def test_cosines_are_means_with_those_of_documents(kernels: NumpyKernels, dimensions: int, size: int) -> None:
    held, question, at = snapshot(dimensions=dimensions), unit(1, dimensions)[0], picked(600, size)
    found = kernels.cosines_with_documents(held, question, at)
    expected = means(held, held.vectors @ question, held.doc_vectors @ question, at)
    assert found == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("dimensions", [100, 384])
@pytest.mark.parametrize("size", SIZES)
def test_within_reach_are_all_whose_bounds_suffice(kernels: NumpyKernels, dimensions: int, size: int) -> None:
    held, at = snapshot(dimensions=dimensions), picked(600, size)
    question = pack(unit(1, dimensions))[0]
    own, whole = (
        held.bound.cosines[kernels.distances(rows, question)] for rows in (held.sign_bits, held.doc_sign_bits)
    )
    bounds = means(held, own, whole, at)
    needed = (bounds + RANDOM.choice([-0.01, 0, 0.01], size=size)).astype(np.float32)
    assert kernels.within_reach(held, question, at, needed).tolist() == np.flatnonzero(bounds >= needed).tolist()


@pytest.mark.parametrize(
    "vectors",
    [np.ones((4, 8)), np.ones((4, 16), np.float32)[:, ::2], np.ones((8, 4), np.float32).T],
    ids=["another type", "with gaps", "by columns"],
)
def test_an_array_that_would_be_misread_is_refused(vectors: Floats) -> None:
    compiled = CompiledKernels(FOLDER / "libkernels.so", "compiled")
    with pytest.raises(ArgumentError, match="in one piece"):
        compiled.cosines(vectors, np.ones(8, np.float32), np.arange(4))


def test_compiled_kernels_run_here() -> None:
    assert fastest(FOLDER).name.startswith("compiled"), "they were not compiled: make setup"


@pytest.mark.parametrize("content", [None, b"", b"a library of another machine"], ids=["none", "empty", "another"])
def test_without_a_library_for_this_machine_numpy_does_it(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "libkernels.so").write_bytes(content)
    assert fastest(tmp_path).name == "numpy"
