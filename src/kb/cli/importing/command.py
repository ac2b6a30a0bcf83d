"""`kb import`: an archive of `kb export`, Markdown with front matter, and the exports of other programs."""

import argparse
import os
from typing import TYPE_CHECKING

from kb.cli.options import Commands, add_tags, command, connect
from kb.core.errors import InvalidRequest
from kb.core.types import Json

if TYPE_CHECKING:
    from kb.cli.find import FoundFile
    from kb.cli.importing.sender import Sender
    from kb.cli.outcomes import Task, TaskOutcome
    from kb.cli.transport import SocketClient

EXAMPLES = """
kb import everything.tar
kb import ~/vault --tags vault
kb import chatgpt-export.zip --tags chatgpt
kb import ~/.claude/projects
kb import memories.json --json
"""
MARKDOWN = (".md", ".markdown")
DATES = ("created", "created_at", "date")  # in front matter


def register(commands: Commands) -> None:
    parser = command(commands, "import", run, EXAMPLES)
    parser.add_argument(
        "source",
        metavar="SOURCE",
        help="an archive of `kb export`; Markdown, as a file or a folder (a vault, a basic-memory project); an export "
        "of ChatGPT, Claude or mem0; or sessions of Claude Code",
    )
    add_tags(parser, "tags of all that comes in, but for an archive of `kb export`; repeatable, separated by commas")
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
    from kb.cli.importing.exports import EXPORTS

    if os.path.isdir(args.source) or args.source.lower().endswith(MARKDOWN):
        return _import_files(args)
    if args.source.lower().endswith(EXPORTS):
        return _import_export(args)
    return _import_archive(args)


def _import_archive(args: argparse.Namespace) -> int:
    from kb.cli.importing.exported import opened
    from kb.cli.importing.importer import Importer
    from kb.cli.outcomes import Report

    if args.tags:
        raise InvalidRequest("--tags is not for an archive of kb export: its documents have their own.")
    if args.replace_tags:
        raise InvalidRequest("--replace-tags is not for an archive of kb export: its tags are added.")
    with opened(args.source) as archive:
        importer = Importer(connect(), force=args.force)
        report = Report("document", archive.count(), as_json=args.json)
        code = report.run(importer.task(document, archive) for document in archive.documents())
        if len(report.outcomes) == archive.count():  # not interrupted
            importer.tidy()
        return code


def _import_export(args: argparse.Namespace) -> int:
    from kb.cli.importing.exports import read
    from kb.cli.outcomes import Report

    found = read(args.source)
    sender = _sender(args)
    report = Report("document", len(found), as_json=args.json)
    return report.run(sender.task(one) for one in found)


def _import_files(args: argparse.Namespace) -> int:
    """Markdown files as notes, and sessions of Claude Code as conversations."""
    from kb.cli.find import find
    from kb.cli.importing.exports import SESSION
    from kb.cli.outcomes import Report

    found = [one for one in find([args.source]) if one.error or one.path.lower().endswith((*MARKDOWN, SESSION))]
    sessions = [one for one in found if not one.error and one.path.lower().endswith(SESSION)]
    sender = _sender(args)
    tasks = [_task(sender.client, one, args) for one in found if one not in sessions]
    tasks += [_session_task(sender, one.path) for one in sessions]
    return Report("file", len(tasks), as_json=args.json).run(tasks)


def _session_task(sender: "Sender", path: str) -> "Task":
    from kb.cli.importing.exports import read
    from kb.cli.outcomes import Task

    about = {"path": path}

    def act() -> "TaskOutcome":
        (conversation,) = read(path)
        outcome = sender.task(conversation).act()
        return outcome._replace(answer=about | outcome.answer)

    return Task(path, about, act)


def _sender(args: argparse.Namespace) -> "Sender":
    from kb.cli.importing.sender import Sender

    return Sender(connect(), args.tags, replace_tags=args.replace_tags, force=args.force)


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
    if not text.strip():
        return TaskOutcome(path, "skipped", "there is no text in it", about | {"status": "skipped"})
    title = str(fields.pop("title", None) or os.path.splitext(os.path.basename(path))[0])
    own = tags_of(fields.pop("tags", None) or fields.pop("tag", None))
    accepted = client.add_note(
        text,
        title=title,
        tags=list(dict.fromkeys([*own, *(args.tags or [])])),
        source_path=about["source_path"],
        metadata=fields,
        created_at=_created_at(fields, path),
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


def _created_at(fields: Json, path: str) -> str | None:
    """When a note was written: as its front matter says, else when its file was changed last."""
    from kb.cli.importing.conversation import moment

    said = next((found for name in DATES if (found := moment(fields.get(name)))), None)
    return said or moment(os.path.getmtime(path))


def _read(path: str) -> tuple[Json, str]:
    from kb.cli.importing.frontmatter import split

    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            return split(file.read())
    except OSError as wrong:
        raise InvalidRequest(f"{path} cannot be read: {wrong.strerror}.") from wrong
    except ValueError as wrong:  # not UTF-8, or no valid front matter
        raise InvalidRequest(f"{path} cannot be understood: {wrong}.") from wrong
