"""Times as kb writes them: ISO 8601, UTC, milliseconds, `Z`. Text in this form sorts like the time it names."""

from datetime import UTC, datetime

from kb.core.errors import InvalidRequest


def now() -> str:
    return stamp(datetime.now(UTC))


def stamp(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse(text: str) -> datetime:
    """A time that kb wrote."""
    return datetime.fromisoformat(text)


def given(name: str, text: str) -> str:
    """A day or a moment from a request, in kb's form; without a zone it is UTC."""
    try:
        moment = datetime.fromisoformat(text)
        return stamp(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
    except (ValueError, OverflowError) as wrong:
        raise InvalidRequest(
            f"{name} is {text!r}; use a date (2026-01-31) or a time (2026-01-31T12:00:00Z)."
        ) from wrong


def seconds_between(start: str, end: str) -> float:
    return (parse(end) - parse(start)).total_seconds()
