"""Measures of a ranking, and the significance of a difference between two methods."""

import math
import random
from collections.abc import Mapping, Sequence
from typing import NamedTuple

DEPTH = 10
RESAMPLES = 2000


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


def mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def paired_difference(ours: Sequence[float], theirs: Sequence[float]) -> Interval:
    """The mean difference with its 95% interval, by bootstrap over the questions."""
    differences = [a - b for a, b in zip(ours, theirs, strict=True)]
    chance = random.Random(11)  # noqa: S311 - a fair draw, the same each time
    means = sorted(mean(chance.choices(differences, k=len(differences))) for _ in range(RESAMPLES))
    return Interval(means[RESAMPLES // 40], mean(differences), means[-(RESAMPLES // 40) - 1])


def _discounted(gains: Sequence[int]) -> float:
    return math.fsum(gain / math.log2(rank + 2) for rank, gain in enumerate(gains))
