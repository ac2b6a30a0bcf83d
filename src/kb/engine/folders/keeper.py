"""The thread that keeps one folder in step: it decides when to look, at what, and says how it stands.

Events lead to a look at the paths that they name. Some seconds later, and every few minutes, a scan of everything
follows, so that what was not told is found too. Where nothing is told at all, scans come more often.
"""

import logging
import os
import threading
import time
from typing import NamedTuple

from kb.core.errors import KBError
from kb.core.folders import FolderState
from kb.core.ignored import FILES
from kb.engine.folders.reader import Reader
from kb.engine.folders.sync import Looked, Synchroniser
from kb.engine.folders.walk import Unreachable
from kb.engine.folders.watcher import Watcher
from kb.store.watched import WatchedFolder

log = logging.getLogger(__name__)

SCAN_SECONDS = 300.0  # between two scans where changes are told
POLL_SECONDS = 10.0  # where they are not
SHARE = 100  # a scan takes at most one in so many seconds
CONFIRM_SECONDS = 5.0  # after a change until a scan confirms it
CONFIRM_SHARE = 10
RETRY_SECONDS = 5.0  # after something went wrong, and between two looks at the root itself
BREATH = 0.05  # seconds between two turns: jobs end many times a second
MANY = 500  # changed paths, for which a scan is quicker
NAMED = 3  # missing files that a message names


class Standing(NamedTuple):
    state: FolderState
    message: str | None = None


class Keeper:
    def __init__(self, folder: WatchedFolder, sync: Synchroniser, reader: Reader) -> None:
        self.folder = folder
        self._sync = sync
        self._reader = reader
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._watcher = Watcher(folder.path, self._wake.set)
        self._due: dict[str, float] = {}  # paths to look at, and when
        self._scan_at = 0.0
        self._scan_took = 0.0
        self._asked = 0  # how often a scan was asked for
        self._confirmed = False
        self._removed = False  # a document was removed, perhaps one of ours
        self._standing = Standing("scanning")
        # Daemon: a file server that does not answer must not keep the engine from stopping.
        self._thread = threading.Thread(target=self._run, name=f"folder-{folder.id}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, seconds: float = 10.0) -> None:
        """Stop, and wait for it a while."""
        self._stopping.set()
        self._wake.set()
        self._watcher.close()
        self._thread.join(seconds)

    @property
    def standing(self) -> Standing:
        return Standing("scanning", self._standing.message) if self._asked else self._standing

    def scan(self, *, confirmed: bool = False) -> None:
        """Scan everything soon. With `confirmed`, remove the documents of the files that the message named missing."""
        self._asked += 1
        self._confirmed |= confirmed
        self._wake.set()

    def tell(self, *, removed: bool = False) -> None:
        """A job has ended, or documents were removed."""
        self._removed |= removed
        self._wake.set()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._turn()
            except Unreachable as gone:
                self._stuck(Standing("unreachable", f"{gone} Nothing was removed; it is looked for again."))
            except KBError as error:
                self._stuck(Standing(self._standing.state, error.message))
            except Exception:
                log.exception("folder %s is looked at again soon", self.folder.path)
                self._stuck(Standing(self._standing.state, "Something went wrong; the engine's log says what."))
            self._wait()

    def _wait(self) -> None:
        self._stopping.wait(BREATH)
        next_ = min([self._scan_at, *self._due.values()]) - time.monotonic()
        self._wake.wait(max(0.0, min(next_, RETRY_SECONDS)))
        self._wake.clear()

    def _stuck(self, standing: Standing) -> None:
        self._standing = standing
        self._asked, self._confirmed = 0, False
        self._due.clear()
        self._scan_at = time.monotonic() + RETRY_SECONDS

    def _turn(self) -> None:
        removed, self._removed = self._removed, False
        self._note(self._reader.settle(removed=removed))
        changed = {folder_of(path) for path in self._watcher.take()}
        self._note(changed)
        if changed:
            self._confirm_soon()
        asked, confirmed = self._asked, self._confirmed
        now = time.monotonic()
        due = {path for path, moment in self._due.items() if moment <= now}
        if asked or now >= self._scan_at or "" in due or len(due) > MANY or self._is_another_root():
            if asked:
                self._reader.retry()
            self._scan(confirmed=confirmed)
            self._asked -= asked
            self._confirmed &= not confirmed
        elif due:
            self._look(due)
        self._note(self._reader.feed())

    def _note(self, paths: "set[str] | list[str]") -> None:
        """Look at these paths in the next turn."""
        self._due |= dict.fromkeys(paths, time.monotonic())
        if paths:
            self._wake.set()

    def _is_another_root(self) -> bool:
        """Whether another folder has taken the place of the one that is watched, or none is there."""
        try:
            found = os.stat(self.folder.path)
        except OSError:
            return True
        return bool(self._watcher.folders) and self._watcher.folders.get("") != (found.st_dev, found.st_ino)

    def _scan(self, *, confirmed: bool) -> None:
        began = time.monotonic()
        self._due.clear()
        looked = self._sync.look(confirmed=confirmed)
        self._scan_took = self._sync.brake.scan_seconds = time.monotonic() - began
        self._scan_at = time.monotonic() + self._period
        self._watcher.follow(looked.folders)
        self._after(looked)

    def _look(self, paths: set[str]) -> None:
        for path in paths:
            del self._due[path]
        looked = self._sync.look(paths)
        others = {path: place for path, place in self._watcher.folders.items() if not is_within(path, paths)}
        self._watcher.follow(others | looked.folders)
        self._after(looked)

    def _after(self, looked: Looked) -> None:
        now = time.monotonic()
        self._due |= {path: now + seconds for path, seconds in looked.again.items()}
        if looked.scan is not None:
            self._scan_at = min(self._scan_at, now + max(looked.scan, CONFIRM_SHARE * self._scan_took))
        if looked.brake is not None:
            self._standing = Standing("paused", self._missing(looked.brake))
        elif self._watcher.problem is not None:
            seconds = round(self._period)
            self._standing = Standing(
                "watching", f"Changes are found by a scan every {seconds} seconds: {self._watcher.problem}."
            )
        else:
            self._standing = Standing("watching")

    @property
    def _period(self) -> float:
        least = SCAN_SECONDS if self._watcher.problem is None else POLL_SECONDS
        return max(least, SHARE * self._scan_took)

    def _confirm_soon(self) -> None:
        """Scan everything a while after a change: events are not complete."""
        soon = time.monotonic() + max(CONFIRM_SECONDS, CONFIRM_SHARE * self._scan_took)
        self._scan_at = min(self._scan_at, soon)

    def _missing(self, why: str) -> str:
        missing = sorted(self._sync.brake.missing)
        number = f"{len(missing)} files are" if len(missing) > 1 else "1 file is"
        there = [path for path in missing[:NAMED] if os.path.lexists(f"{self.folder.path}/{path}")]
        what = "left out by a rule now, or missing" if there else "missing"
        named = ", ".join(missing[:NAMED]) + (", …" if len(missing) > NAMED else "")
        return (
            f"{number} {what}: {named}. {why}, so nothing was removed. If that is meant, confirm it: "
            f"`kb watch --confirm {self.folder.path}`, or POST /api/v1/folders/{self.folder.id}/scan with "
            '{"confirm": true}.'
        )


def folder_of(path: str) -> str:
    """What to look at when this path has changed: all of a folder when its rules have."""
    above, _, name = path.rpartition("/")
    return above if name in FILES else path


def is_within(path: str, places: set[str]) -> bool:
    """Whether a path is one of these, or below one."""
    while path not in places:
        if not path:
            return False
        path = path.rpartition("/")[0]
    return True
