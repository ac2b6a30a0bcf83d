"""`kb jobs`: what the engine is working on, what failed and why."""

import argparse
import sys
from typing import TYPE_CHECKING

from kb.cli.options import Commands, command, connect, print_json
from kb.core.errors import InvalidRequest
from kb.core.types import Json

if TYPE_CHECKING:
    from kb.cli.transport import SocketClient

EXAMPLES = """
kb jobs
kb jobs --status failed
kb jobs 0b0f6f0e --retry
"""

ID_CHARACTERS = 36
SHORT = 8  # characters of an id in a list
NEWEST = 1000  # jobs among which a shortened id is looked up


def register(commands: Commands) -> None:
    parser = command(commands, "jobs", run, EXAMPLES)
    parser.add_argument("id", metavar="ID", nargs="?", help="one job; the first characters of its id are enough")
    parser.add_argument("-s", "--status", metavar="S", help="queued, running, completed, failed or cancelled")
    parser.add_argument("-n", "--limit", type=int, metavar="N", help="how many at most")
    parser.add_argument("--offset", type=int, metavar="N", help="how many to leave out at the start")
    change = parser.add_mutually_exclusive_group()
    change.add_argument("--cancel", action="store_true", help="cancel the job ID")
    change.add_argument("--retry", action="store_true", help="run the failed or cancelled job ID again")


def run(args: argparse.Namespace) -> int:
    client = connect()
    if args.id is None:
        return _list(client, args)
    job_id = _whole_id(client, args.id)
    if args.cancel:
        job = client.cancel_job(job_id)
    elif args.retry:
        job = client.retry_job(job_id)
    else:
        job = client.job(job_id)
    if args.json:
        print_json(job)
    else:
        _show(job)
    return 0


def _whole_id(client: "SocketClient", start: str) -> str:
    """The id that begins like this, among the newest jobs. An unknown one is left for the engine to refuse."""
    if len(start) >= ID_CHARACTERS:
        return start
    found = [job["id"] for job in client.jobs(limit=NEWEST)["jobs"] if job["id"].startswith(start.lower())]
    if len(found) > 1:
        raise InvalidRequest(f"{len(found)} jobs begin with {start!r}. Give more characters of the id.")
    return found[0] if found else start


def _list(client: "SocketClient", args: argparse.Namespace) -> int:
    from kb.cli.commands.documents import tell_rest
    from kb.cli.moments import ago
    from kb.cli.screen import Screen

    if args.cancel or args.retry:
        raise InvalidRequest("--cancel and --retry need the ID of a job; see: kb jobs --help")
    answer = client.jobs(status=args.status, limit=args.limit, offset=args.offset)
    if args.json:
        print_json(answer)
        return 0
    screen = Screen(sys.stdout)
    # A person sees what fits a line; another program gets whole ids and exact times.
    short, when = (SHORT, ago) if screen.terminal else (None, str)
    screen.table(
        ("ID", "STATUS", "DONE", "CREATED", "WHAT"),
        [
            (job["id"][:short], job["status"], f"{job['progress']:.0%}", when(job["created_at"]), _what(job))
            for job in answer["jobs"]
        ],
    )
    tell_rest(len(answer["jobs"]), args.offset or 0, answer["total"], "job")
    return 0


def _what(job: Json) -> str:
    words = [job["filename"] or job["kind"]]
    if job["error"]:
        words.append(f"{job['error']['code']}: {job['error']['message']}")
    elif job["status"] == "running" and job["current_step"]:
        words.append(job["current_step"])
    return "  ".join(words)


def _show(job: Json) -> None:
    from kb.cli.screen import one_line

    for name, value in job.items():
        text = f"{value['code']}: {value['message']}" if isinstance(value, dict) else value
        if value is not None:
            print(f"{name.replace('_', ' '):<28} {one_line(text)}")
