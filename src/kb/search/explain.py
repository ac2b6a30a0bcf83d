"""Why a passage was found: what each leg says of it."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kb.core.searches import Explanation, LegExplanation
from kb.search.pruning import Legs


class Explained:
    """Score, rank and share of a row in each leg. The rank takes the scores of the whole scope."""

    def __init__(self, legs: Legs) -> None:
        self._legs = legs
        self._rows = legs.scope.every_row
        self._cosines = None if legs.dense is None else legs.dense.cosines(self._rows)

    def of(self, row: int, score: float) -> Explanation:
        keywords = self._legs.keywords
        words, meaning, static = self._shared((self._by_words(row), self._by_meaning(row), self._by_static(row)), score)
        return Explanation(
            fts=words,
            vector=meaning,
            static=static,
            matched_terms=[] if keywords is None else [term for term, at in keywords.terms.items() if at.holds(row)],
        )

    def _by_words(self, row: int) -> LegExplanation | None:
        if (keywords := self._legs.keywords) is None:
            return None
        score = float(keywords.scores(np.array([row]))[0])
        return LegExplanation(keywords.better_than(score) + 1 if score > 0 else 0, score, share=0)

    def _by_meaning(self, row: int) -> LegExplanation | None:
        return None if self._cosines is None else self._ranked(self._cosines, row)

    def _by_static(self, row: int) -> LegExplanation | None:
        return None if self._legs.static is None else self._ranked(self._legs.static.cosines(self._rows), row)

    def _ranked(self, cosines: NDArray[np.float32], row: int) -> LegExplanation:
        score = cosines[np.searchsorted(self._rows, row)]
        return LegExplanation(int(np.count_nonzero(cosines > score)) + 1, float(score), share=0)

    def _shared(
        self, legs: tuple[LegExplanation | None, LegExplanation | None, LegExplanation | None], score: float
    ) -> list[LegExplanation | None]:
        """The legs with what each adds to the score; a lowered score lowers all in proportion."""
        fusion = self._legs.fusion
        shares = [
            0.0 if leg is None else max(float(by(np.array([leg.score], np.float32))[0]), 0.0)
            for leg, by in zip(legs, (fusion.by_words, fusion.by_meaning, fusion.by_static), strict=True)
        ]
        scale = score / (sum(shares) or 1)
        return [leg and replace(leg, share=share * scale) for leg, share in zip(legs, shares, strict=True)]
