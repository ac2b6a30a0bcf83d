"""The composition root: the only place that puts the parts together."""

import sys
from types import TracebackType

from kb.core.cpu import usable_cores
from kb.core.settings import Settings
from kb.embedding.lazy import WarmingEmbedder
from kb.embedding.priority import Priority
from kb.engine.bulk import Bulk
from kb.engine.catalogue import Catalogue
from kb.engine.doctor.doctor import Doctor
from kb.engine.doctor.files import FileChecks
from kb.engine.doctor.indexed import IndexChecks
from kb.engine.doctor.stored import StoreChecks
from kb.engine.engine import Engine
from kb.engine.feed import Feed
from kb.engine.housekeeping import Housekeeper
from kb.engine.intake import Intake
from kb.engine.jobs.queue import Queue
from kb.engine.jobs.worker import Worker
from kb.engine.monitor import Monitor
from kb.engine.recovery import Recovery
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
from kb.store.backup.archive import Archives
from kb.store.folder import DataFolder
from kb.store.originals import Originals
from kb.store.sqlite.database import SQLiteDatabase
from kb.store.sqlite.salvage import SQLiteMender

SWITCH_SECONDS = 0.0005  # that a thread may keep the interpreter: a search needs it briefly, an import all the time


class RunningEngine:
    """An engine with its threads, until `close`. What can go wrong at start goes wrong in the constructor.

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
        sys.setswitchinterval(SWITCH_SECONDS)
        priority = Priority()
        embedder = WarmingEmbedder(settings.model_dir, priority)
        preparer = Preparer(embedder, settings.chunk_tokens, priority)
        self._database = database = SQLiteDatabase(settings.database_path)
        originals = Originals(settings.data_dir, settings.max_file_mb * 2**20)
        mender = SQLiteMender(database, terms.index_terms)
        recovery = Recovery(settings.database_path, database, originals, mender)
        recovery.open(preparer.versions, reindex=reindex)
        live = ChunkIndex(embedder.dimensions, awaiting_reindex=recovery.fresh)
        keywords = KeywordIndex()
        searcher = Searcher(database, live, keywords, embedder)
        publisher = Publisher(database, live)
        queue = Queue(database)
        self._sandbox = sandbox = Sandbox(lambda: ocr.choose(settings.ocr))
        self._viewer = viewer = Viewer()
        pipeline = Pipeline(database, originals, sandbox, preparer, publisher, queue.changed)
        reindexer = Reindexer(database, preparer, publisher, queue.changed, recovery.fresh)
        catalogue = Catalogue(database, publisher, originals)
        bulk = Bulk(database, catalogue, queue)
        runs = {"note": pipeline.run, "file": pipeline.run, "reindex": reindexer.run, "bulk": bulk.run}
        concurrency = {"small": small_concurrency()}
        self._worker = worker = Worker(
            queue, lambda job, interrupt: runs[job["kind"]](job, interrupt), priority, concurrency
        )
        indexed = IndexChecks(database, preparer, live, keywords, worker.stopping)
        doctor = Doctor(
            StoreChecks(database, mender, originals, reindexer, indexed.reload, worker.stopping),
            indexed,
            FileChecks(database, originals, settings.model_dir),
        )
        self._housekeeper = Housekeeper(self._folder, database, originals, recovery, live, keywords, worker, doctor)
        engine = Engine(
            originals,
            queue,
            Feed(database),
            Intake(database, originals, queue),
            catalogue,
            bulk,
            NoteEditor(database, preparer, publisher, live),
            Archives(database, originals),
            doctor,
            Monitor(settings, database, originals, queue, embedder, preparer.budget, keywords, live),
            Views(database, originals, viewer, priority),
            database,
            publisher,
            searcher,
            live,
            priority,
        )
        if reindex:
            engine.reindex()
        embedder.start()
        self._housekeeper.start()
        return engine

    def close(self) -> None:
        """Finish what runs, then let go of the folder."""
        self._worker.stop()
        self._housekeeper.join()
        self._worker.stop()  # the lanes that the housekeeper started meanwhile
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


def small_concurrency() -> int:
    """How many small jobs run at once: while each core embeds one, two others are cut and written."""
    return usable_cores() + 2
