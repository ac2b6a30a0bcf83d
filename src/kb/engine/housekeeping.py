"""The thread that loads the index, starts the worker, and then tidies up whenever nothing is written."""

import logging
import threading
import time
from dataclasses import dataclass

from kb.core.errors import KBError, is_damage
from kb.engine.doctor.doctor import Doctor
from kb.engine.following import Following
from kb.engine.jobs.worker import Worker
from kb.engine.presence import Presence
from kb.engine.recovery import Recovery
from kb.engine.static_fill import StaticFill
from kb.engine.trash import Trash
from kb.index.chunk_index import ChunkIndex
from kb.search.keyword import KeywordIndex
from kb.store.backend import Database
from kb.store.folder import DataFolder
from kb.store.originals import Originals

log = logging.getLogger(__name__)

LONGEST_WAIT = 60.0  # seconds between two attempts to load the index
TIDY_SECONDS = 2.0
FILL_SECONDS = 2.0  # at a time, for passages without a static vector
EXPIRE_SECONDS = 60.0  # between two looks at the trash
SHRINK_AGAIN = 600.0  # seconds until it is tried again when it failed


@dataclass
class Housekeeper:
    _folder: DataFolder
    _database: Database
    _originals: Originals
    _recovery: Recovery
    _live: ChunkIndex
    _keywords: KeywordIndex
    _worker: Worker
    _doctor: Doctor
    _trash: Trash
    _following: Following
    _presence: Presence
    _static_fill: StaticFill
    _examined: bool = False
    _shrink_from: float = 0.0
    _expire_from: float = 0.0

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="housekeeping")
        self._thread.start()

    def join(self) -> None:
        """Wait for the end, which comes once the worker is stopping."""
        self._thread.join()

    def _run(self) -> None:
        if self._recovery.fresh:
            self._await_reindex()
        else:
            self._load()
        if self._live.loaded:
            self._folder.forget_replaced()
        self._worker.start()
        if self._recovery.mended:
            self._examine()
        self._warm()
        while not self._worker.stopping.wait(TIDY_SECONDS):
            try:
                self._expire()
                self._originals.forget_removed()
                self._database.tidy()
                self._shrink()
                if self._static_fill.is_needed:
                    self._static_fill.run(self._worker.stopping, FILL_SECONDS)
            except KBError as error:
                log.warning("the database cannot be tidied up now: %s", error.message)
                self._shrink_from = time.monotonic() + SHRINK_AGAIN
            if self._keywords.is_cold and self._database.is_idle:
                self._warm()

    def _await_reindex(self) -> None:
        self._database.follow(self._following, load=False)
        self._worker.start("index")
        while not self._live.loaded and not self._worker.stopping.wait(0.1):
            pass

    def _load(self) -> None:
        """Load the index, if necessary again and again; a damaged database is mended once."""
        wait = 1.0
        while not self._loads() and not self._live.damaged and not self._worker.stopping.wait(wait):
            wait = min(wait * 2, LONGEST_WAIT)

    def _loads(self) -> bool:
        try:
            self._database.follow(self._following)
        except KBError as error:
            message = "the search index could not be loaded: %s"
            log.error(message, error.message, exc_info=None if error.retryable else error)
            if self._live.damaged and not self._recovery.mended and self._recovery.mend():
                return self._loads()
        return self._live.loaded

    def _warm(self) -> None:
        if self._live.loaded:
            try:
                self._keywords.warm(self._database, self._live, self._worker.stopping)
            except KBError as error:
                log.warning("words could not be read ahead: %s", error.message)
                if is_damage(error) and not self._examined:
                    self._examine()

    def _examine(self) -> None:
        """Mend what can be mended and make again, from the texts, what a damaged database had lost."""
        self._examined = True
        try:
            for check in self._doctor.examine(fix=True).checks:
                if check.problems:
                    log.warning("%s: %s Mended: %d of %d.", check.name, check.message, check.fixed, check.problems)
        except KBError as error:
            log.error("the database cannot be mended: %s", error.message)

    def _expire(self) -> None:
        """Empty the trash of what has been in it long enough."""
        if self._presence.leads and time.monotonic() >= self._expire_from:
            self._expire_from = time.monotonic() + EXPIRE_SECONDS
            if expired := self._trash.expire(self._worker.stopping):
                log.info("%d documents were in the trash long enough, and are removed for good", expired)

    def _shrink(self) -> None:
        """Return what a large deletion freed to the disk, once nothing is written any longer."""
        if not self._database.is_idle or time.monotonic() < self._shrink_from:
            return
        if wasted := self._database.wasted_bytes:
            with self._originals.scratch(self._database.size_bytes() - wasted) as room:
                if self._database.vacuum_into(room):
                    log.info("%d MB of the database file are free again", wasted // 2**20)
