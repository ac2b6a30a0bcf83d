"""The dense leg: the cosine of the question to every chunk, exact."""

import numpy as np
from numpy.typing import NDArray

from kb.search.live import Snapshot
from kb.store.backend import Vector


def cosines(snapshot: Snapshot, question: Vector) -> NDArray[np.float32]:
    """Both sides are unit vectors, so the product is the cosine."""
    scores: NDArray[np.float32] = snapshot.vectors @ question
    return scores


def with_documents(snapshot: Snapshot, cosines: NDArray[np.float32]) -> NDArray[np.float32]:
    """The mean of the cosine to each chunk and of that to the direction of its whole document."""
    sums = np.bincount(snapshot.document_ids, np.where(snapshot.alive, cosines, 0))
    whole = sums[snapshot.document_ids] / snapshot.document_norms
    mean: NDArray[np.float32] = ((cosines + whole) / 2).astype(np.float32)
    return mean
