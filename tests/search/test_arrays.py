"""Shortcuts over arrays give what the plain way gives."""

import numpy as np
import pytest

from kb.search.arrays import GROUP, among, at_least_as_many, distinct

RANDOM = np.random.default_rng(11)


@pytest.mark.parametrize("size", [0, 1, 5, 100, GROUP * 10, GROUP * 11 + 3])
@pytest.mark.parametrize("count", [1, 5, 10])
def test_the_largest_are_among_what_is_found(size: int, count: int) -> None:
    for values in (RANDOM.random(size), np.ones(size), np.arange(size)):
        found = at_least_as_many(values, count)
        left_out = np.delete(values, found)
        assert len(found) >= min(size, count)
        assert len(left_out) == 0 or left_out.max() < values[found].min()


def test_hardly_more_are_found_than_asked_for() -> None:
    assert len(at_least_as_many(RANDOM.random(GROUP * 1000), 50)) < 100
    assert len(at_least_as_many(RANDOM.random(GROUP), 50)) == 50


@pytest.mark.parametrize("some", [0, 1, 3, 400])
@pytest.mark.parametrize("size", [0, 1, 900])
def test_who_is_among_some_is_found_either_way(some: int, size: int) -> None:
    values = np.sort(RANDOM.choice(1000, size, replace=False)).astype(np.int32)
    wanted = np.sort(RANDOM.choice(1000, some, replace=False))
    holds = np.zeros(1000, np.bool_)
    holds[wanted] = True
    found = among(values, wanted, holds)
    assert values[found].tolist() == np.intersect1d(values, wanted).tolist()


def test_every_value_once_in_order() -> None:
    assert distinct(np.array([3, 1]), np.array([3, 2]), np.array([], np.int64)).tolist() == [1, 2, 3]
