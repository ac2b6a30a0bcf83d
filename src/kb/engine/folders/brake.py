"""The brake: when many files vanish at once, nothing is removed until a person says so.

A disk that is not mounted looks like a folder from which everything was deleted. Files that vanish one by one are
removed, after a moment in which an editor that saves, or a move that is under way, puts them back.
"""

import os
import time
from collections.abc import Callable, Collection, Iterable

from kb.engine.folders.files import SIGNED
from kb.store.watched import Stamp, WatchedFile

GRACE = 3.0  # seconds that a file is missing before its document is removed
SCANS = 3  # and at least so many times as long as a scan takes: a file that is moved during one may be seen nowhere
HANDFUL = 5  # files that may always vanish at once
SHARE = 10  # else at most one in so many
MANY = 100
AT_ONCE = 60.0  # seconds that count as "at once"


class Brake:
    """Remembers which files are missing, and since when. `root` is the folder's path."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._missing: dict[str, tuple[Stamp, float]] = {}
        self._asked: set[str] = set()  # missing files that a person was asked about
        self._confirmed: set[str] = set()  # of them, those that are to be removed
        self._removed: list[float] = []  # when a document was removed unasked, of late
        self.scan_seconds = 0.0  # that the last scan took

    @property
    def missing(self) -> list[str]:
        """Missing files that nobody has confirmed."""
        return [path for path in self._missing if path not in self._confirmed]

    def found(self, paths: Iterable[str]) -> None:
        """These files are there, or have moved."""
        for path in paths:
            self._missing.pop(path, None)
            self._confirmed.discard(path)

    def miss(self, files: Iterable[WatchedFile]) -> None:
        for one in files:
            self._missing.setdefault(one.path, (one.stamp, time.monotonic()))

    def confirm(self) -> None:
        """Let all files be removed that a person was asked about, and that are still missing."""
        self._confirmed |= self._asked & self._missing.keys()

    def wait(self, path: str) -> float:
        """For how many seconds a missing file may still come back."""
        since = self._missing[path][1] if path in self._missing else time.monotonic()
        return max(0.0, max(GRACE, SCANS * self.scan_seconds) - (time.monotonic() - since))

    def is_confirmed(self, path: str) -> bool:
        return path in self._confirmed

    def removed(self, paths: Collection[str]) -> None:
        self._removed += [time.monotonic()] * len([path for path in paths if path not in self._confirmed])
        self.found(paths)

    def holds(self, known: Callable[[], int]) -> str | None:
        """Why missing files must not be removed, if so; `known` counts the documents of the folder."""
        why = self._holds(known)
        self._asked = set(self.missing) if why else set()
        return why

    def _holds(self, known: Callable[[], int]) -> str | None:
        missing = self.missing
        if all(self.wait(path) for path in missing):
            return None
        self._removed = [moment for moment in self._removed if time.monotonic() - moment < AT_ONCE]
        count = len(missing) + len(self._removed)
        if is_empty(self._root):
            return "The folder is empty, as if a disk were not mounted"
        if any(self._is_elsewhere(path, self._missing[path][0]) for path in missing):
            return "They were on a disk that is not mounted"
        total = known() + len(self._removed)
        if count >= MANY or (count >= HANDFUL and count * SHARE > total):
            return "That is many at once"
        if len(missing) > 1 and count >= total:
            return "That is all of them"
        return None

    def _is_elsewhere(self, path: str, stamp: Stamp) -> bool:
        """Whether the nearest folder that is still there lies on another device than the file did."""
        place = os.path.dirname(f"{self._root}/{path}")
        while len(place) >= len(self._root):
            try:
                return os.stat(place).st_dev & SIGNED != stamp.device
            except OSError:
                place = os.path.dirname(place)
        return False


def is_empty(folder: str) -> bool:
    try:
        with os.scandir(folder) as entries:
            return next(entries, None) is None
    except OSError:
        return True
