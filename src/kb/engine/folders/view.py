"""One look at a folder: what of it is not as it was, once it holds still, and what is to be done about it.

A file that was just written or moved waits a moment. So does a file that may be another's other half: of two files that
change places, neither may be taken for an edit because the other one is not settled yet.
"""

import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from kb.engine.folders.files import DENIED, Unsteady, hash_of, stamp_at
from kb.engine.folders.plan import Held, Plan, Seen, plan
from kb.engine.folders.walk import DENIED_REASON, Listing, Walker
from kb.store import watched
from kb.store.backend import Database
from kb.store.watched import Stamp, WatchedFile, WatchedFolder

CALM = 0.3  # seconds that a file must hold still before it is read
LARGE = 2**20  # bytes: such a file is written slowly
CALM_LARGE = 2.0
RETRY = 5.0  # seconds until what could not be read is tried again
DISPLACED = 1.0  # seconds that a document has another's file at its path before it is removed

# A job failed because of what is in the file: its document would show what the file no longer holds.
OF_CONTENT = {"corrupt", "encrypted", "no_text", "too_complex", "unsupported_format"}


@dataclass
class View:
    """What is known, what is there, and what of it is not as it was."""

    known: dict[str, WatchedFile]
    listing: Listing
    suspects: dict[str, Stamp] = field(default_factory=dict)  # new, or not as they were
    hashes: dict[str, str] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)  # known files that are not there, or not for us
    again: dict[str, float] = field(default_factory=dict)  # paths to look at again, and in how many seconds
    is_whole: bool = True  # all of the folder was looked at
    scan: float | None = None  # in how many seconds all of it has to be looked at, before a document is removed

    def scan_in(self, seconds: float) -> None:
        self.scan = seconds if self.scan is None else min(self.scan, seconds)

    def put_off(self, path: str, seconds: float) -> None:
        """Leave a path as it is for now."""
        self.suspects.pop(path, None)
        self.again[path] = seconds

    @property
    def in_question(self) -> list[WatchedFile]:
        """Files with a document that are gone, have perhaps changed, or failed to be read."""
        return [
            one
            for path, one in self.known.items()
            if has_document(one) and (path in self.gone or path in self.suspects or is_stale(one))
        ]

    @property
    def unsettled(self) -> list[WatchedFile]:
        """Files with a document that are to be looked at again."""
        return [one for path in self.again if (one := self.known.get(path)) is not None and has_document(one)]

    @property
    def unsettled_sizes(self) -> set[int]:
        """The sizes of files that are to be looked at again: each may be one that is missing elsewhere."""
        return {self.listing.files[path].size for path in self.again if path in self.listing.files}

    def plan(self) -> Plan:
        seen = [Seen(path, self.hashes.get(path), stamp.inode) for path, stamp in self.suspects.items()]
        return plan(map(held, self.in_question), seen)


class Observer:
    def __init__(self, folder: WatchedFolder, database: Database, walker: Walker) -> None:
        self._folder = folder
        self._database = database
        self._walker = walker
        self._restless: dict[str, tuple[Stamp, float]] = {}  # files that changed of late, and since when they look so
        self._pending: set[str] = set()  # files that are to be looked at again
        self._displaced: dict[str, float] = {}  # documents that another's file displaces, and since when

    def observe(self, scope: Collection[str] | None) -> tuple[View, Plan]:
        """Everything, or what is at and below some paths, and what to do about what holds still.

        Files that were put off belong to every look: what becomes of others may depend on them.
        """
        view = self._view(None if scope is None else self._pending | set(scope))
        self._find_rivals(view, scope)
        self._await_calm(view)
        self._hash(view)
        self._await_others(view)
        todo = view.plan()
        now = time.monotonic()
        self._displaced = {path: self._displaced.get(path, now) for path in todo.displaced}
        while early := self._early(view, todo):
            for path in early:
                view.put_off(path, CALM if view.is_whole else DISPLACED)
            self._await_others(view)
            todo = view.plan()
        for path in todo.later:
            view.put_off(path, RETRY if path in view.gone else CALM)
        self._pending = {path for path in view.again if path in view.listing.files}
        return view, todo

    def _early(self, view: View, todo: Plan) -> list[str]:
        """Paths at which the plan would give up the bytes of a document that may only be on their way elsewhere."""
        now = time.monotonic()
        sizes = view.unsettled_sizes
        early = [
            path
            for path in todo.displaced
            if not view.is_whole or view.known[path].stamp.size in sizes or now - self._displaced[path] < DISPLACED
        ]
        if early:
            view.scan_in(DISPLACED)
        return early + [path for path in todo.changed if view.known[path].stamp.size in sizes]

    def _view(self, scope: Collection[str] | None) -> View:
        listing = self._walker.everything() if scope is None else self._walker.at(scope)
        with self._database.read() as tx:
            known = watched.files(tx, self._folder.id, scope)
        sure = {path: one for path, one in known.items() if not is_below(path, listing.unknown)}
        view = View(sure, listing, is_whole=scope is None)
        view.again |= dict.fromkeys(listing.unknown, RETRY)
        for path, stamp in listing.files.items():
            if path not in view.known or view.known[path].stamp != stamp:
                view.suspects[path] = stamp
        view.gone = {path for path in view.known if path not in listing.files}
        return view

    def _find_rivals(self, view: View, scope: Collection[str] | None) -> None:
        """Look again at documents whose file a suspect may have been: one that is moved during a walk is seen twice."""
        sizes = {stamp.size for stamp in view.suspects.values()}
        if not sizes:
            return
        if scope is None:
            rivals = [one for one in view.known.values() if one.stamp.size in sizes and has_document(one)]
        else:
            with self._database.read() as tx:
                rivals = watched.of_sizes(tx, self._folder.id, sizes)
        for one in rivals:
            stamp = stamp_at(self._folder.path, one.path)
            if one.path in view.gone or stamp == one.stamp:
                continue
            view.known[one.path] = one
            view.suspects.pop(one.path, None)
            view.listing.files.pop(one.path, None)
            if stamp is None:
                view.gone.add(one.path)
            else:
                view.suspects[one.path] = view.listing.files[one.path] = stamp

    def _await_calm(self, view: View) -> None:
        """Put off files that are being written, and those that a job still reads."""
        for path, stamp in list(view.suspects.items()):
            if wait := self._unrest(path, stamp):
                view.put_off(path, wait)
                continue
            self._restless.pop(path, None)
            if path in view.known and view.known[path].is_busy:
                view.put_off(path, CALM)

    def _unrest(self, path: str, stamp: Stamp) -> float:
        """For how many seconds a file has still to hold still; clocks of file servers may be wrong."""
        needed = CALM if stamp.size < LARGE else CALM_LARGE
        age = time.time() - max(stamp.mtime_ns, stamp.ctime_ns) / 1e9
        if age >= needed:
            return 0.0
        if path not in self._restless or self._restless[path][0] != stamp:
            self._restless[path] = stamp, time.monotonic()
        seen_for = time.monotonic() - self._restless[path][1]
        return max(0.0, needed - max(age, seen_for))

    def _hash(self, view: View) -> None:
        """Hash the files whose bytes decide: at the path of a document, or of the size of one that may have moved."""
        sizes = {one.stamp.size for one in [*view.in_question, *view.unsettled]}
        for path, stamp in list(view.suspects.items()):
            if not has_document(view.known.get(path)) and stamp.size not in sizes:
                continue
            self._walker.pause()
            try:
                view.hashes[path] = hash_of(self._folder.path, path, stamp)
            except Unsteady:
                view.put_off(path, CALM)
            except OSError as wrong:
                if wrong.errno not in DENIED:
                    view.put_off(path, RETRY)
                    continue
                del view.suspects[path], view.listing.files[path]
                view.listing.failed[path] = DENIED_REASON
                if path in view.known:
                    view.gone.add(path)

    def _await_others(self, view: View) -> None:
        """Put off a file with the bytes of a document whose own file is put off: it may be that file, moved."""
        while waiting := view.suspects.keys() & self._halves(view):
            for path in waiting:
                view.put_off(path, CALM)

    def _halves(self, view: View) -> set[str]:
        unsettled = {one.hash: one.path for one in view.unsettled}
        return {path for path, hash_ in view.hashes.items() if unsettled.get(hash_, path) != path}


def has_document(one: WatchedFile | None) -> bool:
    """Whether a file has a document that follows it, perhaps in the trash, or a job that makes one."""
    return one is not None and (one.document_id is not None or one.is_busy)


def is_stale(one: WatchedFile) -> bool:
    """Whether the document of a file shows bytes that are no longer there, as the new ones cannot be read."""
    return one.document_id is not None and one.state == "failed" and one.reason in OF_CONTENT


def is_out(one: WatchedFile) -> bool:
    """Whether somebody removed the document of a file."""
    return one.document_id is not None and one.state == "ignored"


def held(one: WatchedFile) -> Held:
    return Held(one.path, None if is_stale(one) else one.hash, one.stamp.inode, one.is_busy)


def is_below(path: str, places: Iterable[str]) -> bool:
    return any(path.rstrip("/") == place or path.startswith(f"{place}/") for place in places)
