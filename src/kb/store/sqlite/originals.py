"""Originals as files in the data folder, which is synced before the row that names one is committed."""

import hashlib
import logging
from pathlib import Path

from kb.core.errors import NotFound
from kb.store.backend import Transaction
from kb.store.folder import sync_folder
from kb.store.originals import Originals, is_sha256
from kb.store.staging import Staged, discard, storage_errors

log = logging.getLogger(__name__)


class OriginalFiles(Originals):
    def __init__(self, folder: Path, limit: int) -> None:
        super().__init__(folder, limit)
        self._folder = folder / "originals"
        with storage_errors():
            self._folder.mkdir(mode=0o700, exist_ok=True)
            sync_folder(folder)

    def keep(self, tx: Transaction, staged: Staged) -> None:  # noqa: ARG002 - a file needs no transaction
        target = self.path(staged.sha256)
        with storage_errors():
            target.parent.mkdir(mode=0o700, exist_ok=True)
            staged.path.rename(target)
            sync_folder(target.parent)
            sync_folder(self._folder)

    def path(self, sha256: str) -> Path:
        """Where an original lies. Only a sha256 becomes a path: the database may be damaged or crafted."""
        if not is_sha256(sha256):
            raise NotFound("There is no original: what the database has in place of its hash is not a sha256.")
        return self._folder / sha256[:2] / sha256

    def has(self, sha256: str) -> bool:
        return is_sha256(sha256) and self.path(sha256).is_file()

    def is_sound(self, sha256: str) -> bool:
        try:
            with self.path(sha256).open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest() == sha256
        except FileNotFoundError as gone:
            raise NotFound("The original is not kept here; only its text is.") from gone
        except OSError as broken:
            log.warning("the original %s cannot be read: %s", sha256, broken.strerror)
            return False

    def remove(self, tx: Transaction, sha256: str) -> None:
        if is_sha256(sha256):
            tx.after_commit(lambda: self._remove(sha256))

    def _remove(self, sha256: str) -> None:
        discard(self.path(sha256))
        self._pages.remove(sha256)

    def clear(self, tx: Transaction) -> int:
        """After the commit, but before the next write: a file that is added from then on stays."""
        files = list(self._folder.glob("??/*"))
        tx.after_commit(lambda: self._discard(files))
        tx.after_commit(lambda: self._pages.sweep(set()))
        return sum(file.stat().st_size for file in files)

    def _discard(self, files: list[Path]) -> None:
        for file in files:
            discard(file)

    def orphans(self, tx: Transaction, named: set[str]) -> list[str]:  # noqa: ARG002 - as for `keep`
        files = (file.relative_to(self._folder) for file in self._folder.glob("??/*"))
        return [str(file) for file in files if file.name not in named]

    def drop(self, tx: Transaction, orphans: list[str]) -> None:
        tx.after_commit(lambda: self._discard([self._folder / name for name in orphans]))
