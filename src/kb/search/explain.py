"""Why a passage was found: what each leg says of it."""

from dataclasses import replace

import numpy as np

from kb.core.values import Explanation, LegExplanation
from kb.search.fusion import BM25_HALF, fused
from kb.search.pruning import Legs


class Explained:
    """Score, rank and share of a row in each leg. The rank takes the scores of the whole scope."""

    def __init__(self, legs: Legs) -> None:
        self._legs = legs
        self._rows = legs.scope.every_row
        self._cosines = None if legs.dense is None else legs.dense.cosines(self._rows)

    def of(self, row: int, score: float) -> Explanation:
        keywords = self._legs.keywords
        words, meaning = self._by_words(row), self._by_meaning(row)
        if words and meaning:
            words, meaning = self._shared(words, meaning, score)
        return Explanation(
            fts=words,
            vector=meaning,
            matched_terms=[] if keywords is None else [term for term, at in keywords.terms.items() if at.holds(row)],
        )

    def _by_words(self, row: int) -> LegExplanation | None:
        if (keywords := self._legs.keywords) is None:
            return None
        score = float(keywords.scores(np.array([row]))[0])
        return LegExplanation(keywords.better_than(score) + 1 if score > 0 else 0, score, score / (score + BM25_HALF))

    def _by_meaning(self, row: int) -> LegExplanation | None:
        if self._cosines is None:
            return None
        score = self._cosines[np.searchsorted(self._rows, row)]
        return LegExplanation(int(np.count_nonzero(self._cosines > score)) + 1, float(score), float(score))

    def _shared(
        self, words: LegExplanation, meaning: LegExplanation, score: float
    ) -> tuple[LegExplanation, LegExplanation]:
        """Both legs with what each adds to the score; a lowered score lowers both in proportion."""
        by_words, by_meaning = fused(
            np.array([words.score, 0], np.float32), np.array([0, max(meaning.score, 0)], np.float32), self._legs.trust
        ).tolist()
        scale = score / (by_words + by_meaning or 1)
        return replace(words, share=by_words * scale), replace(meaning, share=by_meaning * scale)
