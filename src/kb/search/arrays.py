"""Small helpers over large arrays, for what numpy would do by sorting all of them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

GROUP = 64


def at_least_as_many(values: NDArray[Any], count: int) -> NDArray[np.int64]:
    """Where the largest values are: at least `count` of them where there are, and seldom many more.

    The best of each group is compared with the best of other groups, so one pass over the array will do.
    """
    groups = len(values) // GROUP
    if groups <= count:
        return np.arange(len(values))
    best = values[: groups * GROUP].reshape(GROUP, groups).max(axis=0)
    return np.flatnonzero(values >= np.partition(best, groups - count)[groups - count])


def distinct(*arrays: NDArray[np.int64]) -> NDArray[np.int64]:
    """Every value once, ascending."""
    values = np.sort(np.concatenate(arrays))
    return values[np.diff(values, prepend=values[:1] - 1) > 0]
