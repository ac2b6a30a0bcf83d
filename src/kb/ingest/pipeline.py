"""From an accepted job to a published document: extract, chunk, embed, write unpublished, publish.

One transaction publishes a document with its tags and finishes the job: no document appears twice or half.
"""

import json
import time
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass, replace

from kb.core.errors import JobFailure, JobSlow
from kb.core.metadata import MAX_BYTES, excess, fitted, size_of
from kb.core.types import Interrupt
from kb.core.values import AddOutcome, LedgerEntry
from kb.ingest import requests
from kb.ingest.draft import Draft
from kb.ingest.extract import FORMATS, Part, Source
from kb.ingest.prepare import Placed, Preparer
from kb.ingest.publish import MovedError, NewRevision, Publisher, attempted
from kb.ingest.recut import text_passages
from kb.ingest.requests import AddRequest, Known, known
from kb.ingest.sandbox.sandbox import Sandbox
from kb.store import chunks, documents, jobs, line_boxes, notes, originals
from kb.store.backend import Database, Row, Transaction
from kb.store.documents import Content
from kb.store.originals import Originals

EVERY = 0.2  # seconds at least between two records of progress: each is a write to the disk


@dataclass
class Steps:
    """The progress of a job, recorded as it goes: by parts if a file has several, else by passages.

    `changed` is called after each record, to wake the watchers of the job.
    """

    _database: Database
    _job_id: str
    _changed: Callable[[], None]
    _recorded: float = 0.0
    _by_parts: bool = False

    def part_done(self, part: Part) -> None:
        """Name the next part as the current step: reading it takes most of the time."""
        self._by_parts = part.total > 1
        if part.number < part.total:
            unit = part.name.split()[0]
            self._record(part.number, part.total, f"Processing {unit} {part.number + 1} of {part.total}")

    def embedded(self, passages: int, total: int) -> None:
        """Record how many of the known passages are embedded."""
        if not self._by_parts and passages < total:
            self._record(passages, total, "Generating embeddings")

    def _record(self, completed: int, total: int, step: str) -> None:
        if time.monotonic() - self._recorded < EVERY:
            return
        with self._database.write(durable=False) as tx:
            jobs.progress(tx, self._job_id, completed, total, step)
            tx.after_commit(self._changed)
        self._recorded = time.monotonic()


@dataclass(frozen=True)
class Pipeline:
    """`changed` is told the id of every job that made progress or ended."""

    _database: Database
    _originals: Originals
    _sandbox: Sandbox
    _preparer: Preparer
    _publisher: Publisher
    _changed: Callable[[str], None]

    def run(self, job: Row, interrupt: Interrupt) -> None:
        """Do one job; `interrupt` raises between steps when it should stop. JobFailure: it cannot be read."""
        request = AddRequest(**json.loads(job["payload"]))
        attempted(lambda: self._attempt(job, request, interrupt))

    def _attempt(self, job: Row, request: AddRequest, interrupt: Interrupt) -> None:
        interrupt()
        # Not durable: until the document is published, its job begins again after a power cut.
        with self._database.write(durable=False) as tx:
            found = known(tx, request)
            draft = None if found and answers(found, job, request) else begun(tx, request, found)
        if draft is None:
            with self._database.write() as tx:
                if not self._answered(tx, job, request, known(tx, request)):
                    raise MovedError
            return
        with self._publisher.withdrawing(draft.revision):
            self._write(job, request, draft, interrupt)
            interrupt()
            with self._database.write() as tx:
                found = known(tx, request)
                if not self._answered(tx, job, request, found):
                    self._publish(tx, job, request, draft, found)

    def _answered(self, tx: Transaction, job: Row, request: AddRequest, found: Known | None) -> bool:
        """Finish the job without new content, if the document needs none."""
        if found is None or not answers(found, job, request):
            return False
        tagged = found.holds and requests.give_tags(tx, found.row, request)
        if found.row["accepted"] <= job["seq"]:
            requests.supersede(tx, request, found, job["id"])
        self._finish(tx, job, found.row, found.row["chunk_count"], found.outcome(tagged=tagged))
        self._let_go(tx, request.content_hash, request.doc_type)
        return True

    def _write(self, job: Row, request: AddRequest, draft: Draft, interrupt: Interrupt) -> None:
        """Extract, chunk and embed; write the chunks unpublished."""
        steps = Steps(self._database, job["id"], lambda: self._changed(job["id"]))
        with closing(self._passages(job, request, draft, interrupt, steps)) as passages:
            for batch in self._preparer.batches(passages):
                interrupt()
                self._publisher.write(draft.revision, batch)
                steps.embedded(len(draft.revision), draft.expected)

    def _passages(
        self, job: Row, request: AddRequest, draft: Draft, interrupt: Interrupt, steps: Steps
    ) -> Generator[Placed]:
        """The passages of the text and then of the metadata, which are not complete before the last part is read."""
        if draft.stored is None:
            yield from self._extracted(job, request, draft, interrupt, steps)
        else:
            yield from self._recut(draft, draft.stored, interrupt)
        if not draft.expected:
            nothing = "all of it is encoded bytes" if draft.encoded.places else "there is nothing to search for in it"
            raise JobFailure("no_text", f"No text found: {nothing}.")
        if request.metadata and (too_much := excess(draft.given)):  # together with what another job brought meanwhile
            raise JobFailure("too_complex", too_much)
        if draft.stored is None:
            draft.metadata = fitted(draft.metadata, MAX_BYTES - size_of(draft.given))
        draft.metadata |= draft.given
        yield from self._preparer.metadata_passages(draft.metadata, draft.title)

    def _extracted(
        self, job: Row, request: AddRequest, draft: Draft, interrupt: Interrupt, steps: Steps
    ) -> Generator[Placed]:
        kind = "markdown" if request.is_note else FORMATS[request.doc_type].kind
        with closing(self._parts(job, request, interrupt)) as parts:
            for part in parts:
                interrupt()
                draft.title = draft.title or draft.given_title or title_of(request, part)
                passages = self._preparer.passages(part, kind, draft.title, draft.offset, interrupt)
                draft.take(part, len(passages))
                steps.part_done(part)
                yield from passages
        if draft.encoded.places:
            draft.ledger.append(LedgerEntry("encoded bytes", "empty", draft.encoded.reason))

    def _recut(self, draft: Draft, row: Row, interrupt: Interrupt) -> Generator[Placed]:
        """Take the text from the database: only the title or the metadata change, so no file is read again."""
        with self._database.read() as tx:
            text = documents.text(tx, row["id"])
            old = chunks.of_document(tx, row["id"], 0, None)
        draft.title = draft.given_title or row["title"]
        draft.texts = [text]
        draft.metadata = json.loads(row["metadata"])
        for passages in text_passages(self._preparer, row["doc_type"], draft.title, text, old, interrupt):
            draft.expect(len(passages))
            yield from passages

    def _parts(self, job: Row, request: AddRequest, interrupt: Interrupt) -> Generator[Part]:
        if request.is_note:
            yield Part("text", request.text or "")
            return
        source = Source(
            self._originals.verified(request.content_hash),
            request.filename or "",
            request.force_ocr,
            frozenset(request.ocr_pages or ()),
        )

        def before_ocr() -> None:
            """OCR takes seconds a page: a scan that looked like a small file must not delay small jobs."""
            if job["lane"] == "small":
                raise JobSlow

        yield from self._sandbox.parts(request.doc_type, source, interrupt, before_ocr)

    def _publish(self, tx: Transaction, job: Row, request: AddRequest, draft: Draft, found: Known | None) -> None:
        document_id = draft.revision.document_id
        if not documents.exists(tx, document_id) or not stands(draft, found, request):
            raise MovedError
        held = documents.tags_of(tx, [document_id])[document_id]
        # Reading again brings no new content: an addition that was accepted before and waits still replaces it.
        accepted = found.row["accepted"] if found and request.document_id is not None else job["seq"]
        self._publisher.publish(tx, draft.revision, content_of(draft, request, found, accepted))
        if found is not None:
            self._let_go(tx, found.row["content_hash"], found.row["doc_type"])
        documents.set_tags(tx, document_id, requests.tags_for(held, request))
        if not request.is_note:
            documents.set_text(tx, document_id, draft.text)
            if draft.stored is None:
                line_boxes.replace(tx, document_id, draft.lines)
        elif found is None or not found.same_content:
            notes.add_version(tx, document_id, draft.text)
        if found is None or request.source_path is not None:
            documents.set_brought(tx, document_id)
        published = documents.find(tx, document_id)
        self._finish(tx, job, published, len(draft.revision), "added" if found is None else "updated")

    def _let_go(self, tx: Transaction, content_hash: str, doc_type: str) -> None:
        """Remove an original that this job replaced or did not need, unless something else needs it."""
        if doc_type != "note" and not originals.is_named(tx, content_hash):
            tx.after_commit(lambda: self._originals.remove(content_hash))

    def _finish(self, tx: Transaction, job: Row, document: Row, chunk_count: int, outcome: AddOutcome) -> None:
        jobs.complete(tx, job["id"], document["id"], document["uid"], chunk_count, outcome)
        tx.after_commit(lambda: self._changed(job["id"]))


def answers(found: Known, job: Row, request: AddRequest) -> bool:
    """Whether the same, or something newer, was added while this job waited.

    Raises JobFailure if the document was edited in kb meanwhile: then it is not replaced.
    """
    if request.document_id is not None:
        return False
    if found.row["accepted"] > job["seq"]:
        return True
    if found.refusal:
        raise JobFailure("conflict", found.refusal)
    return requests.settled(found, request)


def begun(tx: Transaction, request: AddRequest, found: Known | None) -> Draft:
    return Draft(
        NewRevision(int(found.row["id"]) if found else documents.reserve(tx)),
        given_title=requests.title_for(found, request),
        given=requests.given_metadata(found, request),
        stored=found.row if found and found.same_content and not requests.must_be_read(found.row, request) else None,
    )


def stands(draft: Draft, found: Known | None, request: AddRequest) -> bool:
    """Whether the document is still as it was when the draft was begun."""
    if found is not None and found.row["id"] != draft.revision.document_id:
        return False
    if draft.stored is not None and (found is None or found.row["revision"] != draft.stored["revision"]):
        return False
    return (
        requests.title_for(found, request) == draft.given_title
        and requests.given_metadata(found, request) == draft.given
    )


def content_of(draft: Draft, request: AddRequest, found: Known | None, accepted: int) -> Content:
    if draft.stored:  # the same bytes under another name are still the document that they were
        return replace(
            documents.content_of(draft.stored),
            title=draft.title,
            titled=draft.given_title is not None,
            metadata=draft.metadata,
            given=draft.given,
            accepted=accepted,
        )
    return Content(
        title=draft.title or "untitled",
        titled=draft.given_title is not None,
        filename=request.filename,
        source_path=request.source_path if found is None else found.row["source_path"],
        doc_type=request.doc_type,
        media_type=request.media_type,
        content_hash=request.content_hash,
        size_bytes=request.size_bytes,
        metadata=draft.metadata,
        given=draft.given,
        processing_method=draft.method(request.doc_type),
        ledger=draft.ledger,
        accepted=accepted,
    )


def title_of(request: AddRequest, part: Part) -> str:
    if request.is_note:
        return requests.first_line(part.text)
    return (part.title or request.filename or "untitled")[: requests.TITLE_CHARACTERS]
