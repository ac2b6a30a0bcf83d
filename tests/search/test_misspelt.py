"""A word that occurs nowhere is taken for the most similar one that does, and the answer says so."""

import pytest

from support import Http

NOTES = (
    "The photosynthesis of ferns needs little light.",
    "Zirconium oxide is used for crucibles.",
    "Она записала рецепт варенья.",
    "黑猫在花园里睡觉。",
    "The invoice number is AB12345.",
)


@pytest.fixture(scope="module")
def notes(engine_url: str) -> Http:
    http = Http(engine_url)
    for note in NOTES:
        http.add_note(note, tags=["misspelt"])
    return http


@pytest.mark.parametrize(
    ("question", "found", "notice"),
    [
        ("photosinthesis", NOTES[0], "Searched for 'photosynthesis' instead of 'photosinthesis'"),
        ("zirkonium crucibels", NOTES[1], "'zirconium' instead of 'zirkonium' and 'crucibles' instead of 'crucibels'"),
        ("реецпт", NOTES[2], "'рецепт' instead of 'реецпт'"),
    ],
)
@pytest.mark.parametrize("mode", ["fts", "hybrid"])
def test_a_misspelt_word_is_found(notes: Http, question: str, found: str, notice: str, mode: str) -> None:
    answer = notes.search(question, mode=mode, tags=["misspelt"], explain=True)
    assert answer["results"][0]["text"] == found
    assert notice in answer["notice"]
    assert answer["results"][0]["explain"]["matched_terms"]


@pytest.mark.parametrize(
    "question",
    [
        "photosynthesis",
        "ferns",
        "oxides",  # its stem is known
        "AB12346",  # a number is never misspelt
        "黑狗",  # nor is a script without spaces
        "photographic",  # too far from anything
        "lite",  # three edits from light, and too short for two
    ],
)
def test_nothing_else_is_taken_for_misspelt(notes: Http, question: str) -> None:
    assert "instead of" not in notes.search(question, mode="fts", tags=["misspelt"]).get("notice", "")


def test_a_word_that_came_a_moment_ago_is_known(notes: Http) -> None:
    notes.add_note("Our axolotl eats earthworms.", tags=["misspelt"])
    answer = notes.search("axolottl", mode="fts", tags=["misspelt"])
    assert "axolotl" in answer["results"][0]["text"]
    assert "'axolotl' instead of 'axolottl'" in answer["notice"]


def test_a_misspelt_answer_is_less_sure(notes: Http) -> None:
    right, wrong = (notes.search(word, mode="fts")["results"][0]["score"] for word in ("zirconium", "zirkonium"))
    assert wrong < right
