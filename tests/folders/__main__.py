"""`make folders`. Exit code 1 when the index is not what one made from scratch is, or a document lost its id."""

import argparse
import random
import sys

from folders.run import run


def main() -> int:
    parser = argparse.ArgumentParser(prog="folders", description=__doc__)
    parser.add_argument("--seed", type=int, help="a run with the same seed changes files alike; random unless given")
    parser.add_argument("--operations", type=int, default=10_000)
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--questions", type=int, default=200)
    given = parser.parse_args()
    seed = random.randrange(10**6) if given.seed is None else given.seed
    sys.stdout.write(f"seed {seed}\n")
    sys.stdout.flush()
    outcome = run(seed, given.operations, given.files, given.kills, given.questions)
    sys.stdout.write(f"{outcome}\n")
    return 1 if outcome.violations else 0


if __name__ == "__main__":
    sys.exit(main())
