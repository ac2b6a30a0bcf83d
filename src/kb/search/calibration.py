"""How sure a search is that its best passage answers the question: the score that an answer shows.

What ranks passages (`kb.search.fusion`) cannot be compared between questions: a long question reaches more than a short
one, and a question about something else may reach more than one that is answered. So the best passage gets a
probability, a logistic function of two things that can be compared: its cosine, and how much of the words of the
question, by rarity, it holds. The other passages keep their proportion to it. The order never changes. The constants
belong to the model's description. Figures: docs/decisions/024.
"""

import math

import numpy as np

from kb.embedding.description import ScoreConstants
from kb.search.pruning import Legs
from kb.search.ranking import Scored


def calibrated(found: Scored, legs: Legs) -> Scored:
    """The same rows, whose scores say how sure the search is of them. They must be in order, the best first."""
    if not len(found.rows) or found.scores[0] <= 0:
        return found
    scale = np.float32(sureness(legs, int(found.rows[0])) / float(found.scores[0]))
    return Scored(found.rows, np.minimum(found.scores * scale, np.float32(1)))


def sureness(legs: Legs, row: int) -> float:
    """The probability that this row, the best one, answers the question."""
    rows, constants = np.array([row]), legs.score
    if legs.keywords is None:
        assert legs.dense is not None
        base, per_cosine = constants.meaning
        return logistic(base + per_cosine * float(legs.dense.cosines(rows)[0]))
    coverage = legs.keywords.coverage(row)
    base, per_coverage = constants.words
    by_words = base + per_coverage * coverage
    if legs.dense is None:
        return logistic(by_words)
    cosine = float(legs.dense.with_documents(rows)[0])
    base, per_cosine, per_coverage = constants.both
    by_both = base + per_cosine * cosine + per_coverage * coverage
    trust = legs.fusion.trust
    return logistic(trust * by_both + (1 - trust) * by_words)


def logistic(logit: float) -> float:
    return 1 / (1 + math.exp(-logit))


def doubt(best: float, constants: ScoreConstants) -> str | None:
    """What to say of an answer whose best passage has this score."""
    if best >= constants.doubtful:
        return None
    return f"Nothing here fits the question well: the best passage scores {best:.2f}. It may not be answered here."
