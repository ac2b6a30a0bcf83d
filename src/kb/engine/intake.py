"""Accept what is to be added: queue it, or answer at once if it is known."""

import uuid
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

from kb.core.errors import Conflict, InvalidRequest
from kb.core.metadata import excess
from kb.core.values import Accepted, AddOptions
from kb.engine.jobs.queue import Queue
from kb.ingest.extract import detect
from kb.ingest.notes import check_note_text
from kb.ingest.requests import AddRequest, give_tags, given_metadata, known, note_request, settled, supersede
from kb.ingest.reread import reread_request
from kb.store import chunks, documents, jobs
from kb.store.backend import Database, Transaction
from kb.store.originals import Originals
from kb.store.staging import Staged

LARGE_FILE = 2**20  # bytes
NO_OPTIONS = AddOptions()

Record = Callable[[Transaction, Accepted], None]  # called in the transaction that accepts something


@dataclass(frozen=True)
class Intake:
    _database: Database
    _originals: Originals
    _queue: Queue

    def add_note(self, text: str, options: AddOptions = NO_OPTIONS) -> Accepted:
        check_note_text(text)
        return self._accept(note_request(text, options))

    def add_file(
        self,
        staged: Staged,
        filename: str,
        options: AddOptions = NO_OPTIONS,
        record: Record = lambda tx, accepted: None,  # noqa: ARG005
    ) -> Accepted:
        """Make the file durable before the job that names it, and answer after both."""
        if staged.size == 0:
            raise InvalidRequest(f"{filename!r} is empty: zero bytes. Nothing was added.")
        form = detect.detect(staged.head, staged.tail, filename)
        request = AddRequest(
            doc_type=form.doc_type,
            media_type=form.media_type,
            content_hash=staged.sha256,
            size_bytes=staged.size,
            filename=filename,
            **asdict(options),
        )
        staged.sync()
        return self._accept(request, lambda tx: self._originals.keep(tx, staged), record)

    def reread_as(
        self, document_id: int, staged: Staged, filename: str, record: Record, *, force_ocr: bool = False
    ) -> Accepted:
        """Queue a job that reads a document once more because its file, with the same bytes, has another name."""
        form = detect.detect(staged.head, staged.tail, filename)
        request = AddRequest(
            doc_type=form.doc_type,
            media_type=form.media_type,
            content_hash=staged.sha256,
            size_bytes=staged.size,
            filename=filename,
            document_id=document_id,
            force_ocr=force_ocr,
        )
        accepted = Accepted(str(uuid.uuid4()), "queued", document_id)
        with self._database.write() as tx:
            self._queue.submit(tx, queued_job(accepted.job_id, request))
            record(tx, accepted)
        return accepted

    def reread(self, ref: str, *, force_ocr: bool, pages: list[int] | None) -> Accepted:
        """Queue a job that reads the original of a document once more."""
        with self._database.read() as tx:
            row = documents.find(tx, ref)
            first = chunks.of_document(tx, row["id"], 0, 1)
        message = first[0].anchor.message if first and row["parent_id"] is not None else None
        request = reread_request(row, force_ocr=force_ocr, pages=pages, message=message)
        self._originals.verified(request.content_hash)
        job_id = str(uuid.uuid4())
        with self._database.write() as tx:
            self._queue.submit(tx, queued_job(job_id, request))
        return Accepted(job_id, "queued", row["id"])

    def _accept(
        self,
        request: AddRequest,
        keep: Callable[[Transaction], None] = lambda _: None,
        record: Record = lambda tx, accepted: None,  # noqa: ARG005
    ) -> Accepted:
        """Queue the request, unless the document is what it asks for or must not be replaced by it.

        `keep` runs before the commit, so that no row names a file that is not there, and inside the transaction, so
        that no deletion of the same content removes the file at this moment.
        """
        if request.replace_tags and request.tags is None:
            raise InvalidRequest("replace_tags says that tags replace others, but no tags were given. Send tags, too.")
        job_id = str(uuid.uuid4())
        job = queued_job(job_id, request)
        with self._database.write() as tx:
            found = known(tx, request)
            if found is not None and found.refusal:
                raise Conflict(found.refusal, document_id=found.row["id"], current_version=found.row["version"])
            if request.metadata and (too_much := excess(given_metadata(found, request))):
                raise InvalidRequest(too_much)
            tagged = found is not None and found.holds and give_tags(tx, found.row, request)
            if found is not None and settled(found, request):
                outcome = found.outcome(tagged=tagged)
                about = {"document_id": found.row["id"], "uid": found.row["uid"], "outcome": outcome}
                self._queue.submit(tx, replace(job, status="completed", payload=None, **about))
                supersede(tx, request, found, job_id)
                accepted = Accepted(job_id, "completed", found.row["id"], found.row["id"], outcome)
            else:
                self._queue.submit(tx, job)
                at = found.row["id"] if found else None
                accepted = Accepted(job_id, "queued", at, at if found and found.same_content else None)
            keep(tx)
            record(tx, accepted)
        return accepted


def queued_job(job_id: str, request: AddRequest) -> jobs.NewJob:
    return jobs.NewJob(
        id=job_id,
        kind="note" if request.is_note else "file",
        lane="large" if is_slow(request) else "small",
        payload=asdict(request),
        filename=request.filename,
    )


def is_slow(request: AddRequest) -> bool:
    """Whether the job would delay small ones: a large file, one with many documents in it, or one that needs OCR."""
    by_ocr = request.doc_type == "image" or request.force_ocr or bool(request.ocr_pages)
    return by_ocr or request.doc_type in ("archive", "mailbox") or request.size_bytes >= LARGE_FILE
