"""One score from both legs.

Scores are fused, not ranks: ranks throw away how sure each leg is, and fail where one leg is blind. BM25 has no upper
end, so it is bent into 0..1 by an absolute scale; the cosine is one already. Figures: docs/decisions/005.
"""

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float32]

BM25_HALF = 10.0  # the BM25 score that counts as half sure
KEYWORD_WEIGHT = 2.0  # against 1 for the cosine


def sureness(bm25: Scores) -> Scores:
    """BM25 as a share of 1."""
    return bm25 / (bm25 + BM25_HALF)


def fused(bm25: Scores, cosine: Scores) -> Scores:
    """The weighted mean, computed in place."""
    score = sureness(bm25)
    score *= KEYWORD_WEIGHT
    score += cosine
    score /= 1 + KEYWORD_WEIGHT
    return score
