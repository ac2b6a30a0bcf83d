"""Passages with the same text: the best is a result, the others are named with it, and nothing else changes."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from kb.core.searches import Filter, Hit, Mode, SearchRequest
from kb.embedding.embedder import SentenceEmbedder
from kb.index import terms
from kb.index.chunk_index import ChunkIndex
from kb.search.hits import NAMED
from kb.search.keyword import KeywordIndex
from kb.search.searcher import Searcher
from kb.store import chunks, documents
from kb.store.backend import Vector
from kb.store.sqlite.database import SQLiteDatabase
from kb.store.sqlite.migrate import migrate
from shelf import chunk, content

QUESTION = "how does inflation change pensions"
MODES: tuple[Mode, ...] = ("hybrid", "vector", "fts")
RANDOM = np.random.default_rng(11)
DISTINCT = 60


class Shelf:
    """Documents written straight to the store; near the question in meaning, nearer the earlier they are added."""

    def __init__(self, path: Path, embedder: SentenceEmbedder) -> None:
        migrate(path, terms.index_terms)
        self.database = SQLiteDatabase(path)
        self.live = ChunkIndex(embedder.dimensions)
        self.searcher = Searcher(self.database, self.live, KeywordIndex(), embedder)
        self._question = embedder.embed_query(QUESTION)
        self._added = 0

    def add(self, *texts: str, tag: str = "all") -> int:
        with self.database.write() as tx:
            document_id = documents.reserve(tx)
            passages = [chunk(index, text, self._vector()) for index, text in enumerate(texts)]
            chunks.add(tx, document_id, 1, passages)
            documents.publish(tx, document_id, content(str(document_id)), 1, len(texts))
            documents.set_tags(tx, document_id, [tag])
        return document_id

    def search(self, top: int = 10, mode: Mode = "hybrid", **given: object) -> list[Hit]:
        return self.searcher.search(SearchRequest(QUESTION, top=top, mode=mode, **given)).hits  # type: ignore[arg-type]

    def _vector(self) -> Vector:
        self._added += 1
        noise = RANDOM.normal(size=self._question.shape) * 0.0002 * self._added
        near: Vector = self._question + noise.astype(np.float32)
        return near / np.linalg.norm(near)


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory, embedder: SentenceEmbedder) -> Iterator[Shelf]:
    """Two texts with hundreds of copies, better than all others; one of them with copies of another tag."""
    made = Shelf(tmp_path_factory.mktemp("shelf") / "kb.db", embedder)
    made.add("inflation changes pensions", "inflation changes pensions")
    for number in range(300):
        made.add("inflation  changes\npensions ", tag="other" if number % 3 else "all")
        made.add("pensions follow inflation")
    for number in range(DISTINCT):
        made.add(f"pensions and inflation, report {number}")
    made.live.load(made.database)
    yield made
    made.database.close()


@pytest.mark.parametrize("mode", MODES)
def test_a_text_is_a_result_once_and_as_many_as_wanted_are_found(shelf: Shelf, mode: Mode) -> None:
    hits = shelf.search(50, mode)
    assert len(hits) == 50
    folded = [" ".join(hit.text.split()) for hit in hits]
    assert len(set(folded)) == 50
    assert {"inflation changes pensions", "pensions follow inflation"} <= set(folded)
    assert len(shelf.search(100, mode)) == DISTINCT + 2


@pytest.mark.parametrize("mode", MODES)
def test_a_smaller_top_is_a_prefix_with_the_same_copies(shelf: Shelf, mode: Mode) -> None:
    most = shelf.search(100, mode)
    assert all(shelf.search(top, mode) == most[:top] for top in (1, 2, 3, 10, 37))


@pytest.mark.parametrize("mode", MODES)
def test_the_result_is_the_best_of_its_copies(shelf: Shelf, mode: Mode) -> None:
    scores = [hit.score for hit in shelf.search(100, mode)]
    assert scores == sorted(scores, reverse=True)
    best = shelf.search(1, mode, explain=True)[0]
    assert best.explain is not None
    leg = best.explain.fts if mode == "fts" else best.explain.vector
    assert leg is not None
    assert leg.rank == 1


def test_copies_are_named_the_documents_first_and_counted(shelf: Shelf) -> None:
    (hit,) = [hit for hit in shelf.search(2) if hit.text.startswith("inflation")]
    assert hit.also_in is not None
    assert len(hit.also_in) == NAMED
    assert hit.also_in_more == 301 - NAMED
    named = [copy.document_id for copy in hit.also_in]
    assert len(set(named)) == NAMED
    assert hit.document_id not in named
    assert named == sorted(named)
    copy = hit.also_in[0]
    assert (copy.title, copy.filename, copy.source_path) == (str(copy.document_id), None, None)
    assert copy.anchor.start == 0


def test_a_copy_outside_the_filter_is_not_named(shelf: Shelf) -> None:
    with shelf.database.read() as tx:
        others = set(tx.column("SELECT document_id FROM tags WHERE tag = 'other'"))
    for tag, copies in (("all", 101), ("other", 199)):
        hit = next(hit for hit in shelf.search(2, filter=Filter((tag,))) if hit.text.startswith("inflation"))
        assert len(hit.also_in or ()) + (hit.also_in_more or 0) == copies
        assert all((copy.document_id in others) == (tag == "other") for copy in hit.also_in or ())


def test_what_has_no_copy_says_nothing_of_it(shelf: Shelf) -> None:
    assert all(hit.also_in is None and hit.also_in_more is None for hit in shelf.search(100)[2:])


def test_names_of_copies_count_in_the_budget(shelf: Shelf) -> None:
    (first,) = shelf.search(5, max_tokens=20)
    assert first.also_in is None
    assert (first.also_in_more or 0) > NAMED
    assert first.truncated is None
    (cut,) = shelf.search(5, max_tokens=1)
    assert cut.truncated
    assert len(shelf.search(5, max_tokens=5000)) == 5


def test_the_same_passage_twice_in_a_document_is_one_result(tmp_path: Path, embedder: SentenceEmbedder) -> None:
    own = Shelf(tmp_path / "kb.db", embedder)
    document_id = own.add("Inflation and pensions, confidential", "pensions", "Inflation and pensions, confidential")
    own.live.load(own.database)
    hits = own.search()
    assert len(hits) == 2
    (doubled,) = [hit for hit in hits if hit.also_in]
    assert [copy.document_id for copy in doubled.also_in or ()] == [document_id]
    own.database.close()


def test_a_copy_that_is_not_published_is_not_named(tmp_path: Path, embedder: SentenceEmbedder) -> None:
    own = Shelf(tmp_path / "kb.db", embedder)
    document_id = own.add("pensions")
    with own.database.write() as tx:
        chunks.add(tx, document_id, 2, [chunk(0, "pensions", np.ones(embedder.dimensions, np.float32))])
    own.live.load(own.database)
    (hit,) = own.search()
    assert hit.also_in is None
    own.database.close()
