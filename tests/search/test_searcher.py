"""Search against brute force: filters never hide a match, ranking is exact, ties are settled, shorter is a prefix."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kb.core.searches import Filter, Mode, SearchRequest
from kb.embedding.embedder import SentenceEmbedder
from kb.index import terms
from kb.index.chunk_index import ChunkIndex
from kb.search.keyword import K1, B, KeywordIndex
from kb.search.searcher import Searcher
from kb.store import chunks, documents
from kb.store.backend import Vector
from kb.store.sqlite.database import SQLiteDatabase
from kb.store.sqlite.migrate import migrate
from shelf import chunk, content

QUESTION = "how does inflation change pensions"
DECOYS = 6000  # more than the 4096 that sqlite-vec takes at once
TARGETS = 30
RANDOM = np.random.default_rng(7)


def unit(vector: NDArray[np.floating[Any]]) -> Vector:
    scaled: Vector = (vector / np.linalg.norm(vector)).astype(np.float32)
    return scaled


class Corpus:
    """Documents of one chunk each, written straight to the store, with what brute force needs to know."""

    def __init__(self, path: Path, embedder: SentenceEmbedder) -> None:
        migrate(path, terms.index_terms)
        self.database = SQLiteDatabase(path)
        self.live = ChunkIndex(embedder.dimensions)
        self.vectors: dict[int, Vector] = {}
        self.texts: dict[int, list[str]] = {}
        self.tags: dict[int, str] = {}
        self.searcher = Searcher(self.database, self.live, KeywordIndex(), embedder)

    def add(self, text: str, vector: Vector, tag: str) -> None:
        body = terms.index_terms(text)
        with self.database.write() as tx:
            document_id = documents.reserve(tx)
            (chunk_id,) = chunks.add(tx, document_id, 1, [chunk(0, text, vector)])
            documents.publish(tx, document_id, content(str(document_id)), 1, 1)
            documents.set_tags(tx, document_id, [tag])
        self.vectors[chunk_id], self.texts[chunk_id], self.tags[chunk_id] = vector, body, tag

    def bm25(self, question: str, tag: str) -> dict[int, float]:
        """Among the documents with a tag: rarity and usual length are those within the filter."""
        texts = {id_: body for id_, body in self.texts.items() if self.tags[id_] == tag}
        lengths = {id_: len(body) for id_, body in texts.items()}
        mean = sum(lengths.values()) / len(lengths)
        scores = dict.fromkeys(texts, 0.0)
        for term in terms.query_terms(question):
            holding = {id_: body.count(term) for id_, body in texts.items() if term in body}
            rarity = np.log1p((len(lengths) - len(holding) + 0.5) / (len(holding) + 0.5)) if holding else 0.0
            for id_, n in holding.items():
                scores[id_] += rarity * n * (K1 + 1) / (n + K1 * (1 - B + B * lengths[id_] / mean))
        return scores

    def search(self, question: str, **given: object) -> list[tuple[int, float]]:
        found = self.searcher.search(SearchRequest(question, **given))  # type: ignore[arg-type]
        return [(hit.chunk_id, hit.score) for hit in found.hits]

    def cosines(self, question: Vector, ids: Iterable[int]) -> dict[int, float]:
        return {id_: float(self.vectors[id_].astype(float) @ question.astype(float)) for id_ in ids}


def assert_best(found: list[tuple[int, float]], truth: dict[int, float], count: int) -> None:
    """The best of these, in order; whose cosines are the same in float32 may come in either."""
    best = sorted(truth.values(), reverse=True)[:count]
    assert [truth[id_] for id_, _ in found] == pytest.approx(best, abs=5e-7)
    # What is shown is how sure the search is of the best one; the others keep their proportion to it.
    assert [score / found[0][1] for _, score in found] == pytest.approx([value / best[0] for value in best], abs=2e-6)
    assert len({id_ for id_, _ in found}) == count


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory, embedder: SentenceEmbedder) -> Iterator[Corpus]:
    """Thousands of decoys that are closer to the question, in meaning and in words, than any target."""
    made = Corpus(tmp_path_factory.mktemp("corpus") / "kb.db", embedder)
    question = embedder.embed_query(QUESTION)
    for number in range(DECOYS):
        noise = RANDOM.normal(size=question.shape) * 0.01
        made.add(f"inflation changes pensions, decoy {number}", unit(question + noise), "decoy")
    for number in range(TARGETS):
        noise = RANDOM.normal(size=question.shape) * 0.2
        words = "inflation" if number % 2 else "weather"
        made.add(f"{words} report number {number} " + "filler " * number, unit(question + noise), "target")
    made.live.load(made.database)
    yield made
    made.database.close()


def test_vector_search_is_exact(corpus: Corpus, embedder: SentenceEmbedder) -> None:
    found = corpus.search(QUESTION, mode="vector", top=50)
    assert_best(found, corpus.cosines(embedder.embed_query(QUESTION), corpus.vectors), 50)


@pytest.mark.parametrize("mode", ["hybrid", "vector"])
def test_thousands_of_closer_chunks_outside_the_filter_hide_nothing(corpus: Corpus, mode: Mode) -> None:
    targets = {id_ for id_, tag in corpus.tags.items() if tag == "target"}
    found = corpus.search(QUESTION, mode=mode, top=100, filter=Filter(tags=("target",)))
    assert {id_ for id_, _ in found} == targets


def test_filtered_vector_search_is_in_the_order_of_brute_force(corpus: Corpus, embedder: SentenceEmbedder) -> None:
    targets = [id_ for id_, tag in corpus.tags.items() if tag == "target"]
    found = corpus.search(QUESTION, mode="vector", top=100, filter=Filter(tags=("target",)))
    assert_best(found, corpus.cosines(embedder.embed_query(QUESTION), targets), TARGETS)


def test_a_filter_that_lets_more_than_4096_chunks_through_still_finds_the_best(corpus: Corpus) -> None:
    found = corpus.search(QUESTION, mode="vector", top=100, filter=Filter(tags=("decoy",)))
    unfiltered = corpus.search(QUESTION, mode="vector", top=100)
    assert found == unfiltered


def test_keyword_scores_are_bm25(corpus: Corpus) -> None:
    truth = corpus.bm25(QUESTION, "target")
    answer = corpus.searcher.search(
        SearchRequest(QUESTION, mode="fts", top=100, explain=True, filter=Filter(("target",)))
    )
    assert len(answer.hits) == TARGETS // 2
    for hit in answer.hits:
        assert hit.explain is not None
        assert hit.explain.fts is not None
        assert hit.explain.fts.score == pytest.approx(truth[hit.chunk_id], rel=1e-4)
        assert hit.explain.matched_terms == ["inflat"]


def test_keyword_search_answers_only_what_holds_a_term(corpus: Corpus) -> None:
    found = corpus.search("weather", mode="fts", top=100)
    assert {id_ for id_, _ in found} == {id_ for id_, body in corpus.texts.items() if "weather" in body}


@pytest.mark.parametrize("mode", ["hybrid", "vector", "fts"])
def test_a_smaller_top_is_a_prefix_of_a_larger_one(corpus: Corpus, mode: Mode) -> None:
    most = corpus.search(QUESTION, mode=mode, top=100)
    assert all(corpus.search(QUESTION, mode=mode, top=top) == most[:top] for top in (1, 2, 10, 37))


@pytest.mark.parametrize("mode", ["hybrid", "vector", "fts"])
def test_scores_fall_with_rank_and_ties_break_by_id(corpus: Corpus, mode: Mode) -> None:
    found = corpus.search(QUESTION, mode=mode, top=100)
    assert found == sorted(found, key=lambda pair: (-pair[1], pair[0]))
    assert all(0 <= score <= 1 for _, score in found)


def test_a_question_without_a_good_match_scores_low(corpus: Corpus) -> None:
    good = corpus.search(QUESTION, top=1)[0][1]
    bad = corpus.search("recipe for sourdough bread", top=1)[0][1]
    assert bad < good / 2


def test_a_replaced_chunk_is_passed_over_and_its_place_is_filled(tmp_path: Path, embedder: SentenceEmbedder) -> None:
    """The row is gone, but the index in memory has not heard of it yet."""
    own = Corpus(tmp_path / "kb.db", embedder)
    for number in range(5):
        own.add(f"pensions {number}", unit(RANDOM.normal(size=embedder.dimensions)), "x")
    own.live.load(own.database)
    best = own.search("pensions", mode="fts", top=1)[0][0]
    with own.database.write() as tx:
        document_id = tx.value("SELECT document_id FROM chunks WHERE id = :id", {"id": best})
        chunks.remove_other_revisions(tx, document_id, keep=0)
        documents.delete(tx, document_id)
    left = own.search("pensions", mode="fts", top=5)
    assert len(left) == 4
    assert best not in {id_ for id_, _ in left}


def test_terms_of_later_chunks_are_found_after_a_term_was_cached(tmp_path: Path, embedder: SentenceEmbedder) -> None:
    own = Corpus(tmp_path / "kb.db", embedder)
    own.add("pensions one", unit(RANDOM.normal(size=embedder.dimensions)), "x")
    own.live.load(own.database)
    assert len(own.search("pensions", mode="fts")) == 1
    own.add("pensions two", unit(RANDOM.normal(size=embedder.dimensions)), "x")
    own.live.load(own.database)
    assert len(own.search("pensions", mode="fts")) == 2
