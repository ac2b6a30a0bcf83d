"""A question, with what both legs need of it: terms, tokens, and the trust in its vector."""

from functools import cached_property

from kb.embedding.embedder import Embedder
from kb.embedding.tokenizer import Tokens
from kb.index.terms import query_terms
from kb.search import fusion


class Question:
    """Every part is computed once, when it is first needed: keyword mode needs no tokens, and thus no model."""

    def __init__(self, text: str, embedder: Embedder) -> None:
        self.text = text
        self._embedder = embedder

    @cached_property
    def terms(self) -> list[str]:
        return query_terms(self.text)

    @cached_property
    def tokens(self) -> Tokens:
        return self._embedder.tokenizer.encode(self.text)

    @cached_property
    def trust(self) -> float:
        return fusion.trust(self._embedder.tokenizer.letters_per_token(self.text, self.tokens))
