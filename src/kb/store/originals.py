"""Original files, named by the sha256 of their bytes.

A file that is being received lies under `staging/`. It is synced and renamed before the row that names it is
committed, so a row never names a file that is not there; what no row names is swept at start.
"""

import contextlib
import hashlib
import json
import logging
import os
import re
import shutil
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path

from kb.core.errors import Conflict, NotFound, StorageFull, TooLarge, Unavailable
from kb.store.backend import Transaction
from kb.store.folder import private, sync_folder
from kb.store.page_cache import PageCache

log = logging.getLogger(__name__)

EDGE = 65536  # bytes of a file's start and end that are kept at hand
LEAST_FREE = 64 * 2**20  # bytes
STAGED_FILES = 4  # how many files of the greatest size may be on their way in at once
SHA256 = re.compile("[0-9a-f]{64}")

OF_DOCUMENTS = "SELECT DISTINCT content_hash FROM documents WHERE doc_type <> 'note'"
# A job that reads the original of a document again needs it only as long as that document is there.
OF_JOBS = """
SELECT payload FROM jobs
 WHERE kind = 'file' AND payload IS NOT NULL AND json_extract(payload, '$.document_id') IS NULL
"""
# By a document, or by a job that is not done with it: also one that could be retried.
IS_NAMED = """
SELECT EXISTS (SELECT 1 FROM documents WHERE content_hash = :hash AND doc_type <> 'note')
    OR EXISTS (SELECT 1 FROM jobs
                WHERE status IN ('queued', 'running', 'failed', 'cancelled') AND kind = 'file'
                  AND json_extract(payload, '$.content_hash') = :hash
                  AND json_extract(payload, '$.document_id') IS NULL)
"""


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


class Originals:
    def __init__(self, folder: Path, limit: int) -> None:
        self._folder = folder / "originals"
        self._staging = folder / "staging"
        self._limit = limit
        self._budget = Budget(STAGED_FILES * limit)
        self._pages = PageCache(folder / "cache" / "pages")
        with storage_errors():
            for path in (self._folder, self._staging):
                path.mkdir(mode=0o700, exist_ok=True)
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

    def keep(self, staged: Staged) -> None:
        """Move a synced file to its place: it is durable from here on."""
        target = self.path(staged.sha256)
        with storage_errors():
            target.parent.mkdir(mode=0o700, exist_ok=True)
            staged.path.rename(target)
            sync_folder(target.parent)
            sync_folder(self._folder)

    @property
    def staged_bytes(self) -> int:
        return self._budget.held

    def path(self, sha256: str) -> Path:
        """Where an original lies. Only a sha256 becomes a path: the database may be damaged or crafted."""
        if not is_sha256(sha256):
            raise NotFound("There is no original: what the database has in place of its hash is not a sha256.")
        return self._folder / sha256[:2] / sha256

    def has(self, sha256: str) -> bool:
        return is_sha256(sha256) and self.path(sha256).is_file()

    def is_sound(self, sha256: str) -> bool:
        """Whether the bytes still have the hash in the file's name; raises NotFound if there is no file."""
        try:
            with self.path(sha256).open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest() == sha256
        except FileNotFoundError as gone:
            raise NotFound("The original is not kept here; only its text is.") from gone
        except OSError as broken:
            log.warning("the original %s cannot be read: %s", sha256, broken.strerror)
            return False

    def verified(self, sha256: str) -> Path:
        """The path of an original whose bytes are unchanged; hashing 100 MB takes a tenth of a second."""
        if not self.is_sound(sha256):
            raise Conflict(
                f"The original {sha256[:12]}… is damaged: its bytes changed on the disk. `kb doctor` names its "
                "documents. Add the file again, or restore a backup."
            )
        return self.path(sha256)

    def remove(self, sha256: str) -> None:
        """The file, and the pages that were drawn of it."""
        if is_sha256(sha256):
            discard(self.path(sha256))
            self._pages.remove(sha256)

    @property
    def kept_page_bytes(self) -> int:
        return self._pages.size

    def page(self, sha256: str, name: str) -> bytes | None:
        """A page of an original that was drawn before."""
        return self._pages.get(sha256, name)

    def keep_page(self, sha256: str, name: str, data: bytes) -> None:
        """Keep a drawn page for a while, unless its original was removed while it was being drawn."""
        self._pages.put(sha256, name, data)
        if not self.has(sha256):
            self._pages.remove(sha256)

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

    def clear(self) -> int:
        """Remove every file. Return their size in bytes."""
        freed = sum(discard(file) for file in list(self._folder.glob("??/*")))
        self._pages.sweep(set())
        return freed

    def orphans(self, named: set[str]) -> list[Path]:
        """Files that nothing names. Call it inside a write: a file is kept inside the write that names it."""
        return [file for file in self._folder.glob("??/*") if file.name not in named]

    def sweep(self, named: set[str]) -> int:
        """Remove the files that nothing names. Return how many."""
        orphans = [*self.orphans(named), *self._staging.iterdir()]
        for file in orphans:
            discard(file)
        self._pages.sweep(named)
        return len(orphans)


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


def in_use(tx: Transaction) -> list[str]:
    """The hash of every original that a document names, or a job that is not done with it."""
    found = set(tx.column(OF_DOCUMENTS))
    found.update(json.loads(payload).get("content_hash", "") for payload in tx.column(OF_JOBS))
    return sorted(filter(is_sha256, found))


def is_sha256(value: object) -> bool:
    """Whether this is the hash of an original; v2 and damaged files may have anything in its place."""
    return isinstance(value, str) and SHA256.fullmatch(value) is not None


def is_named(tx: Transaction, sha256: str) -> bool:
    """Whether something still needs this original."""
    return bool(tx.value(IS_NAMED, {"hash": sha256}))


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
