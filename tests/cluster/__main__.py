"""`make cluster`. Exit code 1 when anything acknowledged is lost, or a figure is not reached."""

import argparse
import random
import sys
from collections.abc import Callable

from cluster import figures, patroni, trial
from cluster.faults import schedule
from cluster.network import missing
from cluster.trial import say

WRITE_SECONDS = 5  # after a promotion, a write is acknowledged
PARTS = ("faults", "reads", "restarts", "scale", "cost", "patroni")


def main() -> int:
    parser = argparse.ArgumentParser(prog="cluster", description=__doc__)
    parser.add_argument("--part", choices=PARTS, action="append", help="only this; may be repeated; all unless given")
    parser.add_argument(
        "--seed", type=int, help="a run with the same seed writes and strikes alike; random unless given"
    )
    parser.add_argument("--engines", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=20, help="how often an engine is killed")
    parser.add_argument("--failovers", type=int, default=10)
    parser.add_argument("--others", type=int, default=4, help="frozen standbys and engines that are cut off")
    parser.add_argument("--searches", type=int, default=10_000, help="through other engines than the one that wrote")
    parser.add_argument("--seconds", type=float, default=20, help="of each measurement of searches a second")
    given = parser.parse_args()
    if reason := missing():
        say(f"make cluster cannot run here: {reason}")
        return 1
    seed = random.randrange(10**6) if given.seed is None else given.seed
    say(f"seed {seed}")
    parts = given.part or PARTS
    good = True
    if "faults" in parts:
        faults = schedule(seed, given.rounds, given.failovers, given.others)
        good = tried(trial.run(seed, given.engines, faults), WRITE_SECONDS)
    if "patroni" in parts:
        if reason := patroni.missing():
            say(f"PATRONI WAS NOT TRIED: {reason}")
        else:
            outcome = trial.run(seed, given.engines, [patroni.the_leader_dies], patroni.Watched)
            good = tried(outcome, patroni.SECONDS) and good
    others: dict[str, Callable[[], bool]] = {
        "reads": lambda: figures.reads(given.searches),
        "restarts": figures.restarts,
        "scale": lambda: figures.scale(given.seconds),
        "cost": figures.cost,
    }
    for part, run in others.items():
        if part in parts:
            good = run() and good
    return 0 if good else 1


def tried(outcome: trial.Outcome, seconds: float) -> bool:
    """Whether nothing was lost, and writes went on within these seconds."""
    say(str(outcome))
    return not outcome.journal.violations and max(outcome.until_written, default=0) <= seconds


if __name__ == "__main__":
    sys.exit(main())
