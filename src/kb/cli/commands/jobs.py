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
kb jobs 0b0f6f0e-5f7c-4a55-9a6e-0f6b7f0a4a11 --retry
"""


def register(commands: Commands) -> None:
    parser = command(commands, "jobs", run, EXAMPLES)
    parser.add_argument("id", metavar="ID", nargs="?", help="one job")
    parser.add_argument("--status", metavar="S", help="queued, running, completed, failed or cancelled")
    parser.add_argument("--limit", type=int, metavar="N", help="how many at most")
    parser.add_argument("--offset", type=int, metavar="N", help="how many to leave out at the start")
    change = parser.add_mutually_exclusive_group()
    change.add_argument("--cancel", action="store_true", help="cancel the job ID")
    change.add_argument("--retry", action="store_true", help="run the failed or cancelled job ID again")


def run(args: argparse.Namespace) -> int:
    client = connect()
    if args.id is None:
        return _list(client, args)
    if args.cancel:
        job = client.cancel_job(args.id)
    elif args.retry:
        job = client.retry_job(args.id)
    else:
        job = client.job(args.id)
    if args.json:
        print_json(job)
    else:
        _show(job)
    return 0


def _list(client: "SocketClient", args: argparse.Namespace) -> int:
    from kb.cli.commands.documents import tell_rest
    from kb.cli.screen import Screen

    if args.cancel or args.retry:
        raise InvalidRequest("--cancel and --retry need the ID of a job; see: kb jobs --help")
    answer = client.jobs(status=args.status, limit=args.limit, offset=args.offset)
    if args.json:
        print_json(answer)
        return 0
    Screen(sys.stdout).table(
        ("ID", "STATUS", "DONE", "CREATED", "WHAT"),
        [(job["id"], job["status"], f"{job['progress']:.0%}", job["created_at"], _what(job)) for job in answer["jobs"]],
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
