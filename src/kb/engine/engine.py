"""The use cases. Synchronous: callers bring their own threads."""

import time
import uuid
from dataclasses import dataclass, replace
from pathlib import Path

from kb.core.errors import Conflict, InvalidRequest, NotFound
from kb.core.searches import Listing, SearchAnswer, SearchRequest
from kb.core.values import (
    Accepted,
    Cleared,
    Document,
    DocumentLinks,
    DocumentList,
    DocumentSummary,
    DocumentSummaryList,
    DuplicateList,
    JobList,
    JobStatus,
    LedgerPage,
    LedgerState,
    NoteHistory,
    TagList,
)
from kb.embedding.priority import Priority
from kb.engine.bulk import Bulk
from kb.engine.catalogue import Catalogue
from kb.engine.doctor.doctor import Doctor
from kb.engine.feed import Feed
from kb.engine.folders.folders import Folders
from kb.engine.intake import Intake
from kb.engine.jobs.queue import Queue
from kb.engine.monitor import Monitor
from kb.engine.presence import Presence
from kb.engine.switch import ModelSwitch, Wanted
from kb.engine.trash import Trash
from kb.engine.views import Views
from kb.index.chunk_index import ChunkIndex
from kb.ingest.notes import NoteEditor, find_note
from kb.ingest.publish import Publisher
from kb.search.duplicates import duplicates
from kb.search.searcher import Searcher
from kb.store import chunks, documents, jobs, links, listing, notes, trash
from kb.store.backend import Database
from kb.store.backup.archive import Archives
from kb.store.originals import Originals

CLEAR_PHRASE = "DELETE ALL"


@dataclass(frozen=True, slots=True)
class Original:
    """What was added: a file, or a note's text."""

    filename: str
    media_type: str
    path: Path | None = None
    text: str | None = None


@dataclass(frozen=True)
class Engine:
    """The public parts are called directly; the methods are the use cases that need several parts."""

    originals: Originals
    queue: Queue
    feed: Feed
    intake: Intake
    catalogue: Catalogue
    trash: Trash
    bulk: Bulk
    folders: Folders
    presence: Presence
    editor: NoteEditor
    archives: Archives
    doctor: Doctor
    monitor: Monitor
    views: Views
    _database: Database
    _publisher: Publisher
    _searcher: Searcher
    _switch: ModelSwitch
    _live: ChunkIndex
    _priority: Priority

    @property
    def id(self) -> str:
        """What tells it from other engines on the same knowledge base; empty if there can be none."""
        return self._database.engine_id

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

    def links(self, ref: str) -> DocumentLinks:
        with self._database.read() as tx:
            return links.of(tx, ref)

    def clear(self, confirm: str) -> Cleared:
        """Delete every document for good, also those in the trash."""
        if confirm != CLEAR_PHRASE:
            raise InvalidRequest(
                f"This deletes every document. Send confirm={CLEAR_PHRASE!r} to go on; nothing was deleted."
            )
        before = self._database.size_bytes()
        with self._database.write() as tx:
            self.queue.forget(tx)
            deleted = trash.count(tx)
            count, removed = self._publisher.clear(tx)
            freed = self.originals.clear(tx)
        self._database.vacuum()
        freed_bytes = freed + max(before - self._database.size_bytes(), 0)
        return Cleared(count, removed, freed_bytes, deleted or None)

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

    def tags(self) -> TagList:
        with self._database.read() as tx:
            return TagList(documents.tag_counts(tx))

    # Notes

    def note_versions(self, ref: str) -> NoteHistory:
        with self._database.read() as tx:
            return NoteHistory(notes.versions(tx, find_note(tx, ref)["id"]))

    # Jobs

    def reindex(self, wanted: Wanted | None = None) -> Accepted:
        """Make the whole index anew in the background, or only its vectors by another model.

        Return the job that already does it, if there is one.
        """
        if wanted is not None:
            self._switch.check(wanted.model)
        payload = {} if wanted is None else wanted.payload()
        with self._database.write() as tx:
            job = jobs.unfinished(tx, "reindex")
            if job is not None:
                model = jobs.next_model(tx, job.id)
                if model == payload.get("model"):
                    return Accepted(job.id, job.status)
                raise Conflict(
                    f"Job {job.id} is making the index {f'with {model}' if model else 'anew'} already. Wait for it, or "
                    f"stop it: kb jobs {job.id} --cancel"
                )
            job_id = str(uuid.uuid4())
            self.queue.submit(tx, jobs.NewJob(id=job_id, kind="reindex", lane="index", payload=payload))
        return Accepted(job_id, "queued")

    def jobs(self, status: JobStatus | None, limit: int, offset: int) -> JobList:
        with self._database.read() as tx:
            return JobList(*jobs.page(tx, status, limit, offset))

    def duplicates(self, min_similarity: float, limit: int) -> DuplicateList:
        return duplicates(self._database, self._live, min_similarity, limit)
