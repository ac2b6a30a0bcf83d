"""`kb doctor` and `kb duplicates`: what is wrong, and what is said twice."""

import argparse
import sys

from kb.cli.options import Commands, command, connect, print_json

DOCTOR = """
kb doctor
kb doctor --fix
"""
DUPLICATES = """
kb duplicates
kb duplicates --min-similarity 0.95 --limit 20
"""


def register(commands: Commands) -> None:
    parser = command(commands, "doctor", doctor, DOCTOR)
    parser.add_argument("--fix", action="store_true", help="mend what can be mended; no document is ever deleted")
    parser = command(commands, "duplicates", duplicates, DUPLICATES)
    parser.add_argument("--min-similarity", type=float, metavar="S", help="leave out pairs below it, 0 to 1 (0.9)")
    parser.add_argument("--limit", type=int, metavar="N", help="how many pairs at most (100)")


def doctor(args: argparse.Namespace) -> int:
    """Exits 1 while something is wrong, so that a script notices."""
    from kb.cli.screen import Screen, one_line

    found = connect().doctor(fix=args.fix)
    if args.json:
        print_json(found)
    else:
        screen = Screen(sys.stdout)
        widest = max(len(check["name"]) for check in found["checks"])
        for check in found["checks"]:
            mark = screen.style("ok", "green") if check["ok"] else screen.style("!!", "red")
            mended = f" ({check['fixed']} mended)" if check["fixed"] else ""
            screen.say(f"{mark}  {check['name']:<{widest}}  {one_line(check['message'])}{mended}")
        if not found["healthy"] and not args.fix:
            screen.say("Mend what can be mended with: kb doctor --fix")
    return 0 if found["healthy"] else 1


def duplicates(args: argparse.Namespace) -> int:
    from kb.cli.screen import Screen

    found = connect().duplicates(min_similarity=args.min_similarity, limit=args.limit)
    if args.json:
        print_json(found)
        return 0
    screen = Screen(sys.stdout)
    rows = [
        (f"{pair['similarity']:.3f}", pair["a"]["id"], pair["a"]["title"], pair["b"]["id"], pair["b"]["title"])
        for pair in found["duplicates"]
    ]
    if rows:
        screen.table(("similarity", "id", "title", "id", "title"), rows)
    else:
        screen.say("No two notes say nearly the same.")
    return 0
