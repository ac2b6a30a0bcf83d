"""`kb backup`, `kb restore` and `kb export`."""

import argparse
import os

from kb.cli.options import Commands, Parser, command, connect, installed, print_json
from kb.core.errors import Conflict
from kb.core.types import Json

BACKUP = """
kb backup kb-2026-01-31.tar
kb backup /media/disk/kb.tar --force
"""
RESTORE = """
kb restore kb-2026-01-31.tar
kb restore kb-2026-01-31.tar --data-dir ~/kb-copy
kb restore kb-2026-01-31.tar --force
"""
EXPORT = """
kb export everything.tar
tar -xOf everything.tar documents.jsonl | head -1
"""


def register(commands: Commands) -> None:
    for name, run, examples in (("backup", backup, BACKUP), ("export", export, EXPORT)):
        parser = command(commands, name, run, examples)
        parser.add_argument("file", metavar="FILE", help="the archive to write")
        _add_force(parser, "write over FILE if it is there")
    parser = command(commands, "restore", restore, RESTORE)
    parser.add_argument("file", metavar="FILE", help="an archive of `kb backup`")
    parser.add_argument("--data-dir", metavar="DIR", help="the folder to make (default: KB_DATA_DIR)")
    _add_force(parser, "replace what the folder holds")


def _add_force(parser: Parser, text: str) -> None:
    parser.add_argument("--force", action="store_true", help=text)


def backup(args: argparse.Namespace) -> int:
    _make_room(args)
    answer = connect().backup(args.file)
    lacking = _lacking(args.file)
    _saved(args, answer | lacking)
    if not args.json:
        for sentence in lacking["damage"]:
            print(f"The database holds damage, which `kb doctor` names: {sentence}")
        for reason in ("missing", "damaged"):
            if lacking[reason]:
                print(
                    f"{len(lacking[reason])} originals are {reason} and not in it; `kb doctor` names their documents."
                )
    return 1 if lacking["damage"] or lacking["damaged"] else 0


def export(args: argparse.Namespace) -> int:
    _make_room(args)
    answer = connect().export(args.file)
    unreadable = _unreadable(args.file)
    _saved(args, answer | {"unreadable": unreadable})
    if unreadable and not args.json:
        print(f"The database is damaged. What could not be read and is not in it: {', '.join(unreadable[:20])}.")
    return 1 if unreadable else 0


def _unreadable(path: str) -> list[str]:
    """What the engine could not read, as the export itself says."""
    import tarfile

    with tarfile.open(path) as tar:
        file = tar.extractfile("unreadable.txt") if "unreadable.txt" in tar.getnames() else None
        return file.read().decode().splitlines() if file else []


def _lacking(path: str) -> Json:
    """What the engine could not put into a backup, or put in damaged, as its manifest says."""
    import json
    import tarfile

    with tarfile.open(path) as tar:
        file = tar.extractfile("manifest.json")
        manifest = json.load(file) if file else {}
    return {name: manifest.get(name, []) for name in ("missing", "damaged", "damage")}


def _make_room(args: argparse.Namespace) -> None:
    if os.path.exists(args.file) and not args.force:
        raise Conflict(f"{args.file} is there already. Name another file, or write over it with --force.")


def _saved(args: argparse.Namespace, answer: Json) -> None:
    if args.json:
        print_json(answer)
    else:
        from kb.core.sizes import readable_size

        print(f"Saved {answer['path']} ({readable_size(answer['bytes'])}).")


def restore(args: argparse.Namespace) -> int:
    import shlex
    from dataclasses import asdict
    from pathlib import Path

    from kb.core.settings import read

    settings = read()
    folder = Path(args.data_dir).expanduser().absolute() if args.data_dir else settings.data_dir
    with installed("Restoring", "engine"):
        from kb.store.backup.restore import restore as put_back
        from kb.store.backup.restore_into import restore_into
    if settings.uses_postgres and not args.data_dir:
        done = restore_into(Path(args.file), settings, force=args.force)
        where = f"The knowledge base {settings.name!r} in PostgreSQL"
    else:
        done = put_back(Path(args.file), folder, force=args.force)
        where = str(folder)
    if args.json:
        print_json(asdict(done) | {"data_dir": str(folder)})
    else:
        start = f"kb serve --data-dir {shlex.quote(str(folder))}" if args.data_dir else "kb serve"
        print(f"{where} is as it was on {done.created_at}, with {done.originals} originals. Start it with: {start}")
        if done.missing:
            print(f"{done.missing} originals were not there when the backup was made; their text is.")
        if done.damaged:
            ids = ", ".join(map(str, done.damaged))
            print(f"The originals of documents {ids} are damaged in the backup and were left out; their text is there.")
        for sentence in done.damage:
            print(f"The database holds damage, which `kb doctor` names: {sentence}")
        if args.force and where == str(folder):
            print(f"What was there before is in {folder / 'replaced'} until the engine has started with this.")
    return 0
