"""From an accepted job to a published document: extract, chunk, embed, write unpublished, publish.

Nothing of a document is visible before its last batch is written; then one short transaction publishes it, gives it
its tags and finishes the job. A document never appears twice or half.
"""

import json
from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from dataclasses import replace

from kb.core.errors import JobFailure, JobSlow
from kb.core.metadata import MAX_BYTES, excess, fitted, size_of
from kb.core.values import AddOutcome, LedgerEntry
from kb.ingest.draft import Draft
from kb.ingest.extract import FORMATS, Part, Source
from kb.ingest.prepare import AHEAD, BATCH, Placed, Preparer
from kb.ingest.progress import Steps
from kb.ingest.publish import Publisher
from kb.ingest.reindex import text_passages
from kb.ingest.requests import (
    AddRequest,
    Known,
    give_tags,
    given_metadata,
    known,
    must_be_read,
    settled,
    supersede,
    tags_for,
    title_for,
)
from kb.ingest.sandbox.sandbox import Sandbox
from kb.store import chunks, documents, jobs, notes, originals
from kb.store.backend import Database, Row, Transaction
from kb.store.documents import Content
from kb.store.originals import Originals

TITLE_CHARACTERS = 200
WITHDRAWN_AT_ONCE = 500  # chunks
ATTEMPTS = 5  # when others create and delete the same document meanwhile


class MovedError(Exception):
    """The document that this content belongs to came into being, changed or was deleted while it was being prepared."""


class Pipeline:
    """`changed` is told the id of every job that made progress or ended."""

    def __init__(
        self,
        database: Database,
        originals: Originals,
        sandbox: Sandbox,
        preparer: Preparer,
        publisher: Publisher,
        changed: Callable[[str], None],
    ) -> None:
        self._database = database
        self._originals = originals
        self._sandbox = sandbox
        self._preparer = preparer
        self._publisher = publisher
        self._changed = changed

    def run(self, job: Row, interrupt: Callable[[], None]) -> None:
        """Do one job; `interrupt` raises between steps when it should stop. JobFailure: it cannot be read."""
        request = AddRequest.from_payload(job["payload"])
        for _ in range(ATTEMPTS - 1):
            try:
                return self._attempt(job, request, interrupt)
            except MovedError:
                pass
        return self._attempt(job, request, interrupt)

    def _attempt(self, job: Row, request: AddRequest, interrupt: Callable[[], None]) -> None:
        interrupt()
        draft = self._begin(job, request)
        if draft is None:
            return
        try:
            self._write(job, request, draft, interrupt)
            interrupt()
            with self._database.write() as tx:
                self._publish(tx, job, request, draft)
        except BaseException:
            self._withdraw(draft)
            raise

    def _begin(self, job: Row, request: AddRequest) -> Draft | None:
        """A document and a revision to write to; None when there is nothing to do any more."""
        with self._database.read() as tx:
            new = known(tx, request) is None
        if new:
            # Nothing is lost with it: until the document is published, its job begins again after a power cut.
            with self._database.write(durable=False) as tx:
                if known(tx, request) is None:
                    return self._place(tx, request)
        with self._database.write() as tx:
            return None if self._answered(tx, job, request) else self._place(tx, request)

    def _answered(self, tx: Transaction, job: Row, request: AddRequest) -> bool:
        """Whether the same, or something newer, was added while this job waited.

        Raises JobFailure when the document was edited in kb meanwhile: then it is not replaced.
        """
        found = known(tx, request)
        if found is None:
            return False
        overtaken = found.row["accepted"] > job["seq"]
        if not overtaken and found.refusal:
            raise JobFailure("conflict", found.refusal)
        if not overtaken and not settled(found, request):
            return False
        changed = found.holds and give_tags(tx, found.row, request)
        if not overtaken:
            supersede(tx, request, found, job["id"])
        outcome: AddOutcome = "kept" if found.kept else "updated" if changed else "unchanged"
        self._finish(tx, job, found.row, found.row["chunk_count"], outcome)
        self._let_go(tx, request.content_hash, request.doc_type)
        return True

    def _place(self, tx: Transaction, request: AddRequest) -> Draft:
        found = known(tx, request)
        document_id = int(found.row["id"]) if found else documents.reserve(tx)
        return Draft(
            document_id,
            chunks.next_revision(tx, document_id),
            given_title=title_for(found, request),
            given=given_metadata(found, request),
            again=found.row if found and found.same_content and not must_be_read(found.row, request) else None,
        )

    def _write(self, job: Row, request: AddRequest, draft: Draft, interrupt: Callable[[], None]) -> None:
        """Extract, chunk and embed, and write the chunks in batches that nobody sees yet."""
        steps = Steps(self._database, job["id"], lambda: self._changed(job["id"]))
        if draft.again is None:
            self._extract(job, request, draft, interrupt, steps)
        else:
            self._cut_again(draft, draft.again, interrupt, steps)
        if not draft.expected:
            raise JobFailure("no_text", "No text found: there is nothing to search for in it.")
        assert draft.title is not None
        if request.metadata and (too_much := excess(draft.given)):  # together with what another job brought meanwhile
            raise JobFailure("too_complex", too_much)
        if draft.again is None:
            draft.metadata = fitted(draft.metadata, MAX_BYTES - size_of(draft.given))
        draft.metadata |= draft.given
        self._embed(draft, self._preparer.metadata_passages(draft.metadata, draft.title), interrupt, steps)
        if draft.waiting:
            self._hand_in(draft)
        self._write_begun(draft, 0, interrupt, steps)

    def _extract(
        self, job: Row, request: AddRequest, draft: Draft, interrupt: Callable[[], None], steps: Steps
    ) -> None:
        kind = "markdown" if request.is_note else FORMATS[request.doc_type].kind
        with closing(self._parts(job, request, interrupt)) as parts:
            for part in parts:
                interrupt()
                draft.title = draft.title or draft.given_title or self._title(request, part)
                passages = self._preparer.passages(part, kind, draft.offset, interrupt)
                draft.take(part, len(passages))
                steps.part_done(part)
                self._embed(draft, passages, interrupt, steps)

    def _cut_again(self, draft: Draft, row: Row, interrupt: Callable[[], None], steps: Steps) -> None:
        """Take the text from the database: only the title or the metadata change, so no file is read again."""
        with self._database.read() as tx:
            text = documents.text(tx, row["id"])
            old = chunks.of_document(tx, row["id"], 0, None)
        draft.title = draft.given_title or row["title"]
        draft.texts = [text]
        draft.metadata = json.loads(row["metadata"])
        draft.ledger = [LedgerEntry(**entry) for entry in json.loads(row["ledger"])]
        for passages in text_passages(self._preparer, row["doc_type"], text, old, interrupt):
            draft.expect(len(passages))
            self._embed(draft, passages, interrupt, steps)

    def _embed(self, draft: Draft, passages: Iterable[Placed], interrupt: Callable[[], None], steps: Steps) -> None:
        for passage in passages:
            draft.waiting.append(passage)
            if len(draft.waiting) == BATCH:
                self._hand_in(draft)
                self._write_begun(draft, AHEAD, interrupt, steps)

    def _hand_in(self, draft: Draft) -> None:
        """Have the next passages embedded while the last ones are written."""
        assert draft.title is not None
        passages, draft.waiting = draft.waiting, []
        draft.begun.append(self._preparer.begin(passages, draft.title, first=draft.handed_in))
        draft.handed_in += len(passages)

    def _write_begun(self, draft: Draft, but: int, interrupt: Callable[[], None], steps: Steps) -> None:
        """Write all batches but the last so many, as soon as they are embedded."""
        while len(draft.begun) > but:
            batch = draft.begun.popleft()()
            interrupt()
            # What nobody sees yet need not be safe yet: publishing makes all of it so.
            with self._database.write(durable=False) as tx:
                if not documents.exists(tx, draft.document_id):
                    raise MovedError
                ids = chunks.add(tx, draft.document_id, draft.revision, batch)
            draft.written.add(ids, batch)
            steps.embedded(len(draft.written), draft.expected)

    def _parts(self, job: Row, request: AddRequest, interrupt: Callable[[], None]) -> Generator[Part, None, None]:
        if request.is_note:
            yield Part("text", request.text or "")
            return
        source = Source(self._originals.verified(request.content_hash), request.filename or "", request.force_ocr)

        def before_ocr() -> None:
            """Seconds a page: a scan that looked like a small file must not keep the small ones waiting."""
            if job["lane"] == "small":
                raise JobSlow

        yield from self._sandbox.parts(request.doc_type, source, interrupt, before_ocr)

    def _publish(self, tx: Transaction, job: Row, request: AddRequest, draft: Draft) -> None:
        if self._answered(tx, job, request):
            chunks.discard(tx, draft.document_id, draft.revision)
            return
        found = known(tx, request)
        if not documents.exists(tx, draft.document_id) or not stands(draft, found, request):
            raise MovedError
        held = documents.tags_of(tx, [draft.document_id])[draft.document_id]
        content = Content(
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
            accepted=job["seq"],
        )
        if row := draft.again:  # the same bytes under another name are still the document that they were
            content = replace(
                content,
                filename=row["filename"],
                doc_type=row["doc_type"],
                media_type=row["media_type"],
                processing_method=row["processing_method"],
            )
        self._publisher.publish(tx, draft.document_id, content, draft.revision, draft.written)
        if found is not None:
            self._let_go(tx, found.row["content_hash"], found.row["doc_type"])
        documents.set_tags(tx, draft.document_id, tags_for(held, request))
        if not request.is_note:
            documents.set_text(tx, draft.document_id, draft.text)
        elif found is None or not found.same_content:
            notes.add_version(tx, draft.document_id, draft.text)
        if found is None or request.source_path is not None:
            documents.set_brought(tx, draft.document_id)
        published = documents.find(tx, draft.document_id)
        self._finish(tx, job, published, len(draft.written), "added" if found is None else "updated")

    def _let_go(self, tx: Transaction, content_hash: str, doc_type: str) -> None:
        """Of an original that this job put aside or did not need, unless anything else still needs it."""
        if doc_type != "note" and not originals.is_named(tx, content_hash):
            tx.after_commit(lambda: self._originals.remove(content_hash))

    def _finish(self, tx: Transaction, job: Row, document: Row, chunk_count: int, outcome: AddOutcome) -> None:
        jobs.complete(tx, job["id"], document["id"], document["uid"], chunk_count, outcome)
        tx.after_commit(lambda: self._changed(job["id"]))

    def _withdraw(self, draft: Draft) -> None:
        """Leave nothing of a content that will not be published."""
        while True:  # others may write in between
            with self._database.write(durable=False) as tx:
                gone = chunks.remove_unpublished(tx, draft.document_id, draft.revision, most=WITHDRAWN_AT_ONCE)
            if gone < WITHDRAWN_AT_ONCE:
                break
        with self._database.write() as tx:
            chunks.discard(tx, draft.document_id, draft.revision)

    def _title(self, request: AddRequest, part: Part) -> str:
        if request.is_note:
            return first_line(part.text)
        return (part.title or request.filename or "untitled")[:TITLE_CHARACTERS]


def stands(draft: Draft, found: Known | None, request: AddRequest) -> bool:
    """Whether the document is still as it was when the draft was begun."""
    if found is not None and found.row["id"] != draft.document_id:
        return False
    if draft.again is not None and (found is None or found.row["revision"] != draft.again["revision"]):
        return False
    return title_for(found, request) == draft.given_title and given_metadata(found, request) == draft.given


def first_line(text: str) -> str:
    """The title of a note that was given none."""
    for line in text.splitlines():
        if title := line.strip().lstrip("#").strip():
            return title if len(title) <= TITLE_CHARACTERS else title[: TITLE_CHARACTERS - 1] + "…"
    return text.strip()[:TITLE_CHARACTERS]
