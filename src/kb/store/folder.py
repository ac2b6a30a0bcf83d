"""The data folder: private to its user, and to one engine at a time."""

import fcntl
import os
from pathlib import Path
from typing import IO

from kb.errors import Conflict, StorageFull


class DataFolder:
    """Holds the lock from `open` to `close`; the operating system lets go of it when the process dies."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: IO[str] | None = None

    def open(self) -> None:
        try:
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.path.chmod(0o700)
            lock = (self.path / "engine.lock").open("a+", encoding="ascii")
        except OSError as error:
            raise StorageFull(
                f"The data folder {self.path} cannot be used: {error.strerror}. Choose another with KB_DATA_DIR."
            ) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            lock.seek(0)
            holder = lock.read().strip()
            lock.close()
            raise Conflict(
                f"Another engine{f' (process {holder})' if holder else ''} is using {self.path}. Stop it first, or "
                "choose another folder with KB_DATA_DIR. Nothing was changed."
            ) from error
        lock.seek(0)
        lock.truncate()
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        self._lock = lock

    def close(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None


def sync_folder(path: Path) -> None:
    """Make a rename in this folder survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
