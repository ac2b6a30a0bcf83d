"""Cosines: a chunk has the same one, to the last digit, whoever else is asked for."""

import numpy as np
import pytest

from kb.search.vectors import products
from kb.store.backend import Vector

RANDOM = np.random.default_rng(17)


@pytest.mark.parametrize("dimensions", [3, 100, 384])
@pytest.mark.parametrize("count", [1, 5, 64, 3001])
def test_a_product_does_not_depend_on_the_others(dimensions: int, count: int) -> None:
    vectors: Vector = RANDOM.normal(size=(count, dimensions)).astype(np.float32)
    question: Vector = RANDOM.normal(size=dimensions).astype(np.float32)
    every = products(vectors, np.arange(count), question)
    assert every == pytest.approx(vectors @ question, abs=1e-4)
    for size in (1, 2, 3, 7, 33, 2047, 2050):
        rows = RANDOM.integers(count, size=min(size, count))
        assert products(vectors, rows, question).tolist() == every[rows].tolist()


def test_no_rows_have_no_products() -> None:
    assert len(products(np.empty((0, 8), np.float32), np.arange(0), np.ones(8, np.float32))) == 0
