"""The composition root: the only place that puts the parts together."""

import logging
import threading
import time
from pathlib import Path
from types import TracebackType

from kb.core.cpu import usable_cores
from kb.core.errors import Conflict, KBError, is_damage
from kb.core.settings import Settings
from kb.embedding.lazy import WarmingEmbedder
from kb.embedding.priority import Priority
from kb.engine.doctor import Doctor
from kb.engine.engine import Engine
from kb.engine.jobs.queue import Queue
from kb.engine.jobs.worker import Worker
from kb.engine.views import Views
from kb.index import terms
from kb.index.chunk_index import ChunkIndex
from kb.ingest.notes import NoteEditor
from kb.ingest.pipeline import Pipeline
from kb.ingest.prepare import Preparer
from kb.ingest.publish import Publisher
from kb.ingest.reindex import Reindexer
from kb.ingest.sandbox import ocr
from kb.ingest.sandbox.sandbox import Sandbox
from kb.ingest.sandbox.views import Viewer
from kb.search.keyword import KeywordIndex
from kb.search.searcher import Searcher
from kb.store import chunks, jobs, meta
from kb.store.backup.archive import Archives
from kb.store.folder import DataFolder
from kb.store.originals import Originals, in_use
from kb.store.sqlite.database import SQLiteDatabase
from kb.store.sqlite.migrate import migrate
from kb.store.sqlite.salvage import SQLiteMender

log = logging.getLogger(__name__)

LONGEST_WAIT = 60.0  # seconds between two attempts to load the index
TIDY_SECONDS = 2.0
SHRINK_AGAIN = 600.0  # seconds until it is tried again when it failed


class RunningEngine:
    """An engine with its worker, from `open` to `close`. What can go wrong at start goes wrong in `open`.

    With `reindex`, a file whose index was made with another model or other chunks is opened and indexed anew.
    """

    def __init__(self, settings: Settings, *, reindex: bool = False) -> None:
        self._folder = DataFolder(settings.data_dir)
        self._folder.open()
        try:
            self.engine = self._assemble(settings, reindex)
        except BaseException:
            self._folder.close()
            raise

    def _assemble(self, settings: Settings, reindex: bool) -> Engine:
        priority = Priority()
        embedder = WarmingEmbedder(settings.model_dir, priority)
        preparer = Preparer(embedder, settings.chunk_tokens, priority)
        self._database = database = SQLiteDatabase(settings.database_path)
        self._originals = originals = Originals(settings.data_dir, settings.max_file_mb * 2**20)
        self._mender = mender = SQLiteMender(database, terms.index_terms)
        self._fresh = self._mended = self._completed = False
        self._migrate(settings.database_path)
        if reindex and database.damage():
            self._mend()
        try:
            self._begin(preparer, reindex)
        except KBError as error:
            if not is_damage(error):
                raise
            if self._mend():
                self._begin(preparer, reindex)
        self._live = live = ChunkIndex(embedder.dimensions, awaiting_reindex=self._fresh)
        publisher = Publisher(database, live)
        queue = Queue(database)
        self._sandbox = sandbox = Sandbox(lambda: ocr.choose(settings.ocr))
        self._viewer = viewer = Viewer()
        pipeline = Pipeline(database, originals, sandbox, preparer, publisher, queue.changed)
        reindexer = Reindexer(database, preparer, publisher, queue.changed, fresh=self._fresh)
        runs = {"note": pipeline.run, "file": pipeline.run, "reindex": reindexer.run}
        hands = {"small": small_hands()}
        self._worker = Worker(queue, lambda job, interrupt: runs[job["kind"]](job, interrupt), priority, hands)
        self._keywords = keywords = KeywordIndex()
        self._doctor = doctor = Doctor(
            database, mender, originals, preparer, reindexer, live, keywords, settings.model_dir, self._worker.stopping
        )
        engine = Engine(
            settings,
            database,
            originals,
            queue,
            embedder,
            preparer,
            publisher,
            NoteEditor(database, preparer, publisher, live),
            Searcher(database, live, keywords, embedder),
            live,
            Archives(database, originals),
            doctor,
            priority,
            Views(database, originals, viewer, priority),
        )
        if reindex:
            engine.reindex()
        embedder.start()
        self._shrink_from = 0.0
        self._keeper = threading.Thread(target=self._keep_house, name="housekeeping")
        self._keeper.start()
        return engine

    def _migrate(self, path: Path) -> None:
        try:
            migrate(path, terms.index_terms)
        except KBError as error:
            if not is_damage(error):
                raise
            if not self._mend():
                raise Conflict(
                    f"{path} is damaged so much that it cannot be opened. Nothing was changed. Restore a backup: "
                    "kb restore FILE --force"
                ) from error
            migrate(path, terms.index_terms)

    def _begin(self, preparer: Preparer, reindex: bool) -> None:
        """Clear away what an engine that died left behind."""
        with self._database.write() as tx:
            self._fresh = reindex and bool(meta.differences(tx, preparer.versions))
            if not reindex:
                meta.check(tx, preparer.versions)
            chunks.sweep(tx)
            jobs.recover(tx)
            self._originals.sweep(set(in_use(tx)))

    def _mend(self) -> bool:
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
        self._mended = True
        return True

    def _keep_house(self) -> None:
        """Bring the index into memory, let the work begin, and clear up whenever it pauses."""
        self._load()
        if self._live.loaded:
            self._folder.forget_replaced()
        self._worker.start()
        if self._mended:
            self._complete()
        self._warm()
        while not self._worker.stopping.wait(TIDY_SECONDS):
            try:
                self._database.tidy()
                self._shrink()
            except KBError as error:
                log.warning("the database cannot be tidied up now: %s", error.message)
                self._shrink_from = time.monotonic() + SHRINK_AGAIN
            if self._keywords.is_cold and self._database.is_idle:
                self._warm()

    def _shrink(self) -> None:
        """Return what a large deletion freed to the disk, once nothing is written any longer."""
        if not self._database.is_idle or time.monotonic() < self._shrink_from:
            return
        if wasted := self._database.wasted_bytes:
            with self._originals.scratch(self._database.size_bytes() - wasted) as room:
                if self._database.vacuum_into(room):
                    log.info("%d MB of the database file are free again", wasted // 2**20)

    def _load(self) -> None:
        if self._fresh:
            self._worker.start("index")
            while not self._live.loaded and not self._worker.stopping.wait(0.1):
                pass
        else:
            wait = 1.0
            while not self._loads() and not self._live.damaged and not self._worker.stopping.wait(wait):
                wait = min(wait * 2, LONGEST_WAIT)

    def _warm(self) -> None:
        if self._live.loaded:
            try:
                self._keywords.warm(self._database, self._live, self._worker.stopping)
            except KBError as error:
                log.warning("words could not be read ahead: %s", error.message)
                if is_damage(error) and not self._completed:
                    self._complete()

    def _loads(self) -> bool:
        try:
            self._live.load(self._database)
        except KBError:
            log.exception("the search index could not be loaded")
            if self._live.damaged and not self._mended and self._mend():
                return self._loads()
        return self._live.loaded

    def _complete(self) -> None:
        """Mend what can be mended and make again, from the texts, what a damaged database had lost."""
        self._completed = True
        try:
            for check in self._doctor.examine(fix=True).checks:
                if check.problems:
                    log.warning("%s: %s Mended: %d of %d.", check.name, check.message, check.fixed, check.problems)
        except KBError as error:
            log.error("the database cannot be mended: %s", error.message)

    def close(self) -> None:
        """Finish what runs, then let go of the folder."""
        self._worker.stop()
        self._keeper.join()
        self._worker.stop()
        self._sandbox.close()
        self._viewer.close()
        self._database.close()
        self._folder.close()

    def __enter__(self) -> Engine:
        return self.engine

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def small_hands() -> int:
    """How many small jobs run at once: while every core embeds one, others are cut and written."""
    return usable_cores() + 2
