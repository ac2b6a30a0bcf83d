"""The dense leg: the cosine of the question to every chunk, exact."""

import numpy as np
from numpy.typing import NDArray

from kb.search.live import Snapshot
from kb.store.backend import Vector


def cosines(snapshot: Snapshot, question: Vector) -> NDArray[np.float32]:
    """Both sides are unit vectors, so the product is the cosine."""
    scores: NDArray[np.float32] = snapshot.vectors @ question
    return scores
