"""Times for people: short, and never in the future."""

from datetime import UTC, datetime

import pytest

from kb.cli.moments import ago

NOW = datetime(2026, 11, 18, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("moment", "words"),
    [
        ("2026-11-18T12:00:00.000Z", "now"),
        ("2026-11-18T12:00:09.000Z", "now"),  # the engine's clock is ahead
        ("2026-11-18T11:59:01.000Z", "59 s ago"),
        ("2026-11-18T11:55:00.000Z", "5 min ago"),
        ("2026-11-18T01:00:00.000Z", "11 h ago"),
        ("2026-11-08T12:00:00.000Z", "10 d ago"),
        ("2026-10-08T12:00:00.000Z", "08 Oct"),
        ("2025-10-08T12:00:00.000Z", "08 Oct 2025"),
    ],
)
def test_a_moment_is_told_by_its_distance(moment: str, words: str) -> None:
    assert ago(moment, NOW) == words
