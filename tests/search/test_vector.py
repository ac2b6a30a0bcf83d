"""Cosines: a chunk has the same one, to the last digit, whoever else is asked for."""

import numpy as np
import pytest

from kb.index.chunk_index import ChunkIndex
from kb.index.kernels import kernels
from kb.search.filter_scope import SIDE_BY_SIDE, Scope
from kb.search.vector import Dense
from kb.store.backend import Vector

RANDOM = np.random.default_rng(17)


@pytest.mark.parametrize("dimensions", [3, 100, 384])
@pytest.mark.parametrize("count", [1, 5, 64, 3001])
def test_a_product_does_not_depend_on_the_others(dimensions: int, count: int) -> None:
    vectors: Vector = RANDOM.normal(size=(count, dimensions)).astype(np.float32)
    question: Vector = RANDOM.normal(size=dimensions).astype(np.float32)
    every = kernels.cosines(vectors, question, np.arange(count))
    assert every == pytest.approx(vectors @ question, abs=1e-4)
    for size in (1, 2, 3, 7, 33, 2047, 2050):
        rows = RANDOM.integers(count, size=min(size, count))
        assert kernels.cosines(vectors, question, rows).tolist() == every[rows].tolist()


def test_no_rows_have_no_products() -> None:
    assert len(kernels.cosines(np.empty((0, 8), np.float32), np.ones(8, np.float32), np.arange(0))) == 0


@pytest.mark.parametrize("chunks", [1, 33, 1000])
def test_a_cosine_is_the_same_in_a_small_scope_and_among_all(chunks: int) -> None:
    total, dimensions = 1500, 384
    vectors: Vector = RANDOM.normal(size=(total, dimensions)).astype(np.float32)
    ids = list(range(1, total + 1))
    live = ChunkIndex(dimensions)
    live.replace_many(ids, ids, ids, [1] * total, vectors)
    few = Scope.of_documents(live.snapshot(), np.sort(RANDOM.choice(ids, chunks, replace=False)))
    every = Scope.unfiltered(live.snapshot())
    among_few = Dense(few, vectors[0]).cosines(few.every_row)
    among_all = Dense(every, vectors[0]).cosines(every.every_row)
    assert among_few.tolist() == among_all[few.every_row].tolist()
    assert few.vectors is not None
    assert every.vectors is None
    some = few.every_row[::3].copy()
    assert Dense(few, vectors[0]).cosines(some).tolist() == among_few[::3].tolist()


def test_what_is_held_side_by_side_is_what_is_multiplied() -> None:
    live = ChunkIndex(4)
    live.replace_many([1, 2], [1, 2], [1, 2], [1, 1], np.ones((2, 4), np.float32))
    scope = Scope.of_documents(live.snapshot(), np.array([1]))
    assert scope.vectors is not None
    scope.vectors[:] = 2
    assert Dense(scope, np.ones(4, np.float32)).cosines(scope.every_row).tolist() == [8]


def test_vectors_of_many_chunks_are_not_held_twice() -> None:
    ids = list(range(1, SIDE_BY_SIDE + 2))
    live = ChunkIndex(4)
    live.replace_many(ids, ids, ids, [1] * len(ids), np.ones((len(ids), 4), np.float32))
    assert Scope.of_documents(live.snapshot(), np.array(ids)).vectors is None
    assert Scope.of_documents(live.snapshot(), np.array(ids[1:])).vectors is not None
