"""One change to many documents, as a job.

The caller says how many documents it means. The documents are chosen when the job is accepted, and looked at again
when it begins: if others match by then, nothing is changed. From then on the job knows what it began: after a restart
it goes on with the same documents, and changing one twice changes nothing more.
"""

import json
import uuid
from dataclasses import asdict, dataclass

from kb.core.errors import Conflict, JobFailure
from kb.core.searches import Filter
from kb.core.types import Interrupt, Json
from kb.core.values import Accepted
from kb.engine.catalogue import retag
from kb.engine.jobs.queue import Queue
from kb.engine.trash import Trash
from kb.store import documents, jobs
from kb.store.backend import Database, Row, Transaction

TAGGED_AT_ONCE = 500  # documents in one transaction, so that no other writer waits long
DELETED_AT_ONCE = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkChange:
    """Which documents, and what becomes of them. Survives a restart as a job's payload."""

    ids: list[int | str] | None = None  # integer ids or uids; None: those within the filter
    filter: Filter | None = None
    add_tags: tuple[str, ...] = ()
    remove_tags: tuple[str, ...] = ()
    delete: bool = False

    def payload(self, chosen: list[int], *, begun: bool = False) -> Json:
        return {"change": asdict(self), "chosen": chosen, "begun": begun}

    @staticmethod
    def from_payload(payload: str) -> tuple["BulkChange", list[int], bool]:
        """The change, the documents that were chosen, and whether the job has begun to change them."""
        held = json.loads(payload)
        change = held["change"]
        if change["filter"] is not None:
            change["filter"] = Filter(**change["filter"] | {"tags": tuple(change["filter"]["tags"])})
        return BulkChange(**change), held["chosen"], held["begun"]


@dataclass(frozen=True)
class Bulk:
    _database: Database
    _trash: Trash
    _queue: Queue

    def submit(self, change: BulkChange, expected_count: int) -> Accepted:
        job_id = str(uuid.uuid4())
        with self._database.write() as tx:
            chosen = choose(tx, change)
            if len(chosen) != expected_count:
                raise Conflict(
                    f"The number of documents that match is {len(chosen)}, not {expected_count}. Nothing was "
                    "changed. Look at the list again, and repeat the change with the new number.",
                    count=len(chosen),
                )
            self._queue.submit(tx, jobs.NewJob(id=job_id, kind="bulk", lane="bulk", payload=change.payload(chosen)))
        return Accepted(job_id, "queued")

    def run(self, job: Row, interrupt: Interrupt) -> None:
        """Do one job; `interrupt` raises between batches when it should stop."""
        change, chosen, begun = BulkChange.from_payload(job["payload"])
        interrupt()
        if not begun:
            self._begin(job, change, chosen)
        size = DELETED_AT_ONCE if change.delete else TAGGED_AT_ONCE
        for start in range(0, len(chosen), size):
            interrupt()
            with self._database.write() as tx:
                tx.hold(job)
                self._apply(tx, change, chosen[start : start + size])
                done = min(start + size, len(chosen))
                jobs.progress(tx, job["id"], done, len(chosen), f"{done} of {len(chosen)} documents")
        with self._database.write() as tx:
            tx.hold(job)
            jobs.complete(tx, job["id"], None, None, 0)
        if change.delete:
            self._database.truncate_wal()

    def _begin(self, job: Row, change: BulkChange, chosen: list[int]) -> None:
        with self._database.write() as tx:
            tx.hold(job)
            if (now := choose(tx, change)) != chosen:
                raise JobFailure(
                    "conflict",
                    f"The documents that match have changed since: {len(chosen)} matched then, {len(now)} now, and "
                    f"{len(set(now) & set(chosen))} of them are the same. Nothing was changed. Look at the list again, "
                    "and repeat the change.",
                )
            jobs.set_payload(tx, job["id"], change.payload(chosen, begun=True))

    def _apply(self, tx: Transaction, change: BulkChange, ids: list[int]) -> None:
        """Change those that are still there: others may have deleted some, or this job before a restart."""
        rows = documents.those(tx, ids)
        if not change.delete:
            retag(tx, [row["id"] for row in rows], change.add_tags, change.remove_tags)
            return
        for row in rows:
            if documents.takes_content(tx, row["id"]):  # not gone with the archive that it was in
                self._trash.put(tx, row)


def choose(tx: Transaction, change: BulkChange) -> list[int]:
    """The ids of the documents that a change means, ascending."""
    if change.ids is not None:
        return documents.ids_of(tx, change.ids)
    return sorted(documents.matching(tx, change.filter or Filter()).tolist())
