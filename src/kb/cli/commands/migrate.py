"""`kb migrate`."""

import argparse

from kb.cli.options import Commands, command, installed, print_json

EXAMPLES = """
kb migrate --to postgresql://kb@db.example.org/kb
KB_DATABASE_URL=postgresql://localhost/kb kb migrate --to sqlite:////srv/kb.db
"""


def register(commands: Commands) -> None:
    parser = command(commands, "migrate", migrate, EXAMPLES)
    parser.add_argument("--to", metavar="URL", required=True, help="the database to fill, as KB_DATABASE_URL names it")
    parser.add_argument("--force", action="store_true", help="replace what is there")


def migrate(args: argparse.Namespace) -> int:
    from dataclasses import asdict

    from kb.core.settings import read

    with installed("Moving", "engine"):
        from kb.engine.migration import migrate as moved
    done = moved(read(), args.to, force=args.force)
    if args.json:
        print_json(asdict(done))
        return 1 if done.moved.missing else 0
    rows = ", ".join(f"{count} {table}" for table, count in done.moved.rows.items() if count)
    print(f"{done.target} holds what {done.source} holds: {rows or 'nothing'}, {done.moved.originals} originals.")
    print(f"Every row was compared, and {done.searches} searches found the same. The old database is as it was.")
    if done.moved.missing:
        print(f"{len(done.moved.missing)} originals are missing or damaged and were left out; `kb doctor` names them.")
    print("Set KB_DATABASE_URL to the new one, and start the engine.")
    return 1 if done.moved.missing else 0
