"""Open the database at start: migrate it, mend it if it is damaged, and clear away what a dead engine left behind."""

import logging
from dataclasses import dataclass
from pathlib import Path

from kb.core.errors import Conflict, KBError, is_damage
from kb.index import terms
from kb.store import chunks, jobs, meta
from kb.store.backend import Database, Mender
from kb.store.meta import IndexVersions
from kb.store.originals import Originals, in_use
from kb.store.sqlite.migrate import migrate

log = logging.getLogger(__name__)


@dataclass
class Recovery:
    _path: Path
    _database: Database
    _originals: Originals
    _mender: Mender
    mended: bool = False
    fresh: bool = False  # the stored index cannot be used: it has to be made anew first

    def open(self, versions: IndexVersions, *, reindex: bool) -> None:
        """Make the database ready. Without `reindex`, an index that was made with other `versions` is refused."""
        self._migrate()
        if reindex and self._database.damage():
            self.mend()
        try:
            self._clear_up(versions, reindex)
        except KBError as error:
            if not is_damage(error):
                raise
            if self.mend():
                self._clear_up(versions, reindex)

    def mend(self) -> bool:
        """Make a damaged database whole, unless that would lose anything: then the engine serves what can be read."""
        try:
            with self._originals.scratch(self._database.size_bytes()) as room:
                salvage = self._mender.mend(room)
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
            migrate(self._path, terms.index_terms)
        except KBError as error:
            if not is_damage(error):
                raise
            if not self.mend():
                raise Conflict(
                    f"{self._path} is damaged so much that it cannot be opened. Nothing was changed. Restore a backup: "
                    "kb restore FILE --force"
                ) from error
            migrate(self._path, terms.index_terms)

    def _clear_up(self, versions: IndexVersions, reindex: bool) -> None:
        with self._database.write() as tx:
            self.fresh = reindex and bool(meta.differences(tx, versions))
            if not reindex:
                meta.check(tx, versions)
            chunks.sweep(tx)
            jobs.recover(tx)
            self._originals.sweep(set(in_use(tx)))
