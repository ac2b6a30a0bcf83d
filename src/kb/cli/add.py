"""`kb add`: files and folders, one outcome per file and a summary.

Folders are walked in order, without hidden files and folders. Every file ends in a printed outcome, also one
that could not be read here; the exit code is that of the first failure.
"""

import argparse
import os
import stat
import sys
from typing import TYPE_CHECKING, NamedTuple

from kb.cli.options import add_no_wait, add_tags, command, connect, print_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kb.cli.options import Commands
    from kb.cli.screen import Screen
    from kb.cli.transport import Client
    from kb.errors import KBError
    from kb.nouns import Json

EXAMPLES = """
kb add report.pdf
kb add ~/Documents/handbook notes.md --tags work,2026
kb add scans --force-ocr --no-wait --json
"""


def register(commands: "Commands") -> None:
    parser = command(
        commands,
        "add",
        run,
        "Add files, or all files in folders, and wait until they can be found.",
        EXAMPLES,
    )
    parser.add_argument(
        "paths", metavar="PATH", nargs="+", help="a file, or a folder (hidden files and folders are left out)"
    )
    add_tags(parser, "tags of every added file; repeatable, separated by commas")
    parser.add_argument("--title", metavar="TITLE", help="title, when a single file is added")
    parser.add_argument("--force-ocr", action="store_true", help="read pages by OCR even where they have text")
    add_no_wait(parser)


def run(args: argparse.Namespace) -> int:
    from kb.cli.screen import Screen

    found = list(find(args.paths))
    if args.title and len(found) != 1:
        from kb.errors import InvalidRequest

        raise InvalidRequest(f"--title is for a single file, but {len(found)} were found.")
    adder = Adder(connect(), args, Screen(sys.stderr))
    outcomes = []
    for path, error in found:
        outcome = adder.failed(path, error) if error else adder.add(path)
        outcomes.append(outcome)
        if not args.json:
            report(outcome)
    if args.json:
        print_json([outcome.answer for outcome in outcomes])
    else:
        print(summary(outcomes))
    return next((outcome.exit_code for outcome in outcomes if outcome.exit_code), 0)


class Outcome(NamedTuple):
    path: str
    state: str  # added, updated, known, queued, cancelled, failed, not tried
    detail: str
    answer: "Json"  # the engine's, with the path it belongs to
    exit_code: int = 0


class Adder:
    """Adds one file after the other; after an error that the next file would meet too, it stops trying."""

    def __init__(self, client: "Client", args: argparse.Namespace, screen: "Screen") -> None:
        self.client = client
        self.args = args
        self.screen = screen
        self.stopped: KBError | None = None

    def add(self, path: str) -> Outcome:
        from kb.errors import Forbidden, KBError, StorageFull, Unauthorized, Unavailable

        if self.stopped:
            return self.failed(path, self.stopped)._replace(state="not tried")
        try:
            return self._sent(path)
        except KBError as error:
            if isinstance(error, Unavailable | StorageFull | Unauthorized | Forbidden):
                self.stopped = error
            return self.failed(path, error)
        finally:
            self.screen.clear()

    def failed(self, path: str, error: "KBError") -> Outcome:
        answer = _named(path) | {"status": "failed"} | error.body()
        return Outcome(path, "failed", error.message, answer, error.exit_code)

    def _sent(self, path: str) -> Outcome:
        from kb.cli.follow import WAIT_SECONDS, exit_code, followed, reason

        def tell(job: "Json") -> None:
            step = job["current_step"] or job["status"]
            self.screen.progress(f"{os.path.basename(path)}: {step}", job["progress"])

        self.screen.progress(f"{os.path.basename(path)}: sending", 0.0)
        # Where a person watches, the answer comes early and the job's progress is shown.
        patience = 1 if self.screen.terminal else WAIT_SECONDS
        answer = self.client.add_file(
            path,
            title=self.args.title,
            tags=self.args.tags,
            source_path=os.path.realpath(path),
            force_ocr=self.args.force_ocr or None,
            wait=0 if self.args.no_wait else patience,
        )
        if not self.args.no_wait:
            answer = followed(self.client, answer, tell)
        named = _named(path) | answer
        if "duplicate_of" in answer:
            return Outcome(path, "known", f"already document {answer['duplicate_of']}", named)
        if answer["status"] == "completed":
            state, detail = ("added", "") if self.args.json else self._described(answer["document_id"])
            return Outcome(path, state, detail, named)
        if answer["status"] in ("failed", "cancelled"):
            return Outcome(path, answer["status"], reason(answer), named, exit_code(answer))
        return Outcome(path, "queued", f"job {answer['job_id']}", named)

    def _described(self, document_id: int) -> tuple[str, str]:
        """What became of the file, the parts that could not be read included: no page is lost in silence."""
        from kb.cli.screen import plural

        document = self.client.document(document_id, max_chunks=0)
        detail = f"document {document_id}, {plural(document['chunk_count'], 'passage')}"
        lost = [entry for entry in document["ledger"] if entry["state"] == "failed"]
        if lost:
            parts = ", ".join(f"{entry['part']} ({entry['reason']})" for entry in lost)
            detail += f"; could not be read: {parts}"
        return ("updated" if document["version"] > 1 else "added"), detail


def _named(path: str) -> "Json":
    return {"path": path, "source_path": os.path.realpath(path)}


def report(outcome: Outcome) -> None:
    from kb.cli.screen import Screen, one_line

    if outcome.state == "not tried":
        return
    stream = sys.stderr if outcome.exit_code else sys.stdout
    screen = Screen(stream)
    colour = "red" if outcome.exit_code else "green"
    line = f"{one_line(outcome.path)}  {one_line(outcome.detail)}"
    screen.say(f"{screen.style(f'{outcome.state:<9}', colour)}  {line}")


def summary(outcomes: list[Outcome]) -> str:
    from kb.cli.screen import plural

    counts: dict[str, int] = {}
    for outcome in outcomes:
        counts[outcome.state] = counts.get(outcome.state, 0) + 1
    told = ", ".join(f"{count} {state}" for state, count in counts.items())
    return f"{plural(len(outcomes), 'file')}: {told}"


def find(paths: "Iterable[str]") -> "Iterator[tuple[str, KBError | None]]":
    """Every file that the paths name, each once, with the error for one that cannot be added."""
    from kb.errors import NotFound

    seen = set()
    for path in paths:
        empty = True
        for file, problem in _below(path) if os.path.isdir(path) else [(path, None)]:
            empty = False
            place = os.path.realpath(file)
            if place not in seen:
                seen.add(place)
                yield file, problem or _problem(file)
        if empty:
            yield path, NotFound(f"There are no files in {path}; hidden ones are left out.")


def _problem(path: str) -> "KBError | None":
    from kb.errors import InvalidRequest, NotFound

    try:
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return NotFound(f"There is no file {path}.")
    except OSError as wrong:
        return InvalidRequest(f"{path} cannot be read: {wrong.strerror}.")
    return None if stat.S_ISREG(mode) else InvalidRequest(f"{path} is neither a file nor a folder.")


def _below(folder: str) -> "Iterator[tuple[str, KBError | None]]":
    from kb.errors import InvalidRequest

    unreadable: list[OSError] = []
    for place, folders, files in os.walk(folder, onerror=unreadable.append):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            path = os.path.join(place, name)
            # Sockets and pipes hold no document; a link that leads nowhere is reported.
            if not name.startswith(".") and (os.path.isfile(path) or os.path.islink(path)):
                yield path, None
    for wrong in unreadable:
        yield str(wrong.filename), InvalidRequest(f"{wrong.filename} cannot be read: {wrong.strerror}.")
