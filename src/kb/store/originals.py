"""Original files, named by the sha256 of their bytes: what every store does with them.

A row never names an original that is not there: it is made durable in or before the transaction that names it. What no
row names is swept at start.
"""

import json
import re
from abc import ABC, abstractmethod
from pathlib import Path

from kb.core.errors import Conflict
from kb.store.backend import Transaction
from kb.store.page_cache import PageCache
from kb.store.rows import readable
from kb.store.staging import Staged, Staging

SHA256 = re.compile("[0-9a-f]{64}")

OF_DOCUMENTS = "SELECT DISTINCT content_hash FROM documents WHERE doc_type <> 'note'"
OF_JOBS = "SELECT payload FROM jobs WHERE kind = 'file' AND payload IS NOT NULL"
OF_A_DOCUMENT = "SELECT 1 FROM documents WHERE content_hash = :hash AND doc_type <> 'note' LIMIT 1"
# Jobs that are not done with it, also one that could be retried: `needed` says which of them truly name it.
OF_A_JOB = """
SELECT payload FROM jobs
 WHERE status IN ('queued', 'running', 'failed', 'cancelled') AND kind = 'file' AND payload LIKE :pattern
"""


class Originals(Staging, ABC):
    """The originals, the place where they arrive, and the pages that were drawn of them."""

    def __init__(self, folder: Path, limit: int) -> None:
        super().__init__(folder, limit)
        self._pages = PageCache(folder / "cache" / "pages")

    @abstractmethod
    def keep(self, tx: Transaction, staged: Staged) -> None:
        """Keep a synced file: it is durable once this write is committed."""

    @abstractmethod
    def path(self, sha256: str) -> Path:
        """Where the bytes of an original lie, whatever became of them; of one that is not kept, no file lies there."""

    @abstractmethod
    def has(self, sha256: str) -> bool: ...

    @abstractmethod
    def is_sound(self, sha256: str) -> bool:
        """Whether the bytes still have their hash; raises NotFound if the original is not kept."""

    def verified(self, sha256: str) -> Path:
        """The path of an original whose bytes are unchanged; hashing 100 MB takes a tenth of a second."""
        if not self.is_sound(sha256):
            raise Conflict(
                f"The original {sha256[:12]}… is damaged: its bytes changed on the disk. `kb doctor` names its "
                "documents. Add the file again, or restore a backup."
            )
        return self.path(sha256)

    @abstractmethod
    def remove(self, tx: Transaction, sha256: str) -> None:
        """Remove an original, and the pages that were drawn of it, once this write is committed."""

    @abstractmethod
    def clear(self, tx: Transaction) -> int:
        """Remove every original once this write is committed. Return their size in bytes."""

    @abstractmethod
    def orphans(self, tx: Transaction, named: set[str]) -> list[str]:
        """Originals that nothing names, as this write finds them: one is kept inside the write that names it."""

    @abstractmethod
    def drop(self, tx: Transaction, orphans: list[str]) -> None:
        """Remove what `orphans` returned."""

    def sweep(self, tx: Transaction, named: set[str]) -> int:
        """Remove the originals that nothing names, and what was left in staging. Return how many files."""
        orphans = self.orphans(tx, named)
        self.drop(tx, orphans)
        self._pages.sweep(named)
        return len(orphans) + self.clear_staging()

    def forget_removed(self) -> None:
        """Remove from the caches what another engine has removed."""

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


def in_use(tx: Transaction) -> list[str]:
    """The hash of every original that a document names, or a job that is not done with it."""
    found = set(tx.column(OF_DOCUMENTS))
    found.update(map(needed, tx.column(OF_JOBS)))
    return sorted(filter(is_sha256, found))


def is_sha256(value: object) -> bool:
    """Whether this is the hash of an original; v2 and damaged files may have anything in its place."""
    return isinstance(value, str) and SHA256.fullmatch(value) is not None


def is_named(tx: Transaction, sha256: str) -> bool:
    """Whether something still needs this original."""
    if tx.value(OF_A_DOCUMENT, {"hash": sha256}) is not None:
        return True
    return any(needed(payload) == sha256 for payload in tx.column(OF_A_JOB, {"pattern": f"%{sha256}%"}))


def needed(payload: str) -> str:
    """The hash of the original that a job with this payload brought; empty if it brought none.

    A job that reads the original of a document again needs it only as long as that document is there.
    """
    with readable("jobs"):
        request = json.loads(payload)
        return str(request.get("content_hash", "")) if request.get("document_id") is None else ""
