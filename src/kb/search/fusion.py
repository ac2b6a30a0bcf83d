"""One score from both legs, each weighted by how far it can be trusted.

Scores are fused, not ranks: ranks lose how sure each leg is, and fail where one leg finds nothing. BM25 has no upper
limit, so an absolute scale maps it to 0..1; the cosine needs none. If the model's vocabulary does not know the words of
a question, the cosine is noise and hardly counts. Figures: docs/decisions/005 and 006.
"""

import math

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float32]

BM25_HALF = 7.0  # the BM25 score that counts as half sure
KEYWORD_WEIGHT = 1.5  # against at most 1 for the cosine
BLIND, SEEING = 1.5, 4.0  # letters of the question in a token: spelt out letter by letter, and whole words
LEAST_TRUST = 0.05  # so that the cosine still settles the order where keywords say nothing
SECOND = 0.9  # factor of a passage whose document has a better one


def trust(letters_per_token: float) -> float:
    """How far the dense leg can be trusted with a question: 0.05 to 1."""
    return min(max((letters_per_token - BLIND) / (SEEING - BLIND), LEAST_TRUST), 1.0)


def sureness(bm25: Scores) -> Scores:
    """BM25 mapped to 0..1."""
    return bm25 / (bm25 + BM25_HALF)


def fused(bm25: Scores, cosine: Scores, trust: float) -> Scores:
    """Weighted mean of both legs."""
    weights = KEYWORD_WEIGHT + trust
    return (KEYWORD_WEIGHT / weights) * sureness(bm25) + (trust / weights) * cosine


def cosine_for(score: float, trust: float) -> float:
    """The cosine that gives this score where no keyword occurs."""
    return score * (KEYWORD_WEIGHT + trust) / trust


def cosines_for(score: float, bm25: Scores, trust: float) -> Scores:
    """The cosine that gives this score together with each of these BM25 scores."""
    return np.float32(cosine_for(score, trust)) - np.float32(KEYWORD_WEIGHT / trust) * sureness(bm25)


def bm25_for(score: float, cosine: float, trust: float) -> float:
    """The BM25 score that gives this score together with this cosine; 0 when none is needed."""
    sure = (score * (KEYWORD_WEIGHT + trust) - trust * cosine) / KEYWORD_WEIGHT
    return BM25_HALF * sure / (1 - sure) if 0 < sure < 1 else 0.0 if sure <= 0 else math.inf
