"""Times for people: how long ago something was, or on which day."""

from datetime import UTC, datetime

from kb.core.times import parse

# What a moment is called up to this many seconds ago, and the unit that is counted.
STEPS = ((60, 1, "s"), (3600, 60, "min"), (86_400, 3600, "h"), (14 * 86_400, 86_400, "d"))
A_YEAR = 300 * 86_400  # or nearly: without the year, a date would be ambiguous


def ago(moment: str, now: datetime | None = None) -> str:
    """ "5 min ago"; what is older than two weeks has its date."""
    then = parse(moment)
    passed = max(((now or datetime.now(UTC)) - then).total_seconds(), 0)
    for limit, unit, name in STEPS:
        if passed < limit:
            return "now" if passed < 1 else f"{int(passed / unit)} {name} ago"
    local = then.astimezone()
    return f"{local:%d %b}" if passed < A_YEAR else f"{local:%d %b %Y}"


def day(moment: str) -> str:
    """ "18 Dec 2026", where this machine is."""
    return f"{parse(moment).astimezone():%d %b %Y}"
