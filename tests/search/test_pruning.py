"""Pruning skips rows, and the answer is the same as without it."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from kb.core.searches import Filter, Mode, SearchRequest
from kb.core.settings import MULTILINGUAL_VECTORS, bundled_model_dir
from kb.embedding.description import FusionConstants
from kb.embedding.embedder import SentenceEmbedder
from kb.embedding.static import StaticEmbedder
from kb.index import terms
from kb.index.chunk_index import ChunkIndex, looked_up
from kb.index.numpy_kernels import NumpyKernels
from kb.search.filter_scope import Scope
from kb.search.fusion import Fusion
from kb.search.keyword import KeywordIndex
from kb.search.pruning import Legs, prune, score_all
from kb.search.searcher import Searcher
from kb.search.vector import Dense
from kb.store import chunks, documents
from kb.store.backend import Vector
from kb.store.sqlite.database import SQLiteDatabase
from kb.store.sqlite.migrate import migrate
from kb.store.static_vectors import encoded
from shelf import chunk, content

RANDOM = np.random.default_rng(3)
TOPICS = 60
WORDS = [f"word{number}" for number in range(800)]
QUESTIONS = [
    "word3 word17 word400",
    "word0 word1 word2",
    "word799",
    "word5 word5 nothing",
    "how does that go",
    "word7 漢字的是了在有我他",  # hardly trusted to the model
    "parole che non stanno in nessun testo",  # no word of it occurs, as if in another language
    "word7 word900 word901 word902",  # some do
]


def unit(rows: np.ndarray) -> Vector:
    scaled: Vector = (rows / np.linalg.norm(rows, axis=-1, keepdims=True)).astype(np.float32)
    return scaled


def text() -> str:
    """Some words are in every other passage, most in very few."""
    return " ".join(WORDS[int(rank)] for rank in np.minimum(RANDOM.zipf(1.3, 40), len(WORDS)) - 1)


@pytest.fixture(scope="module", params=[True, False], ids=["some gone", "all there"])
def searchers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, embedder: SentenceEmbedder
) -> Iterator[tuple[Searcher, Searcher, Searcher]]:
    """With every shortcut, with those that are certain, and with none, over the same documents of 1 to 12 passages.

    Some say the same as the one before them, and some may be gone again.
    """
    path: Path = tmp_path_factory.mktemp("candidates") / "kb.db"
    migrate(path, terms.index_terms)
    database = SQLiteDatabase(path)
    live = ChunkIndex(embedder.dimensions)
    asked = np.stack([embedder.embed_query(question) for question in QUESTIONS[:6]])
    topics = unit(
        RANDOM.normal(size=(TOPICS, embedder.dimensions)) + 12 * asked[RANDOM.integers(len(asked), size=TOPICS)]
    )
    topics_said = [QUESTIONS[number % len(QUESTIONS)] for number in range(TOPICS)]
    static = StaticEmbedder(bundled_model_dir(MULTILINGUAL_VECTORS))
    ids: list[int] = []
    with database.write() as tx:
        for number in range(1200):
            if number % 7 != 6:
                size = 1 if number % 2 else int(RANDOM.integers(2, 13))
                noise = RANDOM.normal(size=(size, embedder.dimensions))
                vectors = unit(topics[number % TOPICS] + 0.06 * noise)
                texts = [text() for _ in vectors]
                about = static.embed([f"{said} {topics_said[number % TOPICS]}" for said in texts])
                said = [
                    chunk(at, text, vector, None if number % 50 == 3 else encoded(of_static))
                    for at, (text, vector, of_static) in enumerate(zip(texts, vectors, about, strict=True))
                ]
            id_ = documents.reserve(tx)
            ids.append(id_)
            chunks.add(tx, id_, 1, said)
            documents.publish(tx, id_, content(str(number)), 1, size)
            documents.set_tags(
                tx, id_, ["third" if number % 3 == 0 else "rest", "one passage" if size == 1 else "several"]
            )
    live.load(database)
    for id_ in ids[::11] if request.param else []:
        with database.write() as tx:
            chunks.remove_other_revisions(tx, id_, keep=0)
            documents.delete(tx, id_)
        live.remove(id_)
    keywords = KeywordIndex()
    yield (
        Searcher(database, live, keywords, embedder, partial(prune, exact_up_to=0), static),
        Searcher(database, live, keywords, embedder, static=static),
        Searcher(database, live, keywords, embedder, score_all, static),
    )
    database.close()


@pytest.mark.parametrize("mode", ["hybrid", "vector", "fts"])
@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("tag", [(), ("third",), ("one passage",), ("several",), ("third", "several"), ("nobody",)])
@pytest.mark.parametrize("top", [1, 10, 100])
def test_pruning_does_not_change_the_answer(
    searchers: tuple[Searcher, Searcher, Searcher], mode: Mode, question: str, tag: tuple[str, ...], top: int
) -> None:
    *quick, exact = (
        searcher.search(SearchRequest(question, mode=mode, top=top, filter=Filter(tags=tag))).hits
        for searcher in searchers
    )
    for hits in quick:
        assert [hit.chunk_id for hit in hits] == [hit.chunk_id for hit in exact]
        assert [hit.score for hit in hits] == pytest.approx([hit.score for hit in exact], abs=1e-6)


@pytest.mark.parametrize("mode", ["hybrid", "vector", "fts"])
@pytest.mark.parametrize("question", QUESTIONS)
def test_how_many_are_asked_for_changes_nothing(
    searchers: tuple[Searcher, Searcher, Searcher], mode: Mode, question: str
) -> None:
    deep, *shallow = (
        [(hit.chunk_id, hit.score) for hit in searchers[1].search(SearchRequest(question, mode=mode, top=top)).hits]
        for top in (100, 1, 7, 10, 33, 60)
    )
    for hits in shallow:
        assert hits == deep[: len(hits)]


@pytest.mark.parametrize("mode", ["hybrid", "vector", "fts"])
@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("tag", [(), ("third",)])
def test_kernels_in_numpy_do_not_change_the_answer(
    searchers: tuple[Searcher, Searcher, Searcher],
    mode: Mode,
    question: str,
    tag: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked, pruning = SearchRequest(question, mode=mode, filter=Filter(tags=tag)), searchers[0]
    compiled = pruning.search(asked).hits
    for module in ("index.postings", "index.sign_bits", "search.keyword", "search.vector", "search.static_leg"):
        monkeypatch.setattr(f"kb.{module}.kernels", NumpyKernels())
    fresh = Searcher(
        pruning._database, pruning._live, KeywordIndex(), pruning._embedder, pruning._choose, pruning.static
    )
    in_numpy = fresh.search(asked).hits
    assert [hit.chunk_id for hit in in_numpy] == [hit.chunk_id for hit in compiled]
    assert [hit.score for hit in in_numpy] == pytest.approx([hit.score for hit in compiled], abs=1e-6)


def test_who_has_the_score_reaches_it(searchers: tuple[Searcher, Searcher, Searcher]) -> None:
    searcher = searchers[0]
    scope = Scope.unfiltered(searcher._live.snapshot())
    with searcher._database.read() as tx:
        keywords = searcher._keywords.search(tx, scope, terms.query_terms("word3 word17"), 20)
    for row, score in zip(*keywords.hits, strict=True):
        assert row in keywords.reaching(float(score)).rows
    assert len(keywords.reaching(float(keywords.hits.scores.max())).rows) < len(keywords.hits.rows)
    best = keywords.hits.rows[np.argsort(-keywords.hits.scores)[:20]]
    assert set(best) <= set(keywords.best.rows)
    others = keywords.reaching(0.5 * keywords.level, below=keywords.level)
    assert len(others.rows)
    assert not set(others.rows) & set(keywords.best.rows)
    assert {*others.rows, *keywords.best.rows} == set(keywords.reaching(0.5 * keywords.level).rows)


def test_explaining_changes_nothing_and_ranks_among_all(searchers: tuple[Searcher, Searcher, Searcher]) -> None:
    *quick, exact = (searcher.search(SearchRequest(QUESTIONS[0], explain=True)).hits for searcher in searchers)
    assert quick == [exact, exact]
    assert [hit.chunk_id for hit in exact] == [
        hit.chunk_id for hit in searchers[0].search(SearchRequest(QUESTIONS[0])).hits
    ]


def test_most_are_ruled_out_and_hardly_any_of_the_best() -> None:
    count = 30_000
    topics = unit(RANDOM.normal(size=(300, 384)))
    vectors = unit(topics[RANDOM.integers(300, size=count)] + 0.05 * RANDOM.normal(size=(count, 384)))
    live = ChunkIndex(384)
    live.replace_many(range(count), range(count), range(count), [1] * count, vectors)
    scope = Scope.unfiltered(live.snapshot())
    held = looked_at = 0
    for number in range(100):
        question = unit(topics[number] + 0.05 * RANDOM.normal(size=384))
        found = prune(Legs(scope, None, Dense(scope, question), Fusion(FusionConstants(), 1.0)), 10, exact_up_to=0)
        best = np.argsort(-(vectors @ question))[:10]
        held += len(np.intersect1d(looked_up(scope.snapshot.row_of_chunk, best, scope.snapshot.alive), found.rows))
        looked_at += len(found.rows)
    assert held >= 0.99 * 100 * 10
    assert looked_at < 0.05 * 100 * count
