"""The limits of metadata: 32 levels, 64 KB; what a file brings is cut to it, what is stored beyond it is not shown."""

import json

import pytest

from kb.core.metadata import MAX_BYTES, MAX_DEPTH, OMITTED, excess, fitted, read, shown, size_of
from kb.core.types import Json
from kb.mcp.budget import SEARCH_BYTES, compact, fitting


def nested(levels: int) -> Json:
    value: Json = {}
    for _ in range(levels - 1):
        value = {"in": value}
    return value


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        ({}, None),
        ({"a": ["b", {"c": None}]}, None),
        (nested(MAX_DEPTH), None),
        (nested(MAX_DEPTH + 1), "32 levels"),
        ({"a": nested(MAX_DEPTH)}, "32 levels"),
        (nested(100_000), "32 levels"),
        ({"a": "x" * (MAX_BYTES - 8)}, None),
        ({"a": "x" * (MAX_BYTES - 7)}, "larger than 64 KB as JSON, by 1 byte"),
        ({"a": "猫" * (MAX_BYTES // 3)}, "bytes"),
    ],
    ids=["none", "plain", "deepest", "deeper", "deeper inside", "very deep", "largest", "larger", "larger in UTF-8"],
)
def test_what_is_too_deep_or_too_large_is_said(metadata: Json, words: str | None) -> None:
    said = excess(metadata)
    assert (said is None) == (words is None)
    assert words is None or (said and words in said)


def test_what_a_file_says_about_itself_is_cut_to_what_fits_and_names_the_rest() -> None:
    found = fitted({"author": "Ada", "keywords": "x" * MAX_BYTES, "deep": nested(40), "year": 1843})
    assert (found["author"], found["year"]) == ("Ada", 1843)
    assert found[OMITTED] == "Left out, since it is too large: keywords, deep"
    assert excess(fitted({str(number): "x" * 500 for number in range(1000)})) is None
    assert fitted({"author": "Ada"}) == {"author": "Ada"}


def test_stored_metadata_is_shown_unless_it_is_beyond_the_limits() -> None:
    helds: list[Json] = [{}, {"a": 1}, {"a": [[]] * 100}, nested(MAX_DEPTH)]
    for held in helds:
        assert shown(json.dumps(held)) == held
    for beyond in (
        json.dumps(nested(260)),
        '{"a": ' + "[" * 100_000 + "]" * 100_000 + "}",
        json.dumps({"a": "x" * 10**6}),
    ):
        assert read(beyond) is None
        assert list(shown(beyond)) == [OMITTED]
        assert size_of(shown(beyond)) < 300


def test_metadata_counts_in_the_size_of_an_answer() -> None:
    results: list[Json] = [{"text": "short", "metadata": {"format": "pdf", "much": "x" * 60_000}} for _ in range(3)]
    kept = fitting(results)
    assert len(kept) == 1
    assert kept[0]["metadata"]["format"] == "pdf"
    assert len(compact(kept)) < SEARCH_BYTES // 2
