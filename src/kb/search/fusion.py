"""One score from all legs, each weighted by how far it can be trusted.

Scores are fused, not ranks: ranks lose how sure each leg is, and fail where one leg finds nothing. BM25 has no upper
limit, so an absolute scale maps it to 0..1. A cosine counts from what unrelated texts have. If the model's vocabulary
does not know the words of a question, its cosine is noise and hardly counts. If hardly any word of the question occurs
here, it is in another language than the documents, and the few that occur mislead. The static leg stands in for both.
The constants belong to the model's description (`kb.embedding.description`). Figures: docs/decisions/005, 006 and 029.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kb.embedding.description import FusionConstants

Scores = NDArray[np.float32]


def trusted(letters_per_token: float, constants: FusionConstants) -> float:
    """How far the dense leg can be trusted with a question: `least_trust` to 1."""
    reads = (letters_per_token - constants.blind) / (constants.seeing - constants.blind)
    return min(max(reads, constants.least_trust), 1.0)


def words_trusted(known: float, trust: float, constants: FusionConstants) -> float:
    """How far the keyword leg can be trusted, by the share of the question's words that occur: `least_words` to 1.

    A question that the model reads well is in English: then fewer of its words have to occur.
    """
    reads = max((trust - constants.fluent) / (1 - constants.fluent), 0.0)
    foreign = constants.foreign * (1 - constants.english * reads)
    native = constants.native * (1 - constants.english * reads)
    return min(max((known - foreign) / (native - foreign), constants.least_words), 1.0)


def static_weight(trust: float, words: float, constants: FusionConstants) -> float:
    """What the static leg counts: nothing where both others can be trusted, little where the words can."""
    blind = max(0.0, 1 - trust / constants.half_blind)
    return constants.static_weight * (1 - words * (1 - constants.static_least * blind))


@dataclass(frozen=True, slots=True)
class Fusion:
    """The weighted mean of all legs for one question, and what one of them must have for a given score."""

    constants: FusionConstants
    trust: float  # in the dense leg
    words: float = 1.0  # in the keyword leg
    static: float = 0.0  # weight of the static leg

    def fused(self, bm25: Scores, cosine: Scores) -> Scores:
        return self.by_words(bm25) + self.by_meaning(cosine)

    def by_words(self, bm25: Scores) -> Scores:
        """The share of the keyword leg."""
        return (self._keyword_weight / self._weights) * self.sureness(bm25)

    def by_meaning(self, cosine: Scores) -> Scores:
        """The share of the dense leg."""
        slope = self.trust / self._weights / self._related
        return slope * cosine - slope * self.constants.unrelated

    def by_static(self, cosine: Scores) -> Scores:
        """The share of the static leg."""
        return (self.static / self._weights) * cosine

    def sureness(self, bm25: Scores) -> Scores:
        """BM25 mapped to 0..1."""
        return bm25 / (bm25 + self.constants.bm25_half)

    def cosine_for(self, score: float) -> float:
        """The cosine that gives this score where no other leg adds anything."""
        return self.constants.unrelated + self._related * (score * self._weights / self.trust)

    def cosines_for(self, score: float, shares: Scores) -> Scores:
        """The cosine that gives this score together with each of these shares of the other legs."""
        per_share = self._related * self._weights / self.trust
        return np.float32(self.cosine_for(score)) - np.float32(per_share) * shares

    def bm25_for(self, score: float, cosine: float) -> float:
        """The BM25 score that gives this score together with this cosine; 0 when none is needed."""
        meaning = (cosine - self.constants.unrelated) / self._related
        sure = (score * self._weights - self.trust * meaning) / self._keyword_weight
        return self.constants.bm25_half * sure / (1 - sure) if 0 < sure < 1 else 0.0 if sure <= 0 else math.inf

    def without_words(self, cosine: Scores, static: Scores) -> Scores:
        """The score in mode `vector`: the model's cosine, as far as it reads the question, else the static one."""
        return np.float32(self.trust) * cosine + np.float32(1 - self.trust) * static

    @property
    def _keyword_weight(self) -> float:
        return self.constants.keyword_weight * self.words

    @property
    def _weights(self) -> float:
        return self._keyword_weight + self.trust + self.static

    @property
    def _related(self) -> float:
        return 1 - self.constants.unrelated
