"""One document: extract, chunk, embed, write unpublished, publish."""

import json
from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from kb.core.errors import JobFailure, JobSlow
from kb.core.metadata import MAX_BYTES, excess, fitted, size_of
from kb.core.types import Interrupt
from kb.core.values import CONTAINERS, Anchor, FailureCode, LedgerEntry
from kb.ingest import requests
from kb.ingest.draft import Draft
from kb.ingest.extract import FORMATS, Part, Source
from kb.ingest.prepare import Placed, Preparer
from kb.ingest.publish import MovedError, NewRevision, Publisher
from kb.ingest.recut import text_passages
from kb.ingest.requests import AddRequest, Known
from kb.ingest.sandbox.sandbox import Sandbox
from kb.ingest.steps import Progress
from kb.store import chunks, documents, line_boxes, links, notes, originals
from kb.store.backend import Database, Row, Transaction
from kb.store.documents import Content
from kb.store.originals import Originals

READ = ("ok", "ocr")  # states of parts that have text
EXHAUSTED: tuple[FailureCode, ...] = ("crashed", "out_of_memory", "timeout")


@dataclass(frozen=True, slots=True)
class Task:
    """What a job does about one document. `interrupt` raises between steps when the job should stop."""

    job: Row
    request: AddRequest
    interrupt: Interrupt
    steps: Progress
    file: Path | None = None  # the file; None for a note, and for a file that lies among the originals

    def before_ocr(self) -> None:
        """OCR takes seconds a page: a scan that looked like a small file must not delay small jobs."""
        if self.job["lane"] == "small":
            raise JobSlow


@dataclass(frozen=True)
class DocumentWriter:
    _database: Database
    _originals: Originals
    _sandbox: Sandbox
    _preparer: Preparer
    _publisher: Publisher

    def write(self, task: Task, draft: Draft) -> None:
        """Extract, chunk and embed; write the chunks unpublished."""
        with closing(self._passages(task, draft)) as passages:
            for batch in self._preparer.batches(passages):
                task.interrupt()
                self._publisher.write(draft.revision, batch)
                task.steps.embedded(len(draft.revision), draft.expected)

    def publish(self, tx: Transaction, task: Task, draft: Draft, found: Known | None) -> Row:
        """Publish what was written; `found` is the document as it is now. Return its row."""
        request, document_id = task.request, draft.revision.document_id
        tx.hold(task.job)
        if not documents.takes_content(tx, document_id) or not stands(draft, found, request):
            raise MovedError
        held = documents.tags_of(tx, [document_id])[document_id]
        # Reading again brings no new content: an addition that was accepted before and waits still replaces it.
        accepted = found.row["accepted"] if found and request.document_id is not None else task.job["seq"]
        self._publisher.publish(tx, draft.revision, content_of(draft, request, found, accepted))
        if found is not None:
            self.let_go(tx, found.row["content_hash"], found.row["doc_type"])
        documents.set_tags(tx, document_id, requests.tags_for(held, request))
        if not request.is_note:
            documents.set_text(tx, document_id, draft.text)
            if draft.stored is None:
                line_boxes.replace(tx, document_id, draft.lines)
        elif found is None or not found.same_content:
            notes.add_version(tx, document_id, draft.text)
        if found is None or request.source_path is not None:
            documents.set_brought(tx, document_id)
        links.refresh(tx, document_id)
        return documents.find(tx, document_id)

    def let_go(self, tx: Transaction, content_hash: str, doc_type: str) -> None:
        """Remove an original that was replaced or is not needed, unless something else needs it."""
        if doc_type != "note" and not originals.is_named(tx, content_hash):
            self._originals.remove(tx, content_hash)

    def _passages(self, task: Task, draft: Draft) -> Generator[Placed]:
        """The passages of the text and then of the metadata, which are not complete before the last part is read."""
        if draft.stored is None:
            yield from self._extracted(task, draft)
        else:
            yield from self._recut(task, draft, draft.stored)
        if not draft.expected:
            nothing = "all of it is encoded bytes" if draft.encoded.places else "there is nothing to search for in it"
            raise JobFailure("no_text", f"No text found: {nothing}.")
        if task.request.metadata and (too_much := excess(draft.given)):  # with what another job brought meanwhile
            raise JobFailure("too_complex", too_much)
        if draft.stored is None:
            draft.metadata = fitted(draft.metadata, MAX_BYTES - size_of(draft.given))
        draft.metadata |= draft.given
        yield from self._preparer.metadata_passages(draft.metadata, draft.title)

    def _extracted(self, task: Task, draft: Draft) -> Generator[Placed]:
        request = task.request
        kind = "markdown" if request.is_note else FORMATS[request.doc_type].kind
        with closing(self._parts(task)) as parts:
            for found in parts:
                task.interrupt()
                part = replace(found, anchor=located(found.anchor, request))
                draft.title = draft.title or draft.given_title or title_of(request, part)
                passages = self._preparer.passages(part, kind, draft.title, draft.offset, task.interrupt)
                draft.take(part, len(passages))
                task.steps.part_done(part)
                yield from passages
        if draft.read_before and not any(entry.state in READ for entry in draft.ledger):
            reasons = "; ".join(dict.fromkeys(entry.reason for entry in draft.ledger if entry.reason))
            raise JobFailure("ocr_failed", f"Nothing could be read this time: {reasons}. The document stays as it was.")
        if draft.encoded.places:
            draft.ledger.append(LedgerEntry("encoded bytes", "empty", draft.encoded.reason))
        if request.doc_type in CONTAINERS:
            draft.ledger.append(requests.UNREAD)

    def _recut(self, task: Task, draft: Draft, row: Row) -> Generator[Placed]:
        """Take the text from the database: only the title or the metadata change, so no file is read again."""
        with self._database.read() as tx:
            text = documents.text(tx, row["id"])
            old = chunks.of_document(tx, row["id"], 0, None)
        draft.title = draft.given_title or row["title"]
        draft.texts = [text]
        draft.metadata = json.loads(row["metadata"])
        for passages in text_passages(
            self._preparer, self._sandbox, row["doc_type"], row["filename"], draft.title, text, old, task.interrupt
        ):
            draft.expect(len(passages))
            yield from passages

    def _parts(self, task: Task) -> Generator[Part]:
        request = task.request
        if request.is_note:
            yield Part("text", request.text or "")
            return
        source = Source(
            task.file or self._originals.verified(request.content_hash),
            request.filename or "",
            request.force_ocr,
            frozenset(request.ocr_pages or ()),
        )
        try:
            yield from self._sandbox.parts(request.doc_type, source, task.interrupt, task.before_ocr)
        except JobFailure as failure:
            if request.doc_type != "code" or failure.code not in EXHAUSTED:
                raise
            # A few bytes can exhaust a parser of programs, before there is any part; as a text they are harmless.
            unparsed = f"cut by lines, not by its functions: {failure.message}"
            for part in self._sandbox.parts("text", source, task.interrupt):
                reason = "; ".join(filter(None, (part.outcome.reason, unparsed)))
                yield replace(part, outcome=replace(part.outcome, reason=reason))


def begun(tx: Transaction, request: AddRequest, found: Known | None) -> Draft:
    return Draft(
        NewRevision(int(found.row["id"]) if found else documents.reserve(tx, request.created_at)),
        given_title=requests.title_for(found, request),
        given=requests.given_metadata(found, request),
        stored=found.row if found and found.same_content and not requests.must_be_read(found.row, request) else None,
        read_before=request.document_id is not None
        and found is not None
        and any(entry.state in READ for entry in documents.ledger_of(found.row)),
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
        parent_id=request.parent_id,
        member=request.member,
    )


def located(anchor: Anchor, request: AddRequest) -> Anchor:
    """A passage also names the archive's member that it stands in, and the message that brought it."""
    if request.member is None:
        return anchor
    return replace(anchor, member=request.member, message=anchor.message or request.message)


def title_of(request: AddRequest, part: Part) -> str:
    if request.is_note:
        return requests.first_line(part.text)
    return (part.title or request.filename or "untitled")[: requests.TITLE_CHARACTERS]
