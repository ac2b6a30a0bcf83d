"""`kb watch`, `kb unwatch`: folders that the engine keeps in step with the disk.

The engine does the work, so it goes on when the terminal is closed. The paths are those of the engine's machine.
"""

import argparse
import os
import sys
from typing import TYPE_CHECKING

from kb.cli.options import Commands, add_tags, command, connect, print_json
from kb.core.errors import InvalidRequest, NotFound
from kb.core.types import Json

if TYPE_CHECKING:
    from kb.cli.screen import Screen
    from kb.cli.transport import SocketClient

WATCH_EXAMPLES = """
kb watch ~/Documents/vault --tags vault
kb watch ~/papers --include "*.pdf" --exclude "drafts/"
kb watch
kb watch --why
kb watch ~/papers --scan
"""
UNWATCH_EXAMPLES = """
kb unwatch ~/papers
kb unwatch 3 --remove-documents
"""


def register(commands: Commands) -> None:
    parser = command(commands, "watch", watch, WATCH_EXAMPLES)
    parser.add_argument("folders", metavar="FOLDER", nargs="*", help="a folder; without one, those watched are listed")
    add_tags(parser, "tags of every document that a file becomes; repeatable, separated by commas")
    for name, text in (("include", "take only files that match"), ("exclude", "leave out what matches")):
        parser.add_argument(
            f"--{name}", metavar="PATTERN", action="append", default=[], help=f"{text}, as in .gitignore; repeatable"
        )
    parser.add_argument("--ocr", action="store_true", help="read pages by OCR even where they have text")
    parser.add_argument("--why", action="store_true", help="name the files that are not indexed, and why")
    parser.add_argument("--scan", action="store_true", help="compare a watched folder with the disk now")
    parser.add_argument(
        "--confirm", action="store_true", help="scan, and remove the documents of all files that are missing"
    )

    parser = command(commands, "unwatch", unwatch, UNWATCH_EXAMPLES)
    parser.add_argument("folders", metavar="FOLDER", nargs="+", help="path or number of a watched folder")
    parser.add_argument("--remove-documents", action="store_true", help="remove what its files became, too")


def watch(args: argparse.Namespace) -> int:
    client = connect()
    if args.scan or args.confirm:
        if not args.folders:
            raise InvalidRequest("--scan and --confirm need a FOLDER; `kb watch` lists those that are watched.")
        answers = [client.scan_folder(_known(client, one)["id"], confirm=args.confirm) for one in args.folders]
        return _told(answers, args, "Scanning")
    if args.folders and not args.why:
        answers = [
            client.watch(
                os.path.realpath(one),
                tags=args.tags or (),
                include=args.include,
                exclude=args.exclude,
                ocr=args.ocr or None,
            )
            for one in args.folders
        ]
        return _told(answers, args, "Watching")
    found = [_known(client, one) for one in args.folders] if args.folders else client.folders()["folders"]
    if args.why:
        found = [client.folder(one["id"]) for one in found]
    return _listed(found, args)


def _told(folders: list[Json], args: argparse.Namespace, verb: str) -> int:
    from kb.cli.screen import one_line

    if args.json:
        print_json({"folders": folders})
    else:
        for folder in folders:
            print(one_line(f"{verb} {folder['path']} (folder {folder['id']}). `kb watch` shows how far it is."))
    return 0


def _listed(folders: list[Json], args: argparse.Namespace) -> int:
    if args.json:
        print_json({"folders": folders})
        return 0
    from kb.cli.screen import Screen

    if not folders:
        print("No folder is watched. Watch one with: kb watch FOLDER", file=sys.stderr)
        return 0
    screen = Screen(sys.stdout)
    screen.table(("ID", "STATE", "INDEXED", "WAITING", "FAILED", "IGNORED", "FOLDER"), [_row(one) for one in folders])
    for folder in folders:
        _explain(screen, folder)
    return 0


def _row(folder: Json) -> tuple[object, ...]:
    counted = folder["coverage"]
    wanted = counted["total"] - counted["ignored"]
    others = (counted["waiting"], counted["failed"], counted["ignored"])
    return folder["id"], folder["state"], f"{counted['indexed']} of {wanted}", *others, folder["path"]


def _explain(screen: "Screen", folder: Json) -> None:
    from kb.cli.screen import one_line

    if folder["message"]:
        screen.say()
        screen.say(screen.style(one_line(f"{folder['path']}: {folder['message']}"), "yellow"))
    if folder.get("files"):
        screen.say()
        files = [(one["state"], (one["reason"] or "").replace("_", " "), one["path"]) for one in folder["files"]]
        screen.table(("STATE", "WHY", f"IN {folder['path']}"), files)


def unwatch(args: argparse.Namespace) -> int:
    from kb.cli.screen import one_line, plural

    client = connect()
    found = [_known(client, one) for one in args.folders]  # a wrong one stops nothing
    answers = [client.unwatch(one["id"], documents="remove" if args.remove_documents else "keep") for one in found]
    if args.json:
        print_json({"folders": answers})
        return 0
    for one in answers:
        removed = f"{plural(one['documents_removed'], 'document')} removed"
        became = removed if args.remove_documents else "its documents stay"
        print(one_line(f"{one['path']} is watched no longer; {became}."))
    return 0


def _known(client: "SocketClient", given: str) -> Json:
    """The watched folder with this path or number."""
    paths = {given, os.path.realpath(given)}
    for folder in client.folders()["folders"]:
        if folder["path"] in paths or str(folder["id"]) == given:
            found: Json = folder
            return found
    raise NotFound(f"{given} is not watched. `kb watch` lists the folders that are.")
