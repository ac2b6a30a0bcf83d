"""`kb reindex`: rebuild the engine's index while it goes on answering."""

import argparse
import sys

from kb.cli.options import Commands, command, connect, print_json
from kb.core.types import Json

EXAMPLES = """
kb reindex
kb reindex --no-wait
"""


def register(commands: Commands) -> None:
    parser = command(commands, "reindex", run, EXAMPLES)
    parser.add_argument("--no-wait", action="store_true", help="return at once; `kb jobs` shows how far it is")


def run(args: argparse.Namespace) -> int:
    from kb.cli.follow import exit_code, followed, reason

    client = connect()
    answer = client.reindex()
    if not args.no_wait:
        answer = followed(client, answer, None if args.json else _tell)
    if args.json:
        print_json(answer)
    elif args.no_wait:
        print(f"Job {answer['job_id']} makes the index anew.")
    elif answer["status"] == "completed":
        print("The index is new.")
    else:
        print(f"kb: {reason(answer)}", file=sys.stderr)
    return exit_code(answer)


def _tell(job: Json) -> None:
    """Rewrite one progress line, on a terminal only."""
    if sys.stderr.isatty() and job["current_step"]:
        print(f"\r{job['current_step']}", end="", file=sys.stderr, flush=True)
