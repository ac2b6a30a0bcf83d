"""The use cases, each a short story over the parts. Synchronous: callers bring their own threads."""

import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from kb import __version__
from kb.core.errors import Conflict, InvalidRequest, KBError, NotFound
from kb.core.metadata import excess
from kb.core.settings import Settings
from kb.core.values import (
    Accepted,
    AddOutcome,
    Cleared,
    Diagnosis,
    Document,
    DocumentList,
    DocumentSummary,
    DocumentSummaryList,
    DuplicateList,
    Health,
    Job,
    JobList,
    JobStatus,
    Json,
    LedgerPage,
    LedgerState,
    Limits,
    Listing,
    ModelInfo,
    NoteHistory,
    Removed,
    SearchAnswer,
    SearchRequest,
    Status,
    StorageInfo,
    TagList,
)
from kb.embedding.lazy import WarmingEmbedder
from kb.embedding.priority import Priority
from kb.engine.doctor import Doctor
from kb.engine.jobs.queue import Queue
from kb.engine.views import Views
from kb.index.chunk_index import ChunkIndex
from kb.index.kernels import kernels
from kb.ingest.extract import detect
from kb.ingest.notes import NoteEditor, check_note_text, find_note
from kb.ingest.prepare import Preparer
from kb.ingest.publish import Publisher
from kb.ingest.requests import AddRequest, give_tags, given_metadata, known, note_request, settled, supersede
from kb.ingest.sandbox import confine
from kb.search.duplicates import duplicates
from kb.search.searcher import NO_VECTORS, Searcher
from kb.store import chunks, documents, jobs, listing, notes, originals
from kb.store.backend import Database, Row
from kb.store.backup.archive import Archive, Archives
from kb.store.originals import Originals, Staged

CLEAR_PHRASE = "DELETE ALL"
LARGE_FILE = 2**20  # bytes


@dataclass(frozen=True, slots=True)
class Original:
    """What was put in: a file, or a note's text."""

    filename: str
    media_type: str
    path: Path | None = None
    text: str | None = None


class Engine:
    def __init__(
        self,
        settings: Settings,
        database: Database,
        originals: Originals,
        queue: Queue,
        embedder: WarmingEmbedder,
        preparer: Preparer,
        publisher: Publisher,
        editor: NoteEditor,
        searcher: Searcher,
        live: ChunkIndex,
        archives: Archives,
        doctor: Doctor,
        priority: Priority,
        views: Views,
    ) -> None:
        self.settings = settings
        self.views = views
        self.queue = queue
        self.originals = originals
        self._database = database
        self._embedder = embedder
        self._preparer = preparer
        self._publisher = publisher
        self._editor = editor
        self._searcher = searcher
        self._live = live
        self._archives = archives
        self._doctor = doctor
        self._priority = priority

    # Adding

    def add_note(
        self,
        text: str,
        *,
        title: str | None = None,
        tags: list[str] | None = None,
        source_path: str | None = None,
        metadata: Json | None = None,
        replace_tags: bool = False,
        force: bool = False,
    ) -> Accepted:
        check_note_text(text)
        request = note_request(
            text,
            title=title,
            tags=tags,
            source_path=source_path,
            metadata=metadata,
            replace_tags=replace_tags,
            force=force,
        )
        return self._accept(request)

    def add_file(
        self,
        staged: Staged,
        filename: str,
        *,
        title: str | None = None,
        tags: list[str] | None = None,
        source_path: str | None = None,
        metadata: Json | None = None,
        force_ocr: bool = False,
        replace_tags: bool = False,
        force: bool = False,
    ) -> Accepted:
        """The file is durable before the job that names it; only then is the answer given."""
        if staged.size == 0:
            raise InvalidRequest(f"{filename!r} is empty: zero bytes. Nothing was added.")
        form = detect.detect(staged.head, staged.tail, filename)
        request = AddRequest(
            doc_type=form.doc_type,
            media_type=form.media_type,
            content_hash=staged.sha256,
            size_bytes=staged.size,
            filename=filename,
            title=title,
            tags=tags,
            source_path=source_path,
            metadata=metadata,
            force_ocr=force_ocr,
            replace_tags=replace_tags,
            force=force,
        )
        staged.sync()
        return self._accept(request, keep=lambda: self.originals.keep(staged))

    def _accept(self, request: AddRequest, keep: Callable[[], None] = lambda: None) -> Accepted:
        """Queue it, or answer at once when it is known already; refuse what must not replace the document at its path.

        `keep` runs before the commit, so that the row never names a file that is not there, and inside the
        transaction, so that nobody who deletes the same content at this moment takes the file away.
        """
        if request.replace_tags and request.tags is None:
            raise InvalidRequest("replace_tags says that tags replace others, but no tags were given. Send tags, too.")
        job_id = str(uuid.uuid4())
        with self._database.write() as tx:
            found = known(tx, request)
            if found is not None and found.refusal:
                raise Conflict(found.refusal, document_id=found.row["id"], current_version=found.row["version"])
            if request.metadata and (too_much := excess(given_metadata(found, request))):
                raise InvalidRequest(too_much)
            tagged = found is not None and found.holds and give_tags(tx, found.row, request)
            if found is not None and settled(found, request):
                outcome: AddOutcome = "kept" if found.kept else "updated" if tagged else "unchanged"
                self.queue.submit(tx, finished_job(job_id, request, found.row, outcome))
                supersede(tx, request, found, job_id)
                keep()
                return Accepted(job_id, "completed", found.row["id"], found.row["id"], outcome)
            self.queue.submit(tx, queued_job(job_id, request))
            keep()
        if found is not None:
            return Accepted(job_id, "queued", found.row["id"], found.row["id"] if found.same_content else None)
        return Accepted(job_id, "queued")

    # Searching

    def search(self, request: SearchRequest) -> SearchAnswer:
        started = time.perf_counter()
        with self._priority.search():
            found = self._searcher.search(request)
        took = round((time.perf_counter() - started) * 1000, 3)
        return SearchAnswer(request.query, request.mode, found.hits, len(found.hits), took, found.notice)

    # Documents

    def documents(self, wanted: Listing) -> DocumentList:
        with self._database.read() as tx:
            return DocumentList(*listing.page(tx, wanted), wanted.limit, wanted.offset)

    def summaries(self, wanted: Listing) -> DocumentSummaryList:
        with self._database.read() as tx:
            return DocumentSummaryList(*listing.summaries(tx, wanted), wanted.limit, wanted.offset)

    def summary(self, ref: str) -> DocumentSummary:
        with self._database.read() as tx:
            return listing.summary(tx, ref)

    def ledger(self, ref: str, state: LedgerState | None, limit: int, offset: int) -> LedgerPage:
        with self._database.read() as tx:
            return LedgerPage(*listing.ledger(tx, ref, state, limit, offset), limit, offset)

    def document(self, ref: str, *, first_chunk: int = 0, max_chunks: int | None = None) -> Document:
        with self._database.read() as tx:
            found = documents.with_text(tx, documents.find(tx, ref))
            return replace(found, chunks=chunks.of_document(tx, found.id, first_chunk, max_chunks))

    def delete(self, ref: str) -> Removed:
        with self._database.write() as tx:
            row = documents.find(tx, ref)
            removed = self._publisher.remove(tx, row["id"])
            if row["doc_type"] != "note" and not originals.is_named(tx, row["content_hash"]):
                tx.after_commit(lambda: self.originals.remove(row["content_hash"]))
        self._database.truncate_wal()
        return Removed(row["id"], row["filename"], removed)

    def clear(self, confirm: str) -> Cleared:
        """Everything, for good."""
        if confirm != CLEAR_PHRASE:
            raise InvalidRequest(
                f"This deletes every document. Send confirm={CLEAR_PHRASE!r} to go on; nothing was deleted."
            )
        before = self._database.size_bytes()
        freed: list[int] = []
        with self._database.write() as tx:
            self.queue.forget(tx)
            count, removed = self._publisher.clear(tx)
            # Before the next write: a file that is added from now on stays.
            tx.after_commit(lambda: freed.append(self.originals.clear()))
        self._database.vacuum()
        return Cleared(count, removed, sum(freed) + max(before - self._database.size_bytes(), 0))

    def text(self, ref: str, start: int = 0, end: int | None = None) -> str:
        """The extracted text that anchors point into."""
        with self._database.read() as tx:
            return documents.text(tx, documents.find(tx, ref)["id"])[start:end]

    def original(self, ref: str) -> Original:
        with self._database.read() as tx:
            row = documents.find(tx, ref)
            if row["doc_type"] == "note":
                return Original(f"note-{row['id']}.md", "text/markdown", text=documents.text(tx, row["id"]))
        if not self.originals.has(row["content_hash"]):
            raise NotFound(f"The original of document {row['id']} is not kept here; only its text is.")
        path = self.originals.verified(row["content_hash"])
        return Original(row["filename"], row["media_type"], path=path)

    def edit_tags(self, ref: str, add: list[str], remove: list[str]) -> Document:
        """Atomic; a change that changes nothing sets nothing."""
        with self._database.write() as tx:
            found = documents.get(tx, ref)
            tags = [tag for tag in found.tags if tag not in remove]
            tags += [tag for tag in dict.fromkeys(add) if tag not in tags]
            if tags != found.tags:
                documents.set_tags(tx, found.id, tags)
                documents.touch(tx, found.id)
            return documents.get(tx, found.id)

    def tags(self) -> TagList:
        with self._database.read() as tx:
            return TagList(documents.tag_counts(tx))

    # Notes

    def update_note(self, ref: str, text: str, expected_version: int | None = None) -> Document:
        return self._editor.update(ref, text, expected_version)

    def note_versions(self, ref: str) -> NoteHistory:
        with self._database.read() as tx:
            return NoteHistory(notes.versions(tx, find_note(tx, ref)["id"]))

    def restore_note(self, ref: str, version: int) -> Document:
        return self._editor.restore(ref, version)

    # Jobs

    def job(self, job_id: str) -> Job:
        return self.queue.get(job_id)

    def cancel_job(self, job_id: str) -> Job:
        return self.queue.cancel(job_id)

    def retry_job(self, job_id: str) -> Job:
        return self.queue.retry(job_id)

    def reindex(self) -> Accepted:
        """Make the whole index anew in the background; when that is under way already, the same job answers."""
        with self._database.write() as tx:
            job = jobs.unfinished(tx, "reindex")
            if job is not None:
                return Accepted(job.id, job.status)
            job_id = str(uuid.uuid4())
            self.queue.submit(tx, jobs.NewJob(id=job_id, kind="reindex", lane="index", payload={}))
        return Accepted(job_id, "queued")

    def jobs(self, status: JobStatus | None, limit: int, offset: int) -> JobList:
        with self._database.read() as tx:
            return JobList(*jobs.page(tx, status, limit, offset))

    # State

    def status(self) -> Status:
        with self._database.read() as tx:
            held, queue, updated = documents.counts(tx), jobs.counts(tx), documents.last_updated(tx)
            count = int(tx.value("SELECT COALESCE(sum(chunk_count), 0) FROM published"))
        folder = self.settings.data_dir
        return Status(
            version=__version__,
            model=ModelInfo(self._embedder.name, self._embedder.dimensions, self._embedder.max_tokens),
            device=self._embedder.device,
            documents=held,
            chunks=count,
            queue=queue,
            storage=StorageInfo(
                str(folder),
                str(self.settings.database_path),
                self._database.size_bytes(),
                self._database.name,
            ),
            limits=Limits(self.settings.max_file_mb, self._preparer.budget),
            last_updated=updated,
            health=self._health(),
            sandbox=confine.protection(),
            kernels=kernels.name,
        )

    def duplicates(self, min_similarity: float, limit: int) -> DuplicateList:
        return duplicates(self._database, self._live, min_similarity, limit)

    def backup(self) -> Archive:
        return self._archives.backup()

    def export(self) -> Archive:
        return self._archives.export()

    def examine(self, *, fix: bool = False) -> Diagnosis:
        return self._doctor.examine(fix=fix)

    def gauges(self) -> Iterator[tuple[str, str, float]]:
        """Name, meaning and value of what can be counted."""
        with self._database.read() as tx:
            held, queue = documents.counts(tx), jobs.counts(tx)
        yield "documents", "Documents.", held.total
        yield "chunks", "Published passages.", self._live.count
        yield "jobs_queued", "Jobs that wait.", queue.queued
        yield "jobs_running", "Jobs that run.", queue.running
        yield "jobs_failed", "Jobs that failed.", queue.failed
        yield "database_bytes", "Size of the database, its log included.", self._database.size_bytes()
        yield "staged_bytes", "Bytes of files that are being received.", self.originals.staged_bytes
        yield "cached_postings", "Places of terms held in memory.", self._searcher.cached_postings
        yield "words_ready", "1 when words are read ahead.", not self._searcher.is_cold
        yield "cached_queries", "Embedded questions held in memory.", self._embedder.cached_queries
        yield "model_ready", "1 when the embedding model is loaded.", self._embedder.ready

    def _health(self) -> Health:
        """Each part is tried, not assumed; what is wrong is named."""
        issues = []
        if not self._embedder.ready:
            issues.append(self._embedder.problem or "The embedding model is still loading.")
        if self._live.problem:
            issues.append(self._live.problem)
        elif self._live.without_vector:
            issues.append(NO_VECTORS.format(n=self._live.without_vector))
        if self.queue.problem:
            issues.append(self.queue.problem)
        if database := self._trouble(self._try_database):
            issues.append(database)
        if storage := self._trouble(self.originals.check):
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
            tx.value("SELECT count(*) FROM meta")

    def _trouble(self, attempt: Callable[[], None]) -> str | None:
        try:
            attempt()
        except KBError as error:
            return error.message
        return None


def queued_job(job_id: str, request: AddRequest) -> jobs.NewJob:
    return jobs.NewJob(
        id=job_id,
        kind="note" if request.is_note else "file",
        lane="large" if is_slow(request) else "small",
        payload=request.payload(),
        filename=request.filename,
    )


def is_slow(request: AddRequest) -> bool:
    """Whether it would keep small jobs waiting: large, or certain to be read by OCR."""
    return request.size_bytes >= LARGE_FILE or request.doc_type == "image" or request.force_ocr


def finished_job(job_id: str, request: AddRequest, row: Row, outcome: AddOutcome) -> jobs.NewJob:
    """The record of something that was known already."""
    return jobs.NewJob(
        id=job_id,
        kind="note" if request.is_note else "file",
        status="completed",
        filename=request.filename,
        document_id=row["id"],
        uid=row["uid"],
        outcome=outcome,
    )
