"""What the operating system tells of changes below a folder: quick, but not complete. Scans make it right.

On Linux each folder that is walked is watched by itself: nothing is watched that is left out, and no link is followed.
"""

import logging
import math
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping

from watchfiles import Change, watch

log = logging.getLogger(__name__)

STEP = 100  # milliseconds without a further event, after which events are told; it wakes that often
LONGEST = 150  # milliseconds that events are gathered while more arrive: less than a file must hold still
BEGUN = 1000  # milliseconds after which a watch without events is known to have begun
RETRY_SECONDS = 10.0  # after a watch failed
NOWHERE = (0, 0)  # of a folder that was removed: the next one of its name may have its inode, too
# File systems whose changes another machine makes: the kernel here is not told of those.
REMOTE = {"9p", "afs", "ceph", "cifs", "davfs", "glusterfs", "nfs", "nfs4", "smb3", "smbfs", "vboxsf", "virtiofs"}

Folders = Mapping[str, tuple[int, int]]  # paths below the root, with device and inode


class Watcher:
    """Tells of paths that may have changed. `wake` is called, from another thread, whenever there are some.

    `problem` says why changes are not told, if so.
    """

    def __init__(self, root: str, wake: Callable[[], None]) -> None:
        self._root = root
        self._wake = wake
        self._lock = threading.Lock()
        self._changed: set[str] = set()
        self._folders: dict[str, tuple[int, int]] = {}
        self._again_at = math.inf  # when the same folders have to be watched anew
        self._stop = threading.Event()
        self.problem: str | None = None

    def follow(self, folders: Folders) -> bool:
        """Watch exactly these folders. Return whether that is new: then each new one is told when its watch begins."""
        if folders == self._folders and time.monotonic() < self._again_at:
            return False
        new = {path for path, place in folders.items() if self._folders.get(path) != place}
        before, self._stop = self._stop, threading.Event()
        self._folders, self._again_at = dict(folders), math.inf
        if network := remote(self._root):
            self.problem = network
            before.set()
            return True
        args = (list(self._folders), topmost(new), self._stop, before)
        threading.Thread(target=self._watch, args=args, name="folder-events", daemon=True).start()
        return True

    @property
    def folders(self) -> Folders:
        return self._folders

    def take(self) -> set[str]:
        """Paths below the root that may have changed since the last call."""
        with self._lock:
            taken, self._changed = self._changed, set()
        return taken

    def close(self) -> None:
        self._stop.set()

    def _watch(self, folders: list[str], new: list[str], stop: threading.Event, before: threading.Event) -> None:
        """Tell of changes until `stop`. The watch `before` ends when this one has begun, so that none is missed.

        What changed in the `new` folders before that is found by a look at them.
        """
        by_folder = sys.platform == "linux"
        places = [os.path.join(self._root, folder) for folder in folders] if by_folder else [self._root]
        try:
            for changes in watch(
                *places,
                watch_filter=None,
                debounce=LONGEST,
                step=STEP,
                stop_event=stop,
                rust_timeout=BEGUN,
                yield_on_timeout=True,
                raise_interrupt=False,
                force_polling=False,
                recursive=not by_folder,
                ignore_permission_denied=False,  # or it would ignore the limit of watches, too
            ):
                if not before.is_set():
                    before.set()
                    self._began(new, stop)
                self._tell(path for _, path in changes)
                self._lose(path for change, path in changes if change is Change.deleted)
        except FileNotFoundError:  # a folder has gone meanwhile
            self._again_at = 0.0
            self._tell([self._root])
        except Exception as wrong:  # noqa: BLE001 - whatever it is, scans do its work
            self._failed(stop, explained(str(wrong)))
        finally:
            if not before.is_set():  # it never began; a later one does not know these folders as new
                before.set()
                self._tell_folders(new)

    def _began(self, new: list[str], stop: threading.Event) -> None:
        """Have what was missed before be found: in the new folders, or anywhere if nothing was told for a while."""
        if self.problem is not None and stop is self._stop:
            self.problem = None
            new = [""]
        self._tell_folders(new)

    def _failed(self, stop: threading.Event, problem: str) -> None:
        if stop is not self._stop:
            return
        self._again_at = time.monotonic() + RETRY_SECONDS
        before, self.problem = self.problem, problem
        if before != problem:
            log.warning("changes of %s are not told: %s", self._root, problem)
            self._tell([self._root])

    def _lose(self, places: Iterable[str]) -> None:
        """Have a watched folder that was removed be watched anew when there is one of its name again."""
        lost = {self._below(place) for place in places} & self._folders.keys()
        self._folders |= dict.fromkeys(lost, NOWHERE)

    def _tell(self, places: Iterable[str]) -> None:
        found = {self._below(place) for place in places}
        if found:
            with self._lock:
                self._changed |= found
            self._wake()

    def _tell_folders(self, paths: Iterable[str]) -> None:
        self._tell(os.path.join(self._root, path) for path in paths)

    def _below(self, place: str) -> str:
        path = os.path.relpath(place, self._root)
        return "" if path == "." else path


def topmost(paths: Collection[str]) -> list[str]:
    """The paths without those below another one."""
    return [path for path in paths if not path or ("" not in paths and path.rpartition("/")[0] not in paths)]


def explained(error: str) -> str:
    """Why the system does not tell of changes, and what to do about it."""
    if "watch limit" in error:
        return "the system's limit of watched folders is reached: raise fs.inotify.max_user_watches"
    if "Too many open files" in error:
        return "the system's limit of watching programs is reached: raise fs.inotify.max_user_instances"
    if found := re.search('Unable to decode path "(.*)" to string', error):
        return f"a name in it is no UTF-8 text: rename {found[1][:200]}"
    return f"the system does not tell of them ({error[:200]})"


def remote(path: str) -> str | None:
    """Why no change is told of what lies on a network; None for a local file system."""
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
            mounts = [line.split(" ") for line in file]
    except OSError:  # there is no such list on macOS
        return None
    # The mount point is the fifth word, and the type follows a lone dash.
    above = [words for words in mounts if f"{path}/".startswith(unescaped(words[4]).rstrip("/") + "/")]
    nearest = max(above, key=lambda words: len(words[4]), default=["-", ""])
    kind = nearest[nearest.index("-") + 1]
    return f"the folder lies on a network ({kind})" if kind in REMOTE or kind.startswith("fuse") else None


def unescaped(text: str) -> str:
    """The octal escapes of blanks in /proc, resolved."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), text)
