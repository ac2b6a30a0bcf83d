"""How good a ranking is, and how sure a difference between two methods."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

DEPTH = 10
RESAMPLES = 10_000


class Interval(NamedTuple):
    low: float
    mean: float
    high: float


def ndcg(ranking: Sequence[str], relevant: Mapping[str, int]) -> float:
    """nDCG at 10 with the grade itself as the gain, as trec_eval computes it."""
    gains = [relevant.get(document, 0) for document in ranking[:DEPTH]]
    return _discounted(gains) / _discounted(sorted(relevant.values(), reverse=True)[:DEPTH])


def recall(ranking: Sequence[str], relevant: Mapping[str, int]) -> float:
    """The share of what is relevant among the first 10."""
    return len(relevant.keys() & set(ranking[:DEPTH])) / len(relevant)


def paired_difference(ours: Sequence[float], theirs: Sequence[float]) -> Interval:
    """The mean difference with its 95% interval, by drawing questions anew with replacement."""
    differences = np.asarray(ours) - np.asarray(theirs)
    chance = np.random.default_rng(11)
    means = np.array([chance.choice(differences, len(differences)).mean() for _ in range(RESAMPLES)])
    low, high = np.percentile(means, [2.5, 97.5])
    return Interval(float(low), float(differences.mean()), float(high))


def _discounted(gains: Sequence[int]) -> float:
    return float(sum(gain / np.log2(rank + 2) for rank, gain in enumerate(gains)))
