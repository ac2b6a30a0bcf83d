"""The data folder: private to its user, and to one engine at a time."""

import fcntl
import logging
import os
import shutil
import stat
from pathlib import Path
from typing import IO

from kb.core.errors import Conflict, StorageFull

log = logging.getLogger(__name__)

LOCK = "engine.lock"
REPLACED = "replaced"  # what was there before a restore, until an engine has started well with the new content
RESTORED = "restored"  # a folder with a verified backup, which takes the place of everything beside it
# What an engine keeps beside its database and its originals, and what is useless without them.
COMPANIONS = ("kb.db-wal", "kb.db-shm", "kb.db-journal", "kb.db.v2", "staging", "cache")


class DataFolder:
    """Holds the lock from `open` to `close`; the operating system releases it when the process dies."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: IO[str] | None = None

    def open(self) -> None:
        try:
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.path.chmod(0o700)
            lock = open(self.path / LOCK, "a+", encoding="ascii", opener=private)  # noqa: SIM115 - held until `close`
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
        self._finish_restore()
        self._make_private()

    def close(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _make_private(self) -> None:
        """Make all files readable to their owner only: an older kb was not that strict."""
        for name, _, files in os.walk(self.path):
            folder = Path(name)
            for entry in (folder, *(folder / file for file in files)):
                mode = entry.lstat().st_mode
                if mode & 0o077 and not stat.S_ISLNK(mode):
                    try:
                        entry.chmod(stat.S_IMODE(mode) & 0o700)
                    except OSError as error:  # it belongs to another user; the folder itself is closed to others
                        log.warning("%s cannot be made private: %s", entry, error.strerror)

    def forget_replaced(self) -> None:
        """Remove what a restore replaced, once an engine has started with the new content."""
        try:
            remove(self.path / REPLACED)
        except OSError as error:
            log.warning("what was there before the restore cannot be removed: %s", error.strerror)

    def _finish_restore(self) -> None:
        """Complete a restore that got as far as its verified folder, also after several interruptions.

        Everything happens inside the folder, which may be a volume that cannot be renamed.
        """
        restored, replaced = self.path / RESTORED, self.path / REPLACED
        if not restored.exists():
            return
        moving = Path(f"{replaced}.part")
        try:
            if not replaced.exists():  # otherwise no engine has started with what is here now, so it is not kept
                moving.mkdir(mode=0o700, exist_ok=True)
            for name in COMPANIONS:
                put_aside(self.path / name, moving)
            for entry in sorted(restored.iterdir()):
                put_aside(self.path / entry.name, moving)
                entry.rename(self.path / entry.name)
            if moving.exists():
                moving.rename(replaced) if any(moving.iterdir()) else moving.rmdir()
            sync_folder(self.path)
            restored.rmdir()
        except OSError as error:
            self.close()
            raise StorageFull(
                f"The backup in {restored} cannot be put into its place: {error.strerror}. Nothing is lost; try again."
            ) from error


def put_aside(path: Path, folder: Path) -> None:
    """Move a file or folder, if it is there, into this folder; if there is no such folder, remove it."""
    if not folder.exists() or (folder / path.name).exists():
        remove(path)
    elif path.exists():
        path.rename(folder / path.name)


def private(name: str, flags: int) -> int:
    """An opener that makes a new file readable to its owner only."""
    return os.open(name, flags, 0o600)


def remove(path: Path) -> None:
    """Remove a file, or a folder with its content, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def sync_folder(path: Path) -> None:
    """Make a rename in this folder survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
