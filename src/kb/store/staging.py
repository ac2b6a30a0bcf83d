"""Where files arrive: received under `staging/`, hashed on the way, and gone again unless they are kept."""

import contextlib
import hashlib
import logging
import os
import shutil
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path

from kb.core.errors import StorageFull, TooLarge, Unavailable
from kb.store.folder import private, sync_folder

log = logging.getLogger(__name__)

EDGE = 65536  # bytes of a file's start and end that are kept at hand
LEAST_FREE = 64 * 2**20  # bytes
STAGED_FILES = 4  # how many files of the greatest size may be on their way in at once


class Budget:
    """Bytes that all incoming files together may hold."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self.held = 0

    def take(self, size: int) -> None:
        with self._lock:
            if self.held + size > self._limit:
                raise Unavailable(
                    f"Files of {self._limit // 2**20} MB are being received already. Try again in a moment."
                )
            self.held += size

    def release(self, size: int) -> None:
        with self._lock:
            self.held -= size


class Staged:
    """A file on its way in. Feed it with `write`; its hash and size grow along."""

    def __init__(self, path: Path, limit: int, budget: Budget) -> None:
        self.path = path
        self.size = 0
        self._limit = limit
        self._budget = budget
        self._taken = 0
        self._hash = hashlib.sha256()
        self.head = b""  # the first bytes, which mostly tell what kind of file it is
        self.tail = b""  # the last bytes, where an archive lists what is in it
        self._file = open(path, "xb", opener=private)  # noqa: SIM115 - closed by `close`

    def write(self, data: bytes) -> None:
        self._budget.take(len(data))
        self._taken += len(data)
        self.size += len(data)
        if self.size > self._limit:
            raise TooLarge(
                f"The file is larger than {self._limit // 2**20} MB, the most that is accepted. Split it, or raise "
                "KB_MAX_FILE_MB.",
                max_size_mb=self._limit // 2**20,
            )
        self._hash.update(data)
        if len(self.head) < EDGE:
            self.head += data[: EDGE - len(self.head)]
        self.tail = (self.tail + data[-EDGE:])[-EDGE:]
        with storage_errors():
            self._file.write(data)

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()

    def sync(self) -> None:
        with storage_errors():
            self._file.flush()
            os.fsync(self._file.fileno())

    def close(self) -> None:
        self._budget.release(self._taken)
        with contextlib.suppress(OSError):  # what could not be written was reported when it was synced
            self._file.close()


class Staging:
    def __init__(self, folder: Path, limit: int) -> None:
        self._staging = folder / "staging"
        self._limit = limit
        self._budget = Budget(STAGED_FILES * limit)
        with storage_errors():
            self._staging.mkdir(mode=0o700, exist_ok=True)
            sync_folder(folder)

    @contextlib.contextmanager
    def stage(self) -> Iterator[Staged]:
        """A place for an incoming file; unless it is kept, nothing of it remains."""
        with storage_errors():
            staged = Staged(self._staging / uuid.uuid4().hex, self._limit, self._budget)
        try:
            yield staged
        finally:
            staged.close()
            staged.path.unlink(missing_ok=True)

    @contextlib.contextmanager
    def scratch(self, size: int) -> Iterator[Path]:
        """A temporary private file with room for about `size` bytes."""
        path = self._staging / uuid.uuid4().hex
        try:
            with storage_errors():
                free = shutil.disk_usage(self._staging).free
                if free < size + LEAST_FREE:
                    raise StorageFull(
                        f"This needs {size // 2**20} MB in the data folder, and {free // 2**20} MB are free. Make room."
                    )
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            yield path
        finally:
            discard(path)  # an error from before matters more than a leftover file

    @property
    def staged_bytes(self) -> int:
        return self._budget.held

    def check(self) -> None:
        """Raise StorageFull if no file could be received now."""
        free = 0
        with storage_errors():
            free = shutil.disk_usage(self._staging).free
        if free < LEAST_FREE:
            raise StorageFull(f"Only {free // 2**20} MB are free on the disk of the data folder. Make room soon.")
        with self.scratch(4096) as path, storage_errors(), path.open("wb") as file:
            file.write(bytes(4096))
            file.flush()
            os.fsync(file.fileno())

    def clear_staging(self) -> int:
        """Remove what an engine that died left here. Return how many files."""
        left = list(self._staging.iterdir())
        for file in left:
            discard(file)
        return len(left)


def discard(file: Path) -> int:
    """Remove a file that nothing names any longer. Return the bytes that this freed.

    The rows are gone by then, so this must not fail: what cannot be removed now is swept at the next start.
    """
    try:
        size = file.stat().st_size
        file.unlink()
    except FileNotFoundError:
        return 0
    except OSError as error:
        log.warning("the file %s cannot be removed: %s", file.name, error.strerror)
        return 0
    return size


@contextlib.contextmanager
def storage_errors() -> Iterator[None]:
    """Translate errors of the file system into ours."""
    try:
        yield
    except OSError as error:
        raise StorageFull(
            f"The data folder cannot be written: {error.strerror}. Free some disk space or check its permissions, then "
            "try again."
        ) from error
