"""Bring what is known of a folder, or of some paths of it, together with what is there.

What is known is only recorded after what it stands for was done, or in the same transaction: after a crash the next
scan finds what is left to do.
"""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import TypeVar

from kb.core.folders import FileState
from kb.core.values import Removed
from kb.engine.folders.brake import GRACE, Brake
from kb.engine.folders.files import stamp_at
from kb.engine.folders.plan import Plan
from kb.engine.folders.view import CALM, Observer, View, has_document, is_out, is_stale
from kb.engine.folders.walk import Listing, Walker
from kb.ingest.requests import TITLE_CHARACTERS
from kb.store import documents, links, watched
from kb.store.backend import Database, Row, Transaction
from kb.store.watched import NO_STAMP, WatchedFile, WatchedFolder

LOOKED_UP_AT_ONCE = 500
REMOVED_AT_ONCE = 20  # documents in one transaction, so that no other writer waits long

BEING_WRITTEN = "being written"
RENAMED = "renamed"  # a file that waits to be read again because its name is part of what is searched
REMOVED_IN_KB = "removed in kb; it comes back when the file changes"

Item = TypeVar("Item")
Remove = Callable[[Transaction, Row], Removed]


@dataclass(frozen=True, slots=True)
class Looked:
    """What a look leaves to be done."""

    again: dict[str, float]  # paths to look at again, and in how many seconds
    scan: float | None  # in how many seconds all has to be looked at
    folders: dict[str, tuple[int, int]]  # that were walked: device and inode by path
    brake: str | None  # why missing files are not removed


class Synchroniser:
    """Keeps one folder in step. All of it runs in the thread of that folder."""

    def __init__(self, folder: WatchedFolder, database: Database, walker: Walker, remove: Remove) -> None:
        self._folder = folder
        self._database = database
        self._observer = Observer(folder, database, walker)
        self._remove = remove
        self.brake = Brake(folder.path)
        self._problem: str | None = None  # why missing files are not removed
        self._out: dict[str, float] = {}  # files that are gone after somebody removed their documents, and since when

    def look(self, scope: Collection[str] | None = None, *, confirmed: bool = False) -> Looked:
        """Compare everything, or what is at and below some paths, and act on it.

        With `confirmed`, documents of missing files are removed however many there are.
        """
        view, todo = self._observer.observe(scope)
        self._move(view, todo)  # first: a new file may be where one was that moved
        self._record(view, todo)
        problem = self._remove_missing(view, todo, confirmed=confirmed)
        return Looked(view.again, view.scan, view.listing.folders, problem)

    def _record(self, view: View, todo: Plan) -> None:
        """Note what is new, what has changed, and what is left out; `Reader` reads what waits."""
        known = view.known
        same = [replace(known[path], stamp=view.suspects[path]) for path in todo.same]
        changed = [
            replace(
                known[path],
                stamp=view.suspects[path],
                hash=view.hashes.get(path),
                state="waiting",
                reason=None,
                job_id=None,
                document_id=None if is_out(known[path]) else known[path].document_id,
            )
            for path in todo.changed
        ]
        new = [WatchedFile(path, view.suspects[path], "waiting", hash=view.hashes.get(path)) for path in todo.new]
        others = [
            WatchedFile(path, NO_STAMP, state, reason)
            for state, reasons in left_out(view.listing)
            for path, reason in reasons.items()
            if not has_document(known.get(path))
        ]
        vanished = [
            path
            for path in view.gone
            if not has_document(known[path]) and path not in view.listing.ignored and path not in view.listing.failed
        ]
        unsettled = [
            WatchedFile(path, NO_STAMP, "waiting", BEING_WRITTEN)
            for path in view.again
            if path in view.listing.files and path not in known
        ]
        changes = [*same, *changed, *new, *unsettled, *(one for one in others if known.get(one.path) != one)]
        if changes or vanished:
            with self._database.write(durable=False, publishes=False) as tx:
                watched.forget(tx, self._folder.id, vanished)
                watched.put(tx, self._folder.id, changes)

    def _move(self, view: View, todo: Plan) -> None:
        """Let documents follow their files, all at once: files may have changed places.

        What a name takes part in is read again, by the reader.
        """
        self.brake.found([*todo.moved, *todo.displaced])
        for some in batches(todo.displaced, REMOVED_AT_ONCE):
            self._forget(view, [view.known[path] for path in some])
        if not todo.moved:
            return
        with self._database.write() as tx:
            rows = documents_of(tx, [view.known[path] for path in todo.moved])
            watched.forget(tx, self._folder.id, todo.moved)
            watched.put(tx, self._folder.id, [self._moved(tx, view, path, to, rows) for path, to in todo.moved.items()])

    def _moved(self, tx: Transaction, view: View, path: str, to: str, rows: dict[int, Row]) -> WatchedFile:
        """Move one document; return what is known of its file from now on."""
        file = replace(view.known[path], path=to, stamp=view.suspects[to])
        row = rows.get(file.document_id or 0)
        if row is None:
            return file
        name = to.rpartition("/")[2]
        documents.move(tx, row["id"], self._folder.source_path(to), name)
        links.follow_move(tx, row["id"])
        if file.state == "indexed" and takes_part(row, name):
            return replace(file, state="waiting", reason=RENAMED)
        return file

    def _remove_missing(self, view: View, todo: Plan, *, confirmed: bool) -> str | None:
        """Remove the documents of files that are gone; return why not, if that needs a person.

        Only two looks at everything, a while apart, show that a file is not somewhere else: events of a move may be
        late or lost, and a file that is moved during one look may be seen nowhere.
        """
        self._forget_decisions(view, [path for path in todo.removed if is_out(view.known[path])])
        missing = [path for path in todo.removed if not is_out(view.known[path])]
        self.brake.found(view.listing.files.keys() - set(missing))
        if confirmed:
            self.brake.confirm()
        if view.is_whole:
            self.brake.miss(view.known[path] for path in missing)
        if view.is_whole or self._problem is not None:
            self._problem = self.brake.holds(self._documents)
        due = [path for path in missing if self._problem is None or self.brake.is_confirmed(path)]
        settling = view.unsettled_sizes  # a new file that is not read yet may be one of these
        waits = {path: self.brake.wait(path) or CALM * (view.known[path].stamp.size in settling) for path in due}
        files = [view.known[path] for path, wait in waits.items() if view.is_whole and not wait]
        if len(files) < len(due):
            view.scan_in(max(waits.values()))
        for some in batches([one for one in files if not self._is_back(view, one)], REMOVED_AT_ONCE):
            self._forget(view, some)
            self.brake.removed([one.path for one in some])
        return self._problem

    def _forget_decisions(self, view: View, paths: Sequence[str]) -> None:
        """Forget that somebody removed the documents of these files, unless the files turn up under other names."""
        moment = time.monotonic()
        self._out = {path: self._out.get(path, moment) for path in paths} if view.is_whole else self._out
        due = [path for path in paths if moment - self._out.get(path, moment) >= GRACE]
        if len(due) < len(paths):
            view.scan_in(GRACE)
        self._forget(view, [view.known[path] for path in due])

    def _forget(self, view: View, files: Sequence[WatchedFile]) -> None:
        """Remove the documents of files, and record what is left of these."""
        if not files:
            return
        with self._database.write() as tx:
            removed = [self._remove(tx, row) for row in documents_of(tx, files).values()]
            watched.forget(tx, self._folder.id, [one.path for one in files])
            watched.put(tx, self._folder.id, [left for one in files for left in self._left(view, one)])
        if any(one.expires_at is None for one in removed):  # for good: nothing of it may stay in the log
            self._database.truncate_wal()

    def _is_back(self, view: View, one: WatchedFile) -> bool:
        """Whether a file has come back since it was missed."""
        is_missed = one.path in view.gone and not view.listing.ignored.keys() | view.listing.failed.keys() >= {one.path}
        if is_missed and stamp_at(self._folder.path, one.path) is not None:
            view.again[one.path] = CALM
            return True
        return False

    def _left(self, view: View, one: WatchedFile) -> list[WatchedFile]:
        """What is known of a file after its document was removed; nothing if there is no file."""
        for state, reasons in left_out(view.listing):
            if one.path in reasons:
                return [WatchedFile(one.path, NO_STAMP, state, reasons[one.path])]
        return [replace(one, document_id=None)] if is_stale(one) and one.path in view.listing.files else []

    def _documents(self) -> int:
        with self._database.read() as tx:
            return len(watched.documents_of(tx, self._folder.id))


def left_out(listing: Listing) -> tuple[tuple[FileState, dict[str, str]], ...]:
    return ("ignored", listing.ignored), ("failed", listing.failed)


def takes_part(row: Row, name: str) -> bool:
    """Whether another name changes what is searched: the title, the format, or what a picture is called."""
    old = row["filename"] or ""
    if name == old:
        return False
    suffix = PurePath(name).suffix.lower()
    titled_by_name = not row["titled"] and row["title"] == old[:TITLE_CHARACTERS]
    return not suffix or suffix != PurePath(old).suffix.lower() or titled_by_name or row["doc_type"] == "image"


def documents_of(tx: Transaction, files: Iterable[WatchedFile]) -> dict[int, Row]:
    """The documents of these files that are there, by id."""
    ids = [one.document_id for one in files if one.document_id is not None]
    return {row["id"]: row for some in batches(ids, LOOKED_UP_AT_ONCE) for row in documents.those(tx, some)}


def batches(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    return (items[start : start + size] for start in range(0, len(items), size))
