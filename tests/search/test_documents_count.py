"""Documents of many passages: what the whole adds to its parts, and that one does not crowd out the rest."""

import math
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from kb.core.searches import Hit, SearchRequest
from kb.embedding.description import MINILM
from kb.embedding.embedder import SentenceEmbedder
from kb.index import terms
from kb.index.chunk_index import ChunkIndex, Snapshot, looked_up
from kb.search.fusion import Fusion
from kb.search.keyword import K1, B, KeywordIndex
from kb.search.ranking import Scored, kth_best_diversified, top_k_diversified
from kb.search.searcher import Question, Searcher
from kb.store import chunks, documents
from kb.store.sqlite.database import SQLiteDatabase
from kb.store.sqlite.migrate import migrate
from shelf import chunk, content

CONSTANTS = MINILM.fusion
TEXTS = {
    "about": ["The otter swims in the river.", "The otter eats fish.", "An otter sleeps on its back."],
    "mentions": ["A long list: otter, badger, weasel.", "Taxes are due in May.", "The office is closed on Monday."],
    "other": ["Badgers dig tunnels.", "Weasels hunt at night."],
}


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory, embedder: SentenceEmbedder) -> tuple[Searcher, dict[int, str]]:
    path: Path = tmp_path_factory.mktemp("documents") / "kb.db"
    migrate(path, terms.index_terms)
    database = SQLiteDatabase(path)
    live = ChunkIndex(embedder.dimensions)
    names: dict[int, str] = {}
    for name, passages in TEXTS.items():
        with database.write() as tx:
            document_id = documents.reserve(tx)
            names[document_id] = name
            vectors = embedder.embed(passages)
            new = [chunk(n, text, vector) for n, (text, vector) in enumerate(zip(passages, vectors, strict=True))]
            chunks.add(tx, document_id, 1, new)
            documents.publish(tx, document_id, content(name), 1, len(passages))
    live.load(database)
    return Searcher(database, live, KeywordIndex(), embedder), names


def bm25(count: int, length: int, mean: float, holding: int, of: int) -> float:
    return (
        math.log1p((of - holding + 0.5) / (holding + 0.5))
        * count
        * (K1 + 1)
        / (count + K1 * (1 - B + B * length / mean))
    )


def test_a_passage_is_worth_the_mean_of_itself_and_its_document(held: tuple[Searcher, dict[int, str]]) -> None:
    searcher, _ = held
    (hit,) = [
        hit
        for hit in searcher.search(SearchRequest("otter", mode="fts", explain=True)).hits
        if hit.text == TEXTS["mentions"][0]
    ]
    lengths = {name: [len(terms.index_terms(text)) for text in passages] for name, passages in TEXTS.items()}
    every = [length for own in lengths.values() for length in own]
    passage = bm25(1, lengths["mentions"][0], sum(every) / len(every), 4, len(every))
    whole = bm25(1, sum(lengths["mentions"]), sum(every) / len(lengths), 2, len(lengths))
    assert hit.explain is not None
    assert hit.explain.fts is not None
    assert hit.explain.fts.score == pytest.approx(math.sqrt(passage * whole), rel=1e-5)


def test_a_document_about_it_wins_over_one_that_mentions_it(held: tuple[Searcher, dict[int, str]]) -> None:
    searcher, names = held
    for mode in ("fts", "hybrid"):
        found = searcher.search(SearchRequest("otter", mode=mode)).hits
        assert names[found[0].document_id] == "about"


def test_further_passages_of_a_document_count_less_and_only_in_hybrid(held: tuple[Searcher, dict[int, str]]) -> None:
    searcher, names = held
    hits = searcher.search(SearchRequest("otter", explain=True)).hits
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    first = {name: next(hit.score for hit in hits if names[hit.document_id] == name) for name in TEXTS}
    others = [hit for hit in hits if hit.score != first[names[hit.document_id]]]
    assert all(hit.score <= CONSTANTS.further_passage * first[names[hit.document_id]] + 1e-6 for hit in others)
    best, *others = searcher.search(SearchRequest("otter", mode="vector", explain=True)).hits
    assert len(others) == sum(map(len, TEXTS.values())) - 1
    for hit in others:
        assert hit.score / best.score == pytest.approx(max(cosine(hit), 0) / cosine(best), abs=1e-6)


def cosine(hit: Hit) -> float:
    assert hit.explain is not None
    assert hit.explain.vector is not None
    return hit.explain.vector.score


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("count", [1, 5, 40])
@pytest.mark.parametrize("size", [60, 3000])
def test_the_best_after_mixing_are_those_of_brute_force(seed: int, count: int, size: int) -> None:
    random = np.random.default_rng(seed)
    scores = random.choice(np.linspace(0.1, 1, 25), size).astype(np.float32)
    owners = random.choice([1, 1, 1, 1, 2, *range(3, 40)], size).astype(np.int64)  # some own most of it
    seen: set[int] = set()
    truth: list[tuple[float, int]] = []
    for row in np.lexsort((np.arange(size), -scores)):
        owner = int(owners[row])
        truth.append((-float(scores[row] * np.float32(CONSTANTS.further_passage if owner in seen else 1)), int(row)))
        seen.add(owner)
    snapshot = snapshot_of(owners)
    rows = looked_up(snapshot.row_of_chunk, np.arange(size), snapshot.alive)  # chunk n is the n-th of these
    scored = Scored(rows.astype(np.int64), scores).at(random.permutation(size))
    found = top_k_diversified(scored, snapshot, count, CONSTANTS.further_passage)
    assert snapshot.chunk_ids[found.rows].tolist() == [chunk for _, chunk in sorted(truth)[:count]]
    assert kth_best_diversified(scored, snapshot, count, CONSTANTS.further_passage) == found.scores[-1]
    assert kth_best_diversified(scored, snapshot, size + 1, CONSTANTS.further_passage) == 0


def snapshot_of(owners: NDArray[np.int64]) -> Snapshot:
    index = ChunkIndex(2)
    size = len(owners)
    index.replace_many(
        sorted(set(owners.tolist())), owners.tolist(), list(range(size)), [1] * size, np.ones((size, 2), np.float32)
    )
    return index.snapshot()


@pytest.mark.parametrize(
    ("question", "least", "most"),
    [
        ("What is the capital of France?", 1.0, 1.0),
        ("¿Cuál es la capital de Francia?", 0.3, 1.0),
        ("ما هي عاصمة فرنسا؟", 0.0, 0.06),
        ("法国的首都是什么?", 0.0, 0.06),
        ("Как называется столица Франции?", 0.0, 0.06),
        ("4711-0815", 0.0, 0.06),
    ],
)
def test_meaning_is_trusted_where_the_model_knows_the_words(
    embedder: SentenceEmbedder, question: str, least: float, most: float
) -> None:
    assert least <= Question(question, embedder).trust <= most


def test_a_search_trusts_meaning_less_where_the_model_does_not_know_the_words(
    held: tuple[Searcher, dict[int, str]],
) -> None:
    searcher, _ = held
    question = "otter 漢字的是了在有我他"
    trust = Question(question, searcher._embedder).trust
    assert trust == CONSTANTS.least_trust
    best = searcher.search(SearchRequest(question, explain=True)).hits[0]
    assert best.explain is not None
    assert best.explain.fts is not None
    words = np.array([best.explain.fts.score], np.float32)
    fusion = Fusion(CONSTANTS, trust)
    least, most = (float(fusion.fused(words, np.array([cosine], np.float32))[0]) for cosine in (0, 1))
    assert least <= best.score <= most < least + 0.05
