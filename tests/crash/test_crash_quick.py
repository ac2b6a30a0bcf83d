"""A small run of `make crash` with a fixed seed; the large one finds more."""

from crash.run import run


def test_what_was_acknowledged_survives_kills_and_no_change_is_ever_half_done() -> None:
    outcome = run(seed=3, kills=3, notes=60, files=10, changes=40)
    assert outcome.journal.violations == [], str(outcome)
    assert outcome.kills == 3
    assert outcome.journal.acknowledged == outcome.requested
