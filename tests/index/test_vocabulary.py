"""Misspelt words find the term that was meant, within a bounded time."""

import random
import string

import pytest

from kb.index.vocabulary import edit_distance, signatures


@pytest.mark.parametrize(
    ("one", "other", "distance"),
    [
        ("heron", "heron", 0),
        ("heron", "herron", 1),
        ("heron", "hron", 1),
        ("heron", "haron", 1),
        ("heron", "hreon", 1),  # neighbours swapped
        ("heron", "hernia", 3),
        ("heron", "otter", 3),  # more than that is not counted
        ("zirkonium", "zirconium", 1),
        ("цапля", "цалпя", 1),
    ],
)
def test_the_distance_counts_edits_up_to_the_limit(one: str, other: str, distance: int) -> None:
    assert edit_distance(one, other, 2) == edit_distance(other, one, 2) == distance


def test_one_edit_changes_at_most_six_pairs() -> None:
    chance = random.Random(3)
    for _ in range(2000):
        word = "".join(chance.choices(string.ascii_lowercase, k=chance.randint(4, 12)))
        at = chance.randrange(len(word) - 1)
        other = chance.choice(
            [
                word[:at] + word[at + 1 :],
                word[:at] + chance.choice(string.ascii_lowercase) + word[at:],
                word[:at] + chance.choice(string.ascii_lowercase) + word[at + 1 :],
                word[:at] + word[at + 1] + word[at] + word[at + 2 :],
            ]
        )
        one, changed = signatures([word, other]).tolist()
        assert (one ^ changed).bit_count() <= 6
        assert edit_distance(word, other, 1) <= 1
