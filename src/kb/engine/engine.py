"""The use cases, each a short story over the parts. Synchronous: callers bring their own threads."""

import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from kb.core.errors import InvalidRequest, NotFound
from kb.core.status import Diagnosis, Status
from kb.core.values import (
    Accepted,
    AddOptions,
    Cleared,
    Document,
    DocumentList,
    DocumentSummary,
    DocumentSummaryList,
    DuplicateList,
    Job,
    JobList,
    JobStatus,
    LedgerPage,
    LedgerState,
    Listing,
    NoteHistory,
    Removed,
    SearchAnswer,
    SearchRequest,
    TagList,
)
from kb.embedding.priority import Priority
from kb.engine.doctor.doctor import Doctor
from kb.engine.feed import Feed
from kb.engine.intake import Intake
from kb.engine.jobs.queue import Queue
from kb.engine.monitor import Monitor
from kb.engine.views import Views
from kb.index.chunk_index import ChunkIndex
from kb.ingest.notes import NoteEditor, find_note
from kb.ingest.publish import Publisher
from kb.search.duplicates import duplicates
from kb.search.searcher import Searcher
from kb.store import chunks, documents, jobs, listing, notes, originals
from kb.store.backend import Database
from kb.store.backup.archive import Archive, Archives
from kb.store.originals import Originals, Staged

CLEAR_PHRASE = "DELETE ALL"
NO_OPTIONS = AddOptions()


@dataclass(frozen=True, slots=True)
class Original:
    """What was added: a file, or a note's text."""

    filename: str
    media_type: str
    path: Path | None = None
    text: str | None = None


class Engine:
    def __init__(
        self,
        database: Database,
        originals: Originals,
        queue: Queue,
        feed: Feed,
        intake: Intake,
        publisher: Publisher,
        editor: NoteEditor,
        searcher: Searcher,
        live: ChunkIndex,
        archives: Archives,
        doctor: Doctor,
        monitor: Monitor,
        priority: Priority,
        views: Views,
    ) -> None:
        self.views = views
        self.queue = queue
        self.feed = feed
        self.originals = originals
        self._database = database
        self._intake = intake
        self._publisher = publisher
        self._editor = editor
        self._searcher = searcher
        self._live = live
        self._archives = archives
        self._doctor = doctor
        self._monitor = monitor
        self._priority = priority

    # Adding

    def add_note(self, text: str, options: AddOptions = NO_OPTIONS) -> Accepted:
        return self._intake.add_note(text, options)

    def add_file(self, staged: Staged, filename: str, options: AddOptions = NO_OPTIONS) -> Accepted:
        return self._intake.add_file(staged, filename, options)

    def reread(self, ref: str, *, force_ocr: bool, pages: list[int] | None) -> Accepted:
        return self._intake.reread(ref, force_ocr=force_ocr, pages=pages)

    # Searching

    def search(self, request: SearchRequest) -> SearchAnswer:
        started = time.perf_counter()
        with self._priority.search():
            found = self._searcher.search(request)
        took = round((time.perf_counter() - started) * 1000, 3)
        return SearchAnswer(request.query, request.mode, found.hits, len(found.hits), took, found.notice, found.facets)

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
        """Delete every document for good."""
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
        """Add and remove tags in one transaction; nothing is written if nothing changes."""
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
        """Make the whole index anew in the background, or return the job that already does."""
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
        return self._monitor.status()

    def gauges(self) -> Iterator[tuple[str, str, float]]:
        return self._monitor.gauges()

    def duplicates(self, min_similarity: float, limit: int) -> DuplicateList:
        return duplicates(self._database, self._live, min_similarity, limit)

    def backup(self) -> Archive:
        return self._archives.backup()

    def export(self) -> Archive:
        return self._archives.export()

    def examine(self, *, fix: bool = False) -> Diagnosis:
        return self._doctor.examine(fix=fix)
