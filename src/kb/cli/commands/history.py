"""`kb history` and `kb revert`: the versions of a note, and going back to one."""

import argparse
import sys

from kb.cli.options import Commands, command, connect, print_json
from kb.core.errors import NotFound
from kb.core.types import Json

HISTORY_EXAMPLES = """
kb history 42
kb history 42 3
"""
REVERT_EXAMPLES = """
kb revert 42 3
"""


def register(commands: Commands) -> None:
    parser = command(commands, "history", history, HISTORY_EXAMPLES)
    parser.add_argument("id", metavar="ID", help="number or uid of the note")
    parser.add_argument("version", metavar="VERSION", nargs="?", type=int, help="show what this version changed")

    parser = command(commands, "revert", revert, REVERT_EXAMPLES)
    parser.add_argument("id", metavar="ID", help="number or uid of the note")
    parser.add_argument("version", metavar="VERSION", type=int, help="the version whose text it gets")


def history(args: argparse.Namespace) -> int:
    answer = connect().note_versions(args.id)
    if args.json:
        print_json(answer)
    elif args.version is None:
        _list(answer["versions"])
    else:
        _show_change(answer["versions"], args.id, args.version)
    return 0


def _list(versions: list[Json]) -> None:
    from kb.cli.moments import ago
    from kb.cli.screen import Screen

    screen = Screen(sys.stdout)
    when = ago if screen.terminal else str
    screen.table(
        ("VERSION", "CREATED", "CHARACTERS", "TEXT"),
        [(one["version"], when(one["created_at"]), len(one["text"]), one["text"]) for one in versions],
    )


def _show_change(versions: list[Json], note: str, number: int) -> None:
    """The lines that a version took away and added, as `diff -u` shows them."""
    from difflib import unified_diff

    from kb.cli.screen import Screen, escaped

    texts = {one["version"]: one["text"] for one in versions}
    if number not in texts:
        raise NotFound(f"Note {note} has no version {number}. List them with: kb history {note}")
    before, after = texts.get(number - 1, ""), texts[number]
    screen = Screen(sys.stdout)
    names = f"version {number - 1}", f"version {number}"
    for line in unified_diff(before.splitlines(), after.splitlines(), *names, lineterm=""):
        colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[0])
        screen.say(screen.style(escaped(line), colour) if colour else escaped(line))


def revert(args: argparse.Namespace) -> int:
    document = connect().restore_note(args.id, args.version)
    if args.json:
        print_json(document)
    else:
        print(f"Note {document['id']} has the text of version {args.version} again, as version {document['version']}.")
    return 0
