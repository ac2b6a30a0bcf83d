"""`make crash`. Exit code 1 when anything that was acknowledged is lost, there twice or half done."""

import argparse
import random
import sys

from crash.run import run
from postgres import PostgresServer


def main() -> int:
    parser = argparse.ArgumentParser(prog="crash", description=__doc__)
    parser.add_argument("--seed", type=int, help="a run with the same seed sends and kills alike; random unless given")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--notes", type=int, default=1000)
    parser.add_argument("--files", type=int, default=200)
    parser.add_argument("--changes", type=int, default=400, help="PATCH, tags, restore and delete")
    parser.add_argument("--postgres", action="store_true", help="store in a server of PostgreSQL, and kill that too")
    parser.add_argument("--outages", type=int, default=5, help="how often the server is killed")
    given = parser.parse_args()
    seed = random.randrange(10**6) if given.seed is None else given.seed
    sys.stdout.write(f"seed {seed}\n")
    sys.stdout.flush()
    server = PostgresServer() if given.postgres else None
    try:
        outages = given.outages if server else 0
        outcome = run(seed, given.kills, given.notes, given.files, given.changes, server, outages)
    finally:
        if server:
            server.close()
    sys.stdout.write(f"{outcome}\n")
    return 1 if outcome.journal.violations else 0


if __name__ == "__main__":
    sys.exit(main())
