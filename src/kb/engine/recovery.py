"""Open the database at start: migrate it, mend it if it is damaged, and clear away what a dead engine left behind."""

import logging
from dataclasses import dataclass

from kb.core.errors import Conflict, KBError, is_damage
from kb.store import chunks, jobs, meta
from kb.store.backend import Transaction
from kb.store.meta import IndexVersions
from kb.store.open import Store
from kb.store.originals import in_use

log = logging.getLogger(__name__)


@dataclass
class Recovery:
    _store: Store
    mended: bool = False
    fresh: bool = False  # the stored index cannot be used: it has to be made anew first

    def migrate(self) -> tuple[str, str] | None:
        """Give the database the schema of this version; return name and fingerprint of the model of its index."""
        self._migrate()
        try:
            with self._store.database.read() as tx:
                return meta.model(tx)
        except KBError as error:
            if not is_damage(error):
                raise
            return None  # `open` deals with it

    def open(self, versions: IndexVersions, dimensions: int, *, reindex: bool) -> None:
        """Make the database ready. Without `reindex`, an index that was made with other `versions` is refused."""
        if reindex and self._store.database.damage():
            self.mend()
        try:
            self._clear_up(versions, dimensions, reindex)
        except KBError as error:
            if not is_damage(error):
                raise
            if self.mend():
                self._clear_up(versions, dimensions, reindex)

    def mend(self) -> bool:
        """Make a damaged database whole, unless that would lose anything: then the engine serves what can be read."""
        try:
            with self._store.originals.scratch(self._store.database.size_bytes()) as room:
                salvage = self._store.mender.mend(room)
        except KBError as error:
            log.error("the database is damaged, and cannot be mended: %s", error.message)
            return False
        if salvage.lost:
            log.error("the database is damaged; what cannot be read, by table: %s", salvage.lost)
            return False
        log.warning("the database was damaged, and is whole again; what could not be read: %s", salvage.left_out)
        self.mended = True
        return True

    def _migrate(self) -> None:
        try:
            self._store.migrate()
        except KBError as error:
            if not is_damage(error):
                raise
            if not self.mend():
                raise Conflict(
                    f"{self._store.location} is damaged so much that it cannot be opened. Nothing was changed. Restore "
                    "a backup: kb restore FILE --force"
                ) from error
            self._store.migrate()

    def _clear_up(self, versions: IndexVersions, dimensions: int, reindex: bool) -> None:
        with self._store.database.write() as tx:
            self.fresh = reindex and bool(meta.differences(tx, versions))
            if not reindex:
                meta.check(tx, versions)
            if tx.vectors.dimensions() not in (None, dimensions) and not len(tx.vectors.ids()):
                tx.vectors.clear(dimensions)  # a new file has room for those of the default model
            clear_up(tx)
            self._store.originals.sweep(tx, set(in_use(tx)))

    def take_over(self) -> None:
        """Clear away what another engine left behind that died, and put its jobs back."""
        with self._store.database.write() as tx:
            clear_up(tx)


def clear_up(tx: Transaction) -> None:
    chunks.sweep(tx)
    jobs.recover(tx)
