"""A question computes each of its parts once, and only when it is needed."""

from typing import cast

from kb.embedding.embedder import Embedder, SentenceEmbedder
from kb.search.searcher import Question

TEXT = "how herons hunt"


def test_terms_need_no_model() -> None:
    assert Question(TEXT, cast("Embedder", None)).terms.keys() == {"heron", "hunt"}


def test_parts_are_computed_once(embedder: SentenceEmbedder) -> None:
    question = Question(TEXT, embedder)
    assert question.tokens is question.tokens
    assert question.terms is question.terms


def test_the_embedder_gives_the_same_vector_with_the_tokens_of_the_question(embedder: SentenceEmbedder) -> None:
    for text in ("how herons fish", "herons hunt " * 300):
        question = Question(text, embedder)
        vector = embedder.begin_query(question.text, question.tokens)()
        embedder.query_cache.clear()
        assert vector.tolist() == embedder.embed_query(text).tolist()
