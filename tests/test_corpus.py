"""The benchmarks' corpus: what is measured at one size is part of what is measured at another."""

import json
from pathlib import Path

import numpy as np
import pytest
from benchmarks.corpus import TAGS, Corpus, nearest, recall

REAL = 400


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    """Built upon passages of a few sentences, in ten clusters."""
    chance = np.random.default_rng(2)
    vectors = chance.standard_normal((10, 384))[np.arange(REAL) % 10] + chance.standard_normal((REAL, 384))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    rows = [
        {"document": number // 2, "title": f"Title {number // 2}", "text": f"First {number}. Second {number}. Third."}
        for number in range(REAL)
    ]
    (tmp_path / "passages.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    np.save(tmp_path / "passages.npy", vectors.astype(np.float32))
    return Corpus(tmp_path)


def test_a_small_corpus_is_the_beginning_of_a_larger_one(corpus: Corpus) -> None:
    small = list(corpus.batches(3000))[-1]
    large = list(corpus.batches(12_000))[1]
    count = len(small)
    assert small.numbers == range(REAL, 3000)
    assert large.texts[:count] == small.texts
    assert large.tags[:count] == small.tags
    assert np.array_equal(large.vectors[:count], small.vectors)


def test_vectors_are_the_same_with_and_without_their_texts(corpus: Corpus) -> None:
    for batch, (documents, vectors) in zip(corpus.batches(12_000), corpus.vectors(12_000), strict=True):
        assert np.array_equal(batch.vectors, vectors)
        assert np.array_equal(batch.documents, documents)
        assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)


def test_documents_are_consecutive_chunks_and_tags_have_their_shares(corpus: Corpus) -> None:
    documents = np.concatenate([documents for documents, _ in corpus.vectors(30_000)])
    assert set(np.diff(documents)) == {0, 1}
    for tag in ("tenth", "hundredth"):  # of the rarest there are too few to tell
        assert np.mean(documents % TAGS[tag] == 0) == pytest.approx(1 / TAGS[tag], rel=0.35)


def test_exact_search_is_what_comparing_with_every_vector_finds(corpus: Corpus) -> None:
    documents, vectors = (np.concatenate(parts) for parts in zip(*corpus.vectors(11_000), strict=True))
    questions = vectors[[3, 500, 10_900]]
    for tag in (None, *TAGS):
        every = TAGS[tag] if tag else 1
        within = np.flatnonzero(documents % every == 0)
        scores = questions @ vectors[within].T
        for row, found in zip(scores, nearest(corpus, 11_000, questions, tag), strict=True):
            ranked = within[np.argsort(-row)][:10]
            assert found == [number for number in ranked if row[np.searchsorted(within, number)] > 0]


def test_recall_is_the_share_of_what_should_be_found() -> None:
    assert recall([[1, 2, 3], [9]], [[1, 2], [7, 9]]) == 0.75
    assert recall([[]], [[]]) == 1.0
