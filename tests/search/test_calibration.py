"""The score says how sure a search is: high for an answer, low for the best of what does not fit, in every mode."""

from collections.abc import Iterator

import pytest

from support import EngineProcess, Http, StartEngine

NOTES = (
    "The boiler was serviced in March by Anna; the next service is due in a year.",
    "The spare key of the garden shed hangs behind the kitchen door.",
    "Bread: 500 g of flour, 350 g of water, 10 g of salt, a pinch of yeast; rest overnight.",
    "The car is insured with Helvetia, policy 4711-22; claims by phone.",
    "Grandmother was born in Graz in 1931 and moved to Vienna after the war.",
)
ANSWERED = (
    "when is the heating checked again",
    "where is the key of the shed",
    "how much water goes into the bread dough",
    "which company insures the car",
    "boiler",
)
ELSEWHERE = (
    "what is the capital of Mongolia",
    "aerodynamic heating of slender wings at supersonic speed",
    "does aspirin inhibit cyclooxygenase in human platelets",
    "who won the football world cup in 1986",
)


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Http]:
    """An engine of their own: how sure a search is depends on all that is there."""
    engine = EngineProcess(tmp_path_factory.mktemp("calibration") / "data")
    http = Http(engine.url)
    for note in NOTES:
        http.add_note(note, tags=["calibration"])
    yield http
    engine.stop()


def best(http: Http, question: str, **given: object) -> float:
    results = http.search(question, tags=["calibration"], **given)["results"]
    return float(results[0]["score"]) if results else 0.0


@pytest.mark.parametrize("mode", ["hybrid", "vector"])
def test_what_is_answered_scores_above_what_is_not(notes: Http, mode: str) -> None:
    answered = [best(notes, question, mode=mode) for question in ANSWERED]
    elsewhere = [best(notes, question, mode=mode) for question in ELSEWHERE]
    assert min(answered) > max(elsewhere)


def test_a_notice_says_when_nothing_fits(notes: Http) -> None:
    for question in ELSEWHERE:
        assert "Nothing here fits the question well" in notes.search(question, tags=["calibration"])["notice"]
    for question in ANSWERED:
        assert "notice" not in notes.search(question, tags=["calibration"])


@pytest.mark.parametrize("mode", ["hybrid", "fts", "vector"])
def test_scores_fall_with_the_rank_and_a_smaller_top_is_a_prefix(notes: Http, mode: str) -> None:
    def asked(top: int) -> list[tuple[int, float]]:
        answer = notes.search("the key and the car and the water", mode=mode, top=top, tags=["calibration"])
        return [(hit["chunk_id"], hit["score"]) for hit in answer["results"]]

    scores = [score for _, score in asked(5)]
    assert scores == sorted(scores, reverse=True)
    assert 0 < scores[0] <= 1
    assert asked(2) == asked(5)[:2]


def test_min_score_is_about_the_score_that_is_shown(notes: Http) -> None:
    whole = notes.search("where is the key of the shed", tags=["calibration"])["results"]
    limit = whole[0]["score"] - 1e-4
    kept = notes.search("where is the key of the shed", tags=["calibration"], min_score=limit)["results"]
    assert [hit["chunk_id"] for hit in kept] == [hit["chunk_id"] for hit in whole if hit["score"] >= limit]


@pytest.mark.parametrize("mode", ["hybrid", "fts", "vector"])
def test_a_filter_does_not_change_how_sure_a_search_is(start_engine: StartEngine, mode: str) -> None:
    own = Http(start_engine().url)
    for note in NOTES:
        own.add_note(note, tags=["all"])
    own.add_note("The roof of the garden shed is made of larch shingles.", tags=["house"])
    question = "what is the roof of the shed made of"
    (everywhere, *_), (within,) = (own.search(question, mode=mode, tags=tags)["results"] for tags in ([], ["house"]))
    assert within["chunk_id"] == everywhere["chunk_id"]
    assert within["score"] == pytest.approx(everywhere["score"], abs=1e-6)


def test_one_document_alone_has_scores_that_mean_the_same(start_engine: StartEngine) -> None:
    own = Http(start_engine().url)
    own.add_note(NOTES[0])
    assert own.search("when was the boiler serviced")["results"][0]["score"] > 0.5
    assert own.search(ELSEWHERE[0])["results"][0]["score"] < 0.2
