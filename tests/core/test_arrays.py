"""Shortcuts over arrays give what the plain way gives."""

from itertools import groupby

import numpy as np
import pytest

from kb.core.arrays import GROUP, among, distinct, lengths_of, level_of, starts_of, where_first

RANDOM = np.random.default_rng(11)


@pytest.mark.parametrize("size", [10, 100, GROUP * 10, GROUP * 11 + 3])
@pytest.mark.parametrize("count", [1, 5, 10])
def test_as_many_reach_the_level_as_asked_for(size: int, count: int) -> None:
    for values in (RANDOM.random(size), np.ones(size), np.arange(size)):
        assert np.count_nonzero(values >= level_of(values, count)) >= count


def test_hardly_more_reach_the_level_than_asked_for() -> None:
    many, few = RANDOM.random(GROUP * 1000), RANDOM.random(GROUP)
    assert np.count_nonzero(many >= level_of(many, 50)) < 100
    assert np.count_nonzero(few >= level_of(few, 50)) == 50


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


@pytest.mark.parametrize("values", [[], [7], [1, 1, 1], [5, 5, 2, 9, 9, 9, 2]])
def test_runs_have_their_starts_and_lengths(values: list[int]) -> None:
    runs = [(value, len(list(run))) for value, run in groupby(values)]
    starts = starts_of(np.array(values, np.int64))
    assert [values[at] for at in starts.tolist()] == [value for value, _ in runs]
    assert lengths_of(starts, len(values)).tolist() == [length for _, length in runs]


def test_the_first_of_each_value() -> None:
    assert where_first(np.array([4, 4, 1, 4, 0, 1], np.int32)) == [0, 2, 4]
