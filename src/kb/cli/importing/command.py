"""`kb import`: an archive of `kb export`, or a folder of Markdown with front matter."""

import argparse
import os
from typing import TYPE_CHECKING

from kb.cli.options import Commands, add_tags, command, connect
from kb.core.errors import InvalidRequest
from kb.core.types import Json

if TYPE_CHECKING:
    from kb.cli.find import FoundFile
    from kb.cli.outcomes import Task, TaskOutcome
    from kb.cli.transport import SocketClient

EXAMPLES = """
kb import everything.tar
kb import ~/vault --tags vault
kb import everything.tar --json
"""
MARKDOWN = (".md", ".markdown")


def register(commands: Commands) -> None:
    parser = command(commands, "import", run, EXAMPLES)
    parser.add_argument("source", metavar="SOURCE", help="an archive of `kb export`, a folder, or a Markdown file")
    add_tags(parser, "tags of every note that comes from Markdown; repeatable, separated by commas")
    parser.add_argument(
        "--replace-tags",
        action="store_true",
        help="replace the tags of a known note by those of its Markdown file (default: add them)",
    )
    parser.add_argument(
        "--force",
        action="store_true",
        help="replace notes that were edited in kb since; from an archive, whatever has other content at the same path",
    )


def run(args: argparse.Namespace) -> int:
    if os.path.isdir(args.source) or args.source.lower().endswith(MARKDOWN):
        return _import_markdown(args)
    return _import_archive(args)


def _import_archive(args: argparse.Namespace) -> int:
    from kb.cli.importing.exported import opened
    from kb.cli.importing.importer import Importer
    from kb.cli.outcomes import Report

    if args.tags:
        raise InvalidRequest("--tags is for a folder of Markdown: documents of an archive have their own.")
    if args.replace_tags:
        raise InvalidRequest("--replace-tags is for a folder of Markdown: tags of an archive are added.")
    with opened(args.source) as archive:
        importer = Importer(connect(), force=args.force)
        report = Report("document", archive.count(), as_json=args.json)
        return report.run(importer.task(document, archive) for document in archive.documents())


def _import_markdown(args: argparse.Namespace) -> int:
    from kb.cli.find import find
    from kb.cli.outcomes import Report

    found = [one for one in find([args.source]) if one.error or one.path.lower().endswith(MARKDOWN)]
    client = connect()
    report = Report("file", len(found), as_json=args.json)
    return report.run(_task(client, one, args) for one in found)


def _task(client: "SocketClient", found: "FoundFile", args: argparse.Namespace) -> "Task":
    from kb.cli.outcomes import Task

    path = found.path
    about = {"path": path, "source_path": os.path.realpath(path)}

    def act() -> "TaskOutcome":
        if found.error:
            raise found.error
        return _note(client, about, args)

    return Task(path, about, act)


def _note(client: "SocketClient", about: Json, args: argparse.Namespace) -> "TaskOutcome":
    """One file as a note: the path is its identity, so that importing again updates it."""
    from kb.cli.follow import WAIT_SECONDS, followed
    from kb.cli.importing.frontmatter import tags_of
    from kb.cli.outcomes import TaskOutcome, not_done

    path = about["path"]
    fields, text = _read(path)
    title = str(fields.pop("title", None) or os.path.splitext(os.path.basename(path))[0])
    own = tags_of(fields.pop("tags", None) or fields.pop("tag", None))
    accepted = client.add_note(
        text,
        title=title,
        tags=list(dict.fromkeys([*own, *(args.tags or [])])),
        source_path=about["source_path"],
        metadata=fields,
        replace_tags=args.replace_tags or None,
        force=args.force or None,
        wait=WAIT_SECONDS,
    )
    answer = followed(client, accepted)
    if answer["status"] != "completed":
        return not_done(path, about | answer)
    detail = f"document {answer['document_id']}"
    if answer["outcome"] == "kept":
        detail += " was edited in kb, and the file has not changed since (--force replaces the note)"
    return TaskOutcome(path, answer["outcome"], detail, about | answer)


def _read(path: str) -> tuple[Json, str]:
    from kb.cli.importing.frontmatter import split

    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            return split(file.read())
    except OSError as wrong:
        raise InvalidRequest(f"{path} cannot be read: {wrong.strerror}.") from wrong
    except ValueError as wrong:  # not UTF-8, or no valid front matter
        raise InvalidRequest(f"{path} cannot be understood: {wrong}.") from wrong
