"""A cache of drawn pages on the disk, by the hash of their original, bounded in bytes.

Files are not synced. Each begins with the hash of the rest, and an incomplete file counts as missing. A failure here
raises no error: the page is drawn again.
"""

import hashlib
import logging
import os
import shutil
import threading
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from kb.store.folder import private

log = logging.getLogger(__name__)

BUDGET = 256 * 2**20  # bytes
LEFT = 0.8  # share of the budget that stays when the least recently shown pages are removed
DIGEST = 32  # bytes of a sha256


class PageCache:
    """For several threads. `sha256` names an original, `name` one of its pages."""

    def __init__(self, folder: Path, budget: int = BUDGET) -> None:
        self._folder = folder
        self._budget = budget
        self._lock = threading.Lock()
        self._size: int | None = None  # bytes; None until they were counted

    @property
    def size(self) -> int:
        """Bytes of all kept pages."""
        with self._lock:
            if self._size is None:
                self._size = sum(size for _, size, _ in self._files())
            return self._size

    def get(self, sha256: str, name: str) -> bytes | None:
        path = self._folder / sha256 / name
        try:
            data = path.read_bytes()
            os.utime(path)
        except OSError:
            return None
        return data[DIGEST:] if hashlib.sha256(data[DIGEST:]).digest() == data[:DIGEST] else None

    def put(self, sha256: str, name: str, data: bytes) -> None:
        target = self._folder / sha256 / name
        part = target.with_name(f".{uuid.uuid4().hex}")
        with self._lock:
            try:
                target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                with open(part, "xb", opener=private) as file:
                    file.write(hashlib.sha256(data).digest() + data)
                part.rename(target)
            except OSError as error:
                log.warning("a drawn page cannot be kept: %s", error.strerror)
                with suppress(OSError):
                    part.unlink(missing_ok=True)
                return
            self._size = None if self._size is None else self._size + len(data) + DIGEST
            if self._size is None or self._size > self._budget:
                self._trim()

    def remove(self, sha256: str) -> None:
        """Remove every page of an original."""
        with self._lock:
            self._remove(self._folder / sha256)

    def sweep(self, named: set[str]) -> None:
        """Remove the pages of all originals except the named ones."""
        with self._lock, suppress(FileNotFoundError):
            for folder in list(self._folder.iterdir()):
                if folder.name not in named:
                    self._remove(folder)

    def kept(self) -> set[str]:
        """The originals of which there are pages."""
        with suppress(FileNotFoundError):
            return {folder.name for folder in self._folder.iterdir()}
        return set()

    def _remove(self, folder: Path) -> None:
        self._size = None
        try:
            shutil.rmtree(folder)
        except FileNotFoundError:
            pass
        except OSError as error:  # it is swept at the next start
            log.warning("drawn pages cannot be removed: %s", error.strerror)

    def _trim(self) -> None:
        """Count the bytes; if they exceed the budget, remove the least recently shown pages."""
        found = sorted(self._files())
        self._size = sum(size for _, size, _ in found)
        if self._size <= self._budget:
            return
        for _, size, path in found:
            if self._size <= LEFT * self._budget:
                break
            with suppress(OSError):
                path.unlink()
                self._size -= size

    def _files(self) -> Iterator[tuple[float, int, Path]]:
        """When each file was last shown, its size and its path."""
        for path in self._folder.glob("*/*"):
            with suppress(OSError):
                about = path.stat()
                yield about.st_mtime, about.st_size, path
