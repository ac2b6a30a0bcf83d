"""From an accepted job to a published document: extract, chunk, embed, write unpublished, publish.

Nothing of a document is visible before its last batch is written; then one short transaction publishes it, gives it
its tags and finishes the job. A document never appears twice or half.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kb.errors import JobFailure
from kb.ingest.chunk import Kind
from kb.ingest.extract import EXTRACTORS, Part
from kb.ingest.extract.text import markdown_title
from kb.ingest.prepare import Preparer
from kb.ingest.publish import Publisher
from kb.ingest.request import AddRequest, Known, fill_in, known, supersede
from kb.nouns import Json, LedgerEntry
from kb.store import chunks, documents, jobs, notes, originals
from kb.store.backend import Database, Row, Transaction
from kb.store.chunks import NewChunk
from kb.store.documents import Content
from kb.store.originals import Originals

SEPARATOR = "\n\n"  # between the parts of a document's text
TITLE_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class Draft:
    """A document on its way: what it will be, and what is written of it so far."""

    document_id: int
    revision: int
    title: str
    titled: bool
    text: str
    ledger: list[LedgerEntry]
    written: list[tuple[int, NewChunk]]


class MovedError(Exception):
    """The document that this content belongs to came into being, or was deleted, while it was being prepared."""


class Pipeline:
    """`changed` is told the id of every job that made progress or ended."""

    def __init__(
        self,
        database: Database,
        originals: Originals,
        preparer: Preparer,
        publisher: Publisher,
        changed: Callable[[str], None],
    ) -> None:
        self._database = database
        self._originals = originals
        self._preparer = preparer
        self._publisher = publisher
        self._changed = changed

    def run(self, job: Row, interrupt: Callable[[], None]) -> None:
        """Do one job; `interrupt` raises between steps when it should stop. JobFailure: it cannot be read."""
        request = AddRequest.from_payload(job["payload"])
        try:
            self._attempt(job, request, interrupt)
        except MovedError:
            self._attempt(job, request, interrupt)

    def _attempt(self, job: Row, request: AddRequest, interrupt: Callable[[], None]) -> None:
        with self._database.write() as tx:
            if self._answered(tx, job, request):
                return
            document_id, revision = self._place(tx, request)
        try:
            draft = self._write(job["id"], request, document_id, revision, interrupt)
            with self._database.write() as tx:
                self._publish(tx, job, request, draft)
        except BaseException:
            self._withdraw(document_id, revision)
            raise

    def _answered(self, tx: Transaction, job: Row, request: AddRequest) -> bool:
        """Whether somebody else added the same, or something newer, while this job waited."""
        found = known(tx, request)
        if found is None:
            return False
        overtaken = found.row["accepted"] > job["seq"]
        needs_title = request.title is not None and not found.row["titled"]
        if not overtaken and (not found.same_content or needs_title):
            return False
        if found.same_content:
            fill_in(tx, found.row, request)
        if not overtaken:
            supersede(tx, request, found.row, job["id"])
        self._finish(tx, job, found.row, found.row["chunk_count"])
        self._let_go(tx, request.content_hash, request.doc_type)
        return True

    def _place(self, tx: Transaction, request: AddRequest) -> tuple[int, int]:
        found = known(tx, request)
        document_id = int(found.row["id"]) if found else documents.reserve(tx)
        return document_id, chunks.next_revision(tx, document_id)

    def _write(
        self, job_id: str, request: AddRequest, document_id: int, revision: int, interrupt: Callable[[], None]
    ) -> Draft:
        """Extract, chunk and embed, and write the chunks in batches that nobody sees yet."""
        texts: list[str] = []
        ledger: list[LedgerEntry] = []
        written: list[tuple[int, NewChunk]] = []
        title: str | None = None
        offset = 0
        for part, kind in self._parts(request):
            title = title or self._title(request, part)
            passages = self._preparer.passages(part, kind)
            for batch in self._preparer.batches(part, passages, title, offset, first=len(written)):
                interrupt()
                with self._database.write() as tx:
                    if not documents.exists(tx, document_id):
                        raise MovedError
                    ids = chunks.add(tx, document_id, revision, batch)
                    written += zip(ids, batch, strict=True)
                    if len(passages) > len(batch):
                        jobs.progress(tx, job_id, len(written), len(passages), "Generating embeddings")
                        tx.after_commit(lambda: self._changed(job_id))
            ledger.append(LedgerEntry(part.name, part.state, part.reason))
            texts.append(part.text)
            offset += len(part.text) + len(SEPARATOR)
        if not written or title is None:
            raise JobFailure("no_text", "No text found: there is nothing to search for in it.")
        return Draft(
            document_id,
            revision,
            title,
            self._given_title(request) is not None,
            SEPARATOR.join(texts),
            ledger,
            written,
        )

    def _parts(self, request: AddRequest) -> Iterator[tuple[Part, Kind]]:
        if request.is_note:
            yield Part("text", request.text or ""), "markdown"
            return
        extractor = EXTRACTORS[request.doc_type]
        for part in extractor.parts(self._originals.path(request.content_hash)):
            yield part, extractor.kind

    def _publish(self, tx: Transaction, job: Row, request: AddRequest, draft: Draft) -> None:
        if self._answered(tx, job, request):
            chunks.discard(tx, draft.document_id, draft.revision)
            return
        found = known(tx, request)
        if not documents.exists(tx, draft.document_id) or (found and found.row["id"] != draft.document_id):
            raise MovedError
        tags, metadata = self._details(tx, request, found)
        content = Content(
            title=draft.title,
            titled=draft.titled,
            filename=None if request.is_note else request.filename,
            source_path=request.source_path if found is None else found.row["source_path"],
            doc_type=request.doc_type,
            media_type=request.media_type,
            content_hash=request.content_hash,
            size_bytes=request.size_bytes,
            metadata=metadata,
            processing_method="text_extraction",
            ledger=draft.ledger,
            accepted=job["seq"],
        )
        self._publisher.publish(tx, draft.document_id, content, draft.revision, draft.written)
        if found is not None:
            self._let_go(tx, found.row["content_hash"], found.row["doc_type"])
        documents.set_tags(tx, draft.document_id, tags)
        if not request.is_note:
            documents.set_text(tx, draft.document_id, draft.text)
        elif found is None or not found.same_content:
            notes.add_version(tx, draft.document_id, draft.text)
        self._finish(tx, job, documents.find(tx, draft.document_id), len(draft.written))

    def _let_go(self, tx: Transaction, content_hash: str, doc_type: str) -> None:
        """Of an original that this job put aside or did not need, unless anything else still needs it."""
        if doc_type != "note" and not originals.is_named(tx, content_hash):
            tx.after_commit(lambda: self._originals.remove(content_hash))

    def _details(self, tx: Transaction, request: AddRequest, found: Known | None) -> tuple[list[str], Json]:
        """Tags and metadata: with new content, what was given replaces the old; with the same, it is added."""
        if found is None:
            return request.tags or [], request.metadata or {}
        if found.same_content:
            fill_in(tx, found.row, request)
        held = documents.get(tx, found.row["id"])
        if found.same_content:
            return held.tags, held.metadata
        tags = held.tags if request.tags is None else request.tags
        return tags, held.metadata if request.metadata is None else request.metadata

    def _finish(self, tx: Transaction, job: Row, document: Row, chunk_count: int) -> None:
        jobs.complete(tx, job["id"], document["id"], document["uid"], chunk_count)
        tx.after_commit(lambda: self._changed(job["id"]))

    def _withdraw(self, document_id: int, revision: int) -> None:
        """Leave nothing of a content that will not be published."""
        with self._database.write() as tx:
            chunks.discard(tx, document_id, revision)

    def _title(self, request: AddRequest, part: Part) -> str:
        if given := self._given_title(request):
            return given
        if request.is_note:
            return first_line(part.text)
        found = part.title or (markdown_title(part.text) if request.doc_type == "markdown" else None)
        return (found or request.filename or "untitled")[:TITLE_CHARACTERS]

    def _given_title(self, request: AddRequest) -> str | None:
        return request.title or str((request.metadata or {}).get("title") or "") or None


def first_line(text: str) -> str:
    """The title of a note that was given none."""
    for line in text.splitlines():
        if title := line.strip().lstrip("#").strip():
            return title if len(title) <= TITLE_CHARACTERS else title[: TITLE_CHARACTERS - 1] + "…"
    return text.strip()[:TITLE_CHARACTERS]
