"""Small helpers over large arrays, for what numpy would do by sorting all of them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

GROUP = 64
LOOKUP = 16  # how much longer it takes to look one value up than to ask each of them


def at_least_as_many(values: NDArray[Any], count: int) -> NDArray[np.int64]:
    """Where the largest values are: at least `count` of them where there are, and seldom many more.

    In a long array the best of each group is compared with the best of other groups, so one pass over it will do.
    """
    if len(values) <= count:
        return np.arange(len(values))
    groups = len(values) // GROUP
    best = values[: groups * GROUP].reshape(GROUP, groups).max(axis=0) if groups > count else values
    return np.flatnonzero(values >= np.partition(best, len(best) - count)[len(best) - count])


def among(values: NDArray[Any], some: NDArray[Any], holds: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Where those of `values` are that are among `some`; both ascend, and `holds` says it of each possible value."""
    if LOOKUP * len(some) > len(values):
        return np.flatnonzero(holds[values])
    some = some.astype(values.dtype)  # else all the others would be converted
    at = np.minimum(np.searchsorted(values, some), len(values) - 1)
    return np.compress(values[at] == some, at)


def distinct(*arrays: NDArray[np.int64]) -> NDArray[np.int64]:
    """Every value once, ascending."""
    values = np.sort(np.concatenate(arrays))
    return values[np.diff(values, prepend=values[:1] - 1) > 0]
