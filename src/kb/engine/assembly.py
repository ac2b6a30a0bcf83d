"""The composition root: the only place that puts the parts together."""

import json
import sys
from types import TracebackType

from kb.core.cpu import usable_cores
from kb.core.settings import Settings
from kb.core.types import Interrupt
from kb.embedding.current import CurrentEmbedder
from kb.embedding.opening import open_embedder
from kb.embedding.priority import Priority
from kb.embedding.static import StaticEmbedder
from kb.engine.bulk import Bulk
from kb.engine.catalogue import Catalogue
from kb.engine.doctor.doctor import Doctor
from kb.engine.doctor.files import FileChecks
from kb.engine.doctor.indexed import IndexChecks
from kb.engine.doctor.stored import StoreChecks
from kb.engine.engine import Engine
from kb.engine.feed import Feed
from kb.engine.folders.folders import Folders
from kb.engine.following import Following
from kb.engine.housekeeping import Housekeeper
from kb.engine.intake import Intake
from kb.engine.jobs.queue import Queue
from kb.engine.jobs.worker import Worker
from kb.engine.models import Models
from kb.engine.monitor import Monitor
from kb.engine.presence import Presence
from kb.engine.recovery import Recovery
from kb.engine.static_fill import StaticFill
from kb.engine.switch import ModelSwitch
from kb.engine.trash import Trash
from kb.engine.views import Views
from kb.index import terms
from kb.index.chunk_index import ChunkIndex
from kb.ingest.members import Unpacker
from kb.ingest.notes import NoteEditor
from kb.ingest.pipeline import Pipeline
from kb.ingest.prepare import Preparer
from kb.ingest.publish import Publisher
from kb.ingest.reindex import Reindexer
from kb.ingest.sandbox import ocr
from kb.ingest.sandbox.sandbox import Sandbox
from kb.ingest.sandbox.views import Viewer
from kb.ingest.writer import DocumentWriter
from kb.search.keyword import KeywordIndex
from kb.search.searcher import Searcher
from kb.store.backend import Row
from kb.store.backup.archive import Archives
from kb.store.folder import DataFolder
from kb.store.open import open_store

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
        store = open_store(settings, terms.index_terms, shared=True)
        self._database, database, originals = store.database, store.database, store.originals
        recovery = Recovery(store)
        recorded = recovery.migrate()
        self._embedder = embedder = CurrentEmbedder(open_embedder(settings, None if reindex else recorded, priority))
        static = StaticEmbedder(settings.multilingual_dir)
        preparer = Preparer(embedder, settings.chunk_tokens, priority, static)
        recovery.open(preparer.versions, preparer.dimensions, reindex=reindex)
        live = ChunkIndex(embedder.dimensions, model=embedder.fingerprint, awaiting_reindex=recovery.fresh)
        keywords = KeywordIndex()
        searcher = Searcher(database, live, keywords, embedder, static=static)
        publisher = Publisher(database, live)
        queue = Queue(database)
        self._sandbox = sandbox = Sandbox(lambda: ocr.choose(settings.ocr))
        self._viewer = viewer = Viewer()
        trash = Trash(database, publisher, originals, settings.trash_days)
        writer = DocumentWriter(database, originals, sandbox, preparer, publisher)
        unpacker = Unpacker(database, originals, sandbox, publisher, writer, trash.put)
        pipeline = Pipeline(database, publisher, writer, unpacker)
        reindexer = Reindexer(database, sandbox, preparer, publisher, recovery.fresh)
        models = Models(settings, database, live, embedder, priority)
        switch = ModelSwitch(settings, database, models, searcher, preparer, priority)
        switch.sweep()
        bulk = Bulk(database, trash, queue)

        def remake(job: Row, interrupt: Interrupt) -> None:
            (switch.run if json.loads(job["payload"]) else reindexer.run)(job, interrupt)

        runs = {"note": pipeline.run, "file": pipeline.run, "reindex": remake, "bulk": bulk.run}
        concurrency = {"small": small_concurrency()}
        self._worker = worker = Worker(
            queue,
            lambda job, interrupt: runs[job["kind"]](job, interrupt),
            priority,
            concurrency,
            lambda lane: not live.is_behind and (lane == "bulk" or embedder.ready or not settings.embed_url),
        )
        following = Following(database, live, keywords, models)
        static_fill = StaticFill(database, preparer, live, static)
        indexed = IndexChecks(database, preparer, live, following, static_fill, worker.stopping)
        doctor = Doctor(
            StoreChecks(database, store.mender, originals, reindexer, indexed.reload, worker.stopping),
            indexed,
            FileChecks(database, originals, models.folder_in_use),
        )
        intake = Intake(database, originals, queue)
        self._folders = Folders(settings, database, originals, intake, queue, trash, priority.give_way)
        self._presence = Presence(queue, recovery, live, self._folders, settings.drain_seconds)
        self._housekeeper = Housekeeper(
            self._folder,
            database,
            originals,
            recovery,
            live,
            keywords,
            worker,
            doctor,
            trash,
            following,
            self._presence,
            static_fill,
        )
        engine = Engine(
            originals,
            queue,
            Feed(database),
            intake,
            Catalogue(database),
            trash,
            bulk,
            self._folders,
            self._presence,
            NoteEditor(database, preparer, publisher, live, trash.put),
            Archives(database, originals),
            doctor,
            Monitor(
                settings,
                store.location,
                database,
                originals,
                queue,
                embedder,
                preparer,
                keywords,
                live,
                static_fill,
            ),
            Views(database, originals, viewer, priority),
            database,
            publisher,
            searcher,
            switch,
            live,
            priority,
        )
        if reindex:
            engine.reindex()
        embedder.start()
        self._housekeeper.start()
        self._presence.start()
        return engine

    def drain(self) -> float:
        """Take no further job, and put those that run back. Return for how many seconds requests still come."""
        self._worker.release()
        return self._presence.drain()

    def close(self) -> None:
        """Finish what runs, then let go of the folder."""
        self._folders.stop()
        self._embedder.close()
        self._worker.stop()
        self._housekeeper.join()
        self._worker.stop()  # the lanes that the housekeeper started meanwhile
        self._presence.stop()
        self._folders.stop()  # those that it took over meanwhile
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
