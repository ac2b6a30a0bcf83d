"""Times sort as text, whatever the year, and are always UTC."""

import pytest

from kb.core.errors import InvalidRequest
from kb.core.times import given, now, parse, seconds_between


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("2026-01-31", "2026-01-31T00:00:00.000Z"),
        ("2026-01-31T12:00:00Z", "2026-01-31T12:00:00.000Z"),
        ("2026-01-31T12:00:00.123456+02:00", "2026-01-31T10:00:00.123Z"),
        ("0500-01-01", "0500-01-01T00:00:00.000Z"),
    ],
)
def test_what_is_typed_becomes_utc(typed: str, kept: str) -> None:
    assert given("created_after", typed) == kept


@pytest.mark.parametrize("typed", ["yesterday", "", "2026-13-01", "0001-01-01T00:00:00+14:00"])
def test_what_is_no_time_is_refused_by_name(typed: str) -> None:
    with pytest.raises(InvalidRequest, match="created_after"):
        given("created_after", typed)


def test_now_is_what_kb_can_read_again() -> None:
    first = now()
    assert seconds_between(first, now()) >= 0
    assert parse(first).tzinfo is not None
