"""Originals as rows of the database, and a cache of files for those who need a path."""

import hashlib
import os
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from kb.core.changes import Change
from kb.core.errors import NotFound
from kb.store.backend import Database, Transaction
from kb.store.folder import private
from kb.store.originals import Originals, is_sha256
from kb.store.staging import Staged, discard, storage_errors

PART = 2**20  # bytes
CACHED_BYTES = 2**30
IN_USE_SECONDS = 900.0  # a file that was asked for so recently may be open, or about to be

KEEP = "INSERT INTO originals (sha256, part, data) VALUES (:sha256, :part, :data)"
ANY = "SELECT 1 FROM originals WHERE sha256 = :sha256 LIMIT 1"
ONE = "SELECT data FROM originals WHERE sha256 = :sha256 AND part = :part"
EVERY = "SELECT DISTINCT sha256 FROM originals"
SIZE = "SELECT COALESCE(sum(length(data)), 0)::bigint FROM originals"
REMOVE = "DELETE FROM originals WHERE sha256 = :sha256"


class OriginalRows(Originals):
    def __init__(self, database: Database, folder: Path, limit: int) -> None:
        super().__init__(folder, limit)
        self._database = database
        self._cache = folder / "cache" / "originals"
        with storage_errors():
            self._cache.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._removed = threading.Event()  # something may have been, by any engine
        database.listen(self._hear)

    def _hear(self, changes: Sequence[Change]) -> None:
        if any(one.kind == "reset" or one.action in ("deleted", "purged", "updated") for one in changes):
            self._removed.set()

    def forget_removed(self) -> None:
        if self._removed.is_set():
            self._removed.clear()
            for sha256 in {file.name for _, _, file in self._files()} | self._pages.kept():
                if is_sha256(sha256) and not self.has(sha256):
                    self._forget(sha256)

    def keep(self, tx: Transaction, staged: Staged) -> None:
        self.keep_file(tx, staged.sha256, staged.path)

    def keep_file(self, tx: Transaction, sha256: str, path: Path) -> None:
        """Copy a file into the database, part by part."""
        if tx.value(ANY, {"sha256": sha256}) is not None:
            return
        with storage_errors(), path.open("rb") as file:
            for number, data in enumerate(iter(lambda: file.read(PART), b"")):
                tx.run(KEEP, {"sha256": sha256, "part": number, "data": data})

    def path(self, sha256: str) -> Path:
        """A file in the cache, written now unless it is there."""
        if not is_sha256(sha256):
            raise NotFound("There is no original: what the database has in place of its hash is not a sha256.")
        cached = self._cache / sha256
        if not cached.exists() and self.has(sha256):
            part = self._cache / f".{uuid.uuid4().hex}"
            try:
                with storage_errors():
                    with open(part, "xb", opener=private) as file:
                        file.writelines(self._parts(sha256))
                    part.rename(cached)
            finally:
                discard(part)
            if not self.has(sha256):  # it was removed meanwhile: nothing of it stays here
                discard(cached)
            self._trim()
        return cached

    def has(self, sha256: str) -> bool:
        return is_sha256(sha256) and bool(self._database.select(ANY, {"sha256": sha256}))

    def is_sound(self, sha256: str) -> bool:
        """Compares the file in the cache if there is one: it is what is handed out."""
        path = self.path(sha256)
        try:
            os.utime(path)
            with path.open("rb") as file:
                if hashlib.file_digest(file, "sha256").hexdigest() == sha256:
                    return True
        except FileNotFoundError as gone:
            raise NotFound("The original is not kept here; only its text is.") from gone
        except OSError:
            pass
        discard(path)  # what is in the database may be sound
        with self.path(sha256).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == sha256

    def remove(self, tx: Transaction, sha256: str) -> None:
        if is_sha256(sha256):
            tx.run(REMOVE, {"sha256": sha256})
            tx.after_commit(partial(self._forget, sha256))

    def _forget(self, sha256: str) -> None:
        discard(self._cache / sha256)
        self._pages.remove(sha256)

    def clear(self, tx: Transaction) -> int:
        size = int(tx.value(SIZE))
        tx.run("DELETE FROM originals")
        tx.after_commit(self._clear_caches)
        return size

    def _clear_caches(self) -> None:
        for file in list(self._cache.iterdir()):
            discard(file)
        self._pages.sweep(set())

    def orphans(self, tx: Transaction, named: set[str]) -> list[str]:
        return [sha256 for sha256 in tx.column(EVERY) if sha256 not in named]

    def drop(self, tx: Transaction, orphans: list[str]) -> None:
        for sha256 in orphans:
            tx.run(REMOVE, {"sha256": sha256})
            tx.after_commit(partial(self._forget, sha256))

    def sweep(self, tx: Transaction, named: set[str]) -> int:
        """Also of the cache, which an engine that died may have left half written."""
        for file in list(self._cache.iterdir()):
            if file.name not in named:
                discard(file)
        return super().sweep(tx, named)

    def _parts(self, sha256: str) -> Iterator[bytes]:
        number = 0
        while found := self._database.select(ONE, {"sha256": sha256, "part": number}):
            yield found[0][0]
            number += 1

    def _trim(self) -> None:
        """Remove the files that were asked for least recently, until the others fit."""
        files = sorted(self._files())
        left = sum(size for _, size, _ in files)
        for used, size, file in files:
            if left <= CACHED_BYTES or time.time() - used < IN_USE_SECONDS:
                break
            discard(file)
            left -= size

    def _files(self) -> Iterator[tuple[float, int, Path]]:
        """When each file was last asked for, its size and its path. Other threads add and remove files meanwhile."""
        for file in list(self._cache.iterdir()):
            with suppress(FileNotFoundError):
                about = file.stat()
                yield about.st_mtime, about.st_size, file
