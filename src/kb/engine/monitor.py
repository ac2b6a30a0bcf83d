"""How the engine is: its status, its health and its gauges."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from kb import __version__
from kb.core.errors import KBError, Unavailable
from kb.core.settings import Settings
from kb.core.status import Health, Limits, ModelInfo, Multilingual, Status, StorageInfo, Switching
from kb.embedding.current import CurrentEmbedder
from kb.engine.jobs.queue import Queue
from kb.engine.static_fill import StaticFill
from kb.index.chunk_index import ChunkIndex
from kb.index.kernels import kernels
from kb.ingest.prepare import Preparer
from kb.ingest.sandbox import confine
from kb.search.keyword import KeywordIndex
from kb.search.searcher import NO_VECTORS
from kb.store import chunks, documents, jobs, meta, trash
from kb.store.backend import Database, Transaction
from kb.store.originals import Originals


@dataclass(frozen=True)
class Monitor:
    _settings: Settings
    _location: str  # of the database
    _database: Database
    _originals: Originals
    _queue: Queue
    _embedder: CurrentEmbedder
    _preparer: Preparer
    _keywords: KeywordIndex
    _live: ChunkIndex
    _static_fill: StaticFill

    def status(self) -> Status:
        with self._database.read() as tx:
            held, queue, updated = documents.counts(tx), jobs.counts(tx), documents.last_updated(tx)
            count, deleted = chunks.published_count(tx), trash.count(tx)
            switching = self._switching(tx)
        return Status(
            version=__version__,
            model=ModelInfo(self._embedder.name, self._embedder.dimensions, self._embedder.max_tokens),
            device=self._embedder.device,
            documents=held,
            chunks=count,
            queue=queue,
            storage=StorageInfo(
                str(self._settings.data_dir),
                self._location,
                self._database.size_bytes(),
                self._database.name,
            ),
            limits=Limits(self._settings.max_file_mb, self._preparer.budget),
            last_updated=updated,
            health=self._health(),
            sandbox=confine.protection(),
            trash=deleted,
            engines=self._database.engines(),
            multilingual=Multilingual(self._static_fill.is_installed, len(self._live.without_static)),
            kernels=kernels.name,
            switching=switching,
        )

    def _switching(self, tx: Transaction) -> Switching | None:
        job = jobs.unfinished(tx, "reindex")
        model = None if job is None else jobs.next_model(tx, job.id)
        return None if job is None or model is None else Switching(model, job.id, job.progress)

    def gauges(self) -> Iterator[tuple[str, str, float]]:
        """Yield the name, help text and value of each gauge."""
        yield from self._database.gauges()
        with suppress(Unavailable):
            yield from self._stored()
        yield "chunks", "Published passages.", self._live.count
        yield "staged_bytes", "Bytes of files that are being received.", self._originals.staged_bytes
        yield "drawn_page_bytes", "Bytes of drawn pages kept on the disk.", self._originals.kept_page_bytes
        yield "cached_postings", "Postings held in memory.", self._keywords.cached_postings
        yield "words_ready", "1 when words are read ahead.", not self._keywords.is_cold
        yield "cached_queries", "Embedded queries held in memory.", self._embedder.cached_queries
        yield "model_ready", "1 when the embedding model is loaded.", self._embedder.ready

    def _stored(self) -> Iterator[tuple[str, str, float]]:
        """What the database has to be asked for."""
        with self._database.read() as tx:
            held, queue, deleted = documents.counts(tx), jobs.counts(tx), trash.count(tx)
        yield "documents", "Documents.", held.total
        yield "trash_documents", "Documents in the trash.", deleted
        yield "jobs_queued", "Jobs that wait.", queue.queued
        yield "jobs_running", "Jobs that run.", queue.running
        yield "jobs_failed", "Jobs that failed.", queue.failed
        yield "database_bytes", "Size of the database, its log included.", self._database.size_bytes()

    def _health(self) -> Health:
        """Try each part, and name what is wrong."""
        issues = []
        if not self._embedder.ready:
            issues.append(self._embedder.problem or "The embedding model is still loading.")
        if self._live.problem:
            issues.append(self._live.problem)
        elif self._live.without_vector:
            issues.append(NO_VECTORS.format(n=self._live.without_vector))
        if self._queue.problem:
            issues.append(self._queue.problem)
        if database := trouble(self._try_database):
            issues.append(database)
        if storage := trouble(self._originals.check):
            issues.append(storage)
        return Health(
            status="degraded" if issues else "healthy",
            database=database is None,
            storage=storage is None,
            model=self._embedder.ready,
            issues=issues,
        )

    def _try_database(self) -> None:
        with self._database.read() as tx:
            meta.probe(tx)


def trouble(attempt: Callable[[], None]) -> str | None:
    """Why an attempt fails; None if it succeeds."""
    try:
        attempt()
    except KBError as error:
        return error.message
    return None
