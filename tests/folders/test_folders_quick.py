"""A small run of `make folders`."""

from folders.run import run


def test_after_many_changes_and_kills_the_index_is_one_made_from_scratch() -> None:
    outcome = run(seed=7, operations=300, files=60, kills=2, questions=20)
    assert not outcome.violations, str(outcome)
    assert outcome.kept > 20
