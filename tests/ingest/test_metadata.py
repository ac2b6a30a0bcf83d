"""Metadata as text: every value with its name, and a bound on all of it."""

from typing import Any

import pytest

from kb.ingest.metadata import MAX_CHARACTERS, metadata_text


@pytest.mark.parametrize(
    ("metadata", "text"),
    [
        ({}, ""),
        ({"author": "Anna Berg", "year": 2026}, "author: Anna Berg\nyear: 2026"),
        ({"draft": False, "cost": 1.5}, "draft: false\ncost: 1.5"),
        ({"by": ["Anna", "Bert", None, ""]}, "by: Anna, Bert"),
        ({"nothing": None, "empty": [], "blank": "  "}, ""),
        ({"house": {"room": {"boiler": "Vaillant"}, "floor": 2}}, "house.room.boiler: Vaillant\nhouse.floor: 2"),
        ({"people": [{"name": "Anna"}, {"name": "Bert"}, "me"]}, "people: me\npeople.name: Anna\npeople.name: Bert"),
        ({"title": "The title", "note": "The title"}, "note: The title"),
        ({"title": "Another title"}, "title: Another title"),
        ({"nested": [["a"], [["b"]]]}, "nested: a\nnested: b"),
    ],
)  # fmt: skip
def test_values_with_their_names(metadata: dict[str, Any], text: str) -> None:
    assert metadata_text(metadata, "The title") == text


def test_it_is_bounded() -> None:
    deep: dict[str, Any] = {}
    inner = deep
    for _ in range(2000):
        inner["x" * 1000] = {}
        inner["y"] = "z" * 1000
        inner = inner["x" * 1000]
    text = metadata_text({"deep": deep, "many": [{"k" * 500: number} for number in range(10_000)]}, "")
    assert len(text) <= MAX_CHARACTERS
    assert "deep.y: zz" in text
