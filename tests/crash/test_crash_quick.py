"""A small run of `make crash` with a fixed seed; the large one finds more."""

from crash.run import run
from postgres import PostgresServer


def test_what_was_acknowledged_survives_kills_and_no_change_is_ever_half_done() -> None:
    outcome = run(seed=3, kills=3, notes=60, files=10, changes=40)
    assert outcome.journal.violations == [], str(outcome)
    assert outcome.kills == 3
    assert outcome.journal.acknowledged == outcome.requested


def test_the_same_is_true_where_the_database_server_is_killed_too() -> None:
    server = PostgresServer()
    try:
        outcome = run(seed=5, kills=2, notes=30, files=6, changes=20, server=server, outages=2)
    finally:
        server.close()
    assert outcome.journal.violations == [], str(outcome)
    assert (outcome.kills, outcome.outages) == (2, 2)
    assert outcome.journal.acknowledged == outcome.requested
