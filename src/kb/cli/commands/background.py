"""`kb down` and `kb logs`: the other half of `kb up --detach`."""

import argparse
import sys

from kb.cli.options import Commands, command
from kb.core.errors import Conflict, NotFound

LOGS = """
kb logs
kb logs -f
kb logs --lines 500
"""


def register(commands: Commands) -> None:
    command(commands, "down", down, "\nkb down\n", json=False)
    parser = command(commands, "logs", logs, LOGS, json=False)
    parser.add_argument("-f", "--follow", action="store_true", help="go on with what is added, until Ctrl-C")
    parser.add_argument("--lines", metavar="N", type=int, default=50, help="how many of the last lines (default: 50)")


def down(_args: argparse.Namespace) -> int:
    """End exactly what `kb up --detach` started on this data folder."""
    from kb.cli.background import running
    from kb.core.settings import read

    data_dir = read().data_dir
    known = running.read(data_dir)
    if known is None:
        raise NotFound(f"No kb runs on {data_dir}. Another one has another KB_DATA_DIR.")
    if known.way == "service":
        raise Conflict("kb runs as a service, which would start it again. End it with: kb service remove")
    if known.way == "terminal":
        raise Conflict(f"kb runs in a terminal (process {known.supervisor.pid}): press Ctrl-C there.")
    ended = running.stop(known)
    print("kb has ended." if ended else "kb did not end in time and was killed. What was acknowledged is on the disk.")
    return 0


def logs(args: argparse.Namespace) -> int:
    from kb.cli.background import log
    from kb.cli.screen import escaped
    from kb.core.settings import read

    file = log.path(read().data_dir)
    text, end = log.tail(file, max(args.lines, 0))
    sys.stdout.write(escaped(text))
    if args.follow:
        for text in log.follow(file, end):
            sys.stdout.write(escaped(text))
    return 0
