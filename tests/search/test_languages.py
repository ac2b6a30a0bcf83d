"""A question in one language finds documents in another, by vectors that are made with each passage or after it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kb.core.settings import MULTILINGUAL_VECTORS, bundled_model_dir
from kb.embedding.static import DIMENSIONS, StaticEmbedder
from kb.store import static_vectors
from support import EngineProcess, Http, StartEngine, eventually

NOTES = (
    "The cat sleeps on the sofa all day and hunts mice at night.",
    "The bread rises overnight in the refrigerator before it is baked.",
    "Our car needs new tires before winter; the old ones are worn.",
    "The doctor recommends swimming twice a week for back pain.",
    "The train to the mountains leaves at seven from platform nine.",
    "She plays the violin in an orchestra and teaches children.",
)
FOREIGN = (
    ("¿Dónde duerme el gato?", 0),
    ("Welche Reifen braucht unser Auto im Winter?", 2),
    ("врач рекомендует плавание от боли в спине", 3),
    ("猫在哪里睡觉", 0),
    ("她在乐团演奏小提琴", 5),
)


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Http]:
    """An engine of its own: which words of a question are known depends on all documents that an engine has."""
    engine = EngineProcess(tmp_path_factory.mktemp("languages") / "data")
    http = Http(engine.url)
    for note in NOTES:
        http.add_note(note, tags=["languages"])
    yield http
    engine.stop()


def languages(http: Http) -> Any:
    return http("GET", "/api/v1/status").json["multilingual"]


def first(http: Http, question: str, **given: Any) -> str:
    return str(http.search(question, tags=["languages"], **given)["results"][0]["text"])


@pytest.mark.parametrize(("question", "wanted"), FOREIGN)
def test_a_question_finds_documents_in_another_language(notes: Http, question: str, wanted: int) -> None:
    assert first(notes, question) == NOTES[wanted]


def test_a_document_in_another_language_is_found(notes: Http) -> None:
    note = "会议改到星期四下午三点，在二楼的大会议室举行。"
    notes.add_note(note, tags=["languages"])
    assert first(notes, "meeting moved to Thursday afternoon conference room") == note


def test_explain_shows_the_leg_and_the_shares_add_up(notes: Http) -> None:
    hit = notes.search("猫在哪里睡觉", tags=["languages"], explain=True)["results"][0]
    legs = [leg for name in ("fts", "vector", "static") if (leg := hit["explain"][name])]
    assert hit["explain"]["static"]["rank"] == 1
    assert sum(leg["share"] for leg in legs) == pytest.approx(hit["score"], abs=1e-3)


def test_the_answer_says_that_it_was_found_across_languages(notes: Http) -> None:
    assert "across languages" in notes.search("猫在哪里睡觉", tags=["languages"])["notice"]


def test_an_english_question_does_without_the_leg(notes: Http) -> None:
    hit = notes.search("where does the cat sleep", tags=["languages"], explain=True)["results"][0]
    assert hit["text"] == NOTES[0]
    assert hit["explain"].get("static") is None


def test_passages_that_have_no_vector_get_one_later(start_engine: StartEngine, tmp_path: Path) -> None:
    data = tmp_path / "data"
    without = start_engine(data, KB_MULTILINGUAL_DIR=str(tmp_path / "nowhere"))
    http = Http(without.url)
    for note in NOTES:
        http.add_note(note, tags=["languages"])
    assert languages(http) == {"installed": False, "waiting": len(NOTES)}
    assert first(http, "where does the cat sleep") == NOTES[0]
    without.stop()
    http = Http(start_engine(data).url)
    eventually(lambda: languages(http) == {"installed": True, "waiting": 0})
    assert first(http, "猫在哪里睡觉") == NOTES[0]


def test_any_text_has_a_vector() -> None:
    static = StaticEmbedder(bundled_model_dir(MULTILINGUAL_VECTORS))
    found = static.embed(["", "\ud800", "the cat", "x" * 100_000, "猫" * 10_000])
    assert found.shape == (5, DIMENSIONS) == (5, static_vectors.DIMENSIONS)
    assert found.any(axis=1).tolist() == [False, False, True, True, True]
    assert abs(found[2]).max() == 127
