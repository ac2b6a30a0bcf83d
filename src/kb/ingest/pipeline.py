"""From an accepted job to a published document, and to those that are found in it.

One transaction publishes a document with its tags and finishes the job: no document appears twice or half. The job of
an archive, a mail or a mailbox ends later, when all members are there, too.
"""

import json
from dataclasses import dataclass

from kb.core.errors import JobFailure
from kb.core.types import Interrupt
from kb.core.values import AddOutcome
from kb.ingest import requests
from kb.ingest.members import Unpacker
from kb.ingest.publish import MovedError, Publisher, attempted
from kb.ingest.requests import AddRequest, Known, edited_meanwhile, known
from kb.ingest.steps import Steps
from kb.ingest.writer import DocumentWriter, Task, begun
from kb.store import documents, jobs
from kb.store.backend import Database, Row, Transaction


@dataclass(frozen=True)
class Pipeline:
    _database: Database
    _publisher: Publisher
    _writer: DocumentWriter
    _unpacker: Unpacker

    def run(self, job: Row, interrupt: Interrupt) -> None:
        """Do one job; `interrupt` raises between steps when it should stop. JobFailure: it cannot be read."""
        steps = Steps(self._database, job["id"])
        task = Task(job, AddRequest(**json.loads(job["payload"])), interrupt, steps)
        attempted(lambda: self._attempt(task))

    def _attempt(self, task: Task) -> None:
        task.interrupt()
        # Not durable: until the document is published, its job begins again after a power cut.
        with self._database.write(durable=False, publishes=False) as tx:
            found = known_by_now(tx, task)
            answered = found is not None and answers(found, task.job, task.request)
            resumed = found if found and not answered and requests.lacks_only_members(found, task.request) else None
            draft = None if answered or resumed else begun(tx, task.request, found)
        if resumed:
            self._unpack(task, resumed.row, "updated")
        elif draft is None:
            with self._database.write() as tx:
                if not self._answered(tx, task, known_by_now(tx, task)):
                    raise MovedError
        else:
            with self._publisher.withdrawing(draft.revision):
                self._writer.write(task, draft)
                task.interrupt()
                with self._database.write() as tx:
                    found = known_by_now(tx, task)
                    if self._answered(tx, task, found):
                        return
                    published = self._writer.publish(tx, task, draft, found)
                    outcome: AddOutcome = "added" if found is None else "updated"
                    if not requests.lacks_members(published):
                        self._finish(tx, task.job, published, len(draft.revision), outcome)
                        return
            self._unpack(task, published, outcome)

    def _answered(self, tx: Transaction, task: Task, found: Known | None) -> bool:
        """Finish the job without new content, if the document needs none."""
        job, request = task.job, task.request
        if found is None or not answers(found, job, request):
            return False
        tagged = found.holds and requests.give_tags(tx, found.row, request)
        if found.row["accepted"] <= job["seq"]:
            requests.supersede(tx, request, found, job["id"])
        self._finish(tx, job, found.row, found.row["chunk_count"], found.outcome(tagged=tagged))
        self._writer.let_go(tx, request.content_hash, request.doc_type)
        return True

    def _unpack(self, task: Task, row: Row, outcome: AddOutcome) -> None:
        """Make documents of what is in this one, and finish the job."""
        unpacked = self._unpacker.unpack(task, row)
        with self._database.write() as tx:
            unpacked.check(tx)
            requests.give_tags(tx, row, task.request)
            documents.set_ledger(tx, row["id"], unpacked.ledger(row))
            self._finish(tx, task.job, row, row["chunk_count"] + unpacked.chunks, outcome)

    def _finish(self, tx: Transaction, job: Row, document: Row, chunk_count: int, outcome: AddOutcome) -> None:
        tx.hold(job)
        jobs.complete(tx, job["id"], document["id"], document["uid"], chunk_count, outcome)


def known_by_now(tx: Transaction, task: Task) -> Known | None:
    return known(tx, task.request) or edited_meanwhile(tx, task.request, task.job["created_at"])


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
