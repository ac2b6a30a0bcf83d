"""`kb add`: files, folders and globs, one outcome per file and a summary.

Every file ends in an outcome, also one that could not be read here; the exit code is that of the first failure. A file
that has not changed since it was added is recognised by its path, size and hash, and not sent again.
"""

import argparse
import os
from typing import TYPE_CHECKING

from kb.cli.options import Commands, add_no_wait, add_replacing, add_tags, command, connect
from kb.core.errors import InvalidRequest
from kb.core.types import Json

if TYPE_CHECKING:
    from kb.cli.find import FoundFile
    from kb.cli.outcomes import Report, Task, TaskOutcome
    from kb.cli.transport import SocketClient

EXAMPLES = """
kb add report.pdf
kb add ~/Documents/handbook notes.md --tags work,2026
kb add "papers/**/*.pdf" --tags papers
kb add scans --force-ocr --no-wait --json
"""
BLOCK = 2**20


def register(commands: Commands) -> None:
    parser = command(commands, "add", run, EXAMPLES)
    parser.add_argument(
        "paths",
        metavar="PATH",
        nargs="+",
        help="a file, a folder or a quoted glob; in folders, hidden files and what .gitignore names are left out",
    )
    add_tags(parser, "tags of every added file; repeatable, separated by commas")
    add_replacing(parser)
    parser.add_argument("--title", metavar="TITLE", help="title, when a single file is added")
    parser.add_argument("--force-ocr", action="store_true", help="read pages by OCR even where they have text")
    parser.add_argument("--no-ignore", action="store_true", help="take what .gitignore names too")
    add_no_wait(parser)


def run(args: argparse.Namespace) -> int:
    from kb.cli.find import find
    from kb.cli.outcomes import Report

    found = list(find(args.paths, ignore=not args.no_ignore))
    if args.title and len(found) != 1:
        raise InvalidRequest(f"--title is for a single file, but {len(found)} were found.")
    report = Report("file", len(found), as_json=args.json)
    adder = Adder(connect(), args, report)
    return report.run(adder.task(one) for one in found)


class Adder:
    def __init__(self, client: "SocketClient", args: argparse.Namespace, report: "Report") -> None:
        self.client = client
        self.args = args
        self.report = report
        self._quiet: bool | None = None

    def task(self, found: "FoundFile") -> "Task":
        from kb.cli.outcomes import Task, TaskOutcome

        about = {"path": found.path, "source_path": os.path.realpath(found.path)}

        def act() -> "TaskOutcome":
            if found.error:
                raise found.error
            if found.empty:
                return TaskOutcome(found.path, "skipped", "it is empty", about | {"status": "skipped"})
            return self._added(about)

        return Task(found.path, about, act)

    def _added(self, about: Json) -> "TaskOutcome":
        from kb.cli.outcomes import TaskOutcome, not_done

        path = about["path"]
        held = self._unchanged(about)
        answer = self._sent(about) if held is None else _known(held)
        named = about | answer
        if answer["status"] in ("failed", "cancelled"):
            return not_done(path, named)
        if answer["status"] != "completed":
            return TaskOutcome(path, "queued", f"job {answer['job_id']}", named)
        state, document_id = answer["outcome"], answer["document_id"]
        if state == "unchanged":
            return TaskOutcome(path, state, f"already document {document_id}", named)
        return TaskOutcome(path, state, "" if self.args.json else self._described(document_id), named)

    def _unchanged(self, about: Json) -> int | None:
        """The document with exactly this file and these tags; None if the file has to be sent."""
        if self.args.title or self.args.force_ocr:
            return None
        found = self.client.documents(source_path=about["source_path"], limit=1)["documents"]
        if not found or not self._has_tags(found[0]["tags"]) or not self._nothing_waits():
            return None
        held: Json = found[0]
        return int(held["id"]) if held["doc_type"] != "note" and _has(about["path"], held) else None

    def _has_tags(self, held: list[str]) -> bool:
        given = self.args.tags or []
        return given == held if self.args.replace_tags else set(given) <= set(held)

    def _nothing_waits(self) -> bool:
        """Whether no job waits or runs that could change a document; the engine is asked once."""
        if self._quiet is None:
            queue = self.client.status()["queue"]
            self._quiet = not queue["queued"] and not queue["running"]
        return self._quiet

    def _sent(self, about: Json) -> Json:
        from kb.cli.follow import WAIT_SECONDS, followed

        path = about["path"]

        def tell(job: Json) -> None:
            self.report.step(path, job["current_step"] or job["status"], job["progress"])

        self.report.step(path, "sending", 0.0)
        # Where a person watches, the answer comes early and the job's progress is shown.
        patience = 1 if self.report.screen.terminal else WAIT_SECONDS
        answer = self.client.add_file(
            path,
            title=self.args.title,
            tags=self.args.tags,
            source_path=about["source_path"],
            force_ocr=self.args.force_ocr or None,
            replace_tags=self.args.replace_tags or None,
            force=self.args.force or None,
            wait=0 if self.args.no_wait else patience,
        )
        return answer if self.args.no_wait else followed(self.client, answer, tell)

    def _described(self, document_id: int) -> str:
        """The outcome of a file, with the parts that could not be read."""
        from kb.cli.screen import plural

        document = self.client.document(document_id, max_chunks=0)
        detail = f"document {document_id}, {plural(document['chunk_count'], 'passage')}"
        lost = [entry for entry in document["ledger"] if entry["state"] == "failed"]
        if lost:
            parts = ", ".join(f"{entry['part']} ({entry['reason']})" for entry in lost)
            detail += f"; could not be read: {parts}"
        return detail


def _known(document_id: int) -> Json:
    """The answer about a file that was not sent, as the engine would give it."""
    known: Json = {"job_id": None, "status": "completed", "document_id": document_id, "duplicate_of": document_id}
    return known | {"outcome": "unchanged"}


def _has(path: str, held: Json) -> bool:
    """Whether the file has the bytes of the document; False if it cannot be read, as sending it reports why."""
    import hashlib

    digest = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_size != held["size_bytes"]:
                return False
            while block := file.read(BLOCK):
                digest.update(block)
    except OSError:
        return False
    return bool(digest.hexdigest() == held["content_hash"])
