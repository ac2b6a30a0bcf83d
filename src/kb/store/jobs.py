"""Jobs as rows: what was accepted, how far it is, how it ended."""

import json
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from kb.core.changes import Change
from kb.core.errors import Conflict, NotFound
from kb.core.status import QueueCounts
from kb.core.times import now, seconds_between, stamp
from kb.core.types import Json
from kb.core.values import AddOutcome, Job, JobError, JobKind, JobStatus
from kb.store.backend import Row, Transaction
from kb.store.rows import from_row, readable

MAX_CRASHES = 5  # of the whole engine while one job ran: more than a person or a power cut causes in a row

INSERT = """
INSERT INTO jobs (id, kind, status, lane, payload, filename, document_id, uid, chunks_created, outcome, created_at,
                  started_at, finished_at)
VALUES (:id, :kind, :status, :lane, :payload, :filename, :document_id, :uid, :chunks_created, :outcome, :now,
        :ended, :ended)
"""
FIND = "SELECT * FROM jobs WHERE id = :id"
PROGRESS = """
UPDATE jobs SET completed_steps = :completed, total_steps = :total, current_step = :step
 WHERE id = :id AND status = 'running'
"""
# What is done needs no payload: a deleted note must not live on in a job.
COMPLETE = """
UPDATE jobs SET status = 'completed', finished_at = :now, current_step = NULL, payload = NULL, error_code = NULL,
       error_message = NULL, document_id = :document_id, uid = :uid, chunks_created = :chunks,
       outcome = :outcome
 WHERE id = :id
"""
FAIL = """
UPDATE jobs SET status = 'failed', finished_at = :now, current_step = NULL, error_code = :code, error_message = :message
 WHERE id = :id
"""
WAITING = "SELECT count(*) FROM jobs WHERE status IN ('queued', 'running') AND kind IN ('note', 'file')"
UNFINISHED = "SELECT * FROM jobs WHERE kind = :kind AND status IN ('queued', 'running') ORDER BY seq LIMIT 1"
WAITS = """
SELECT 1 FROM jobs WHERE status = 'queued' AND lane = :lane AND (not_before IS NULL OR not_before <= :now) LIMIT 1
"""
# Not the completed ones: there may be hundreds of thousands, and this is asked whenever a job is accepted.
COUNTS = """
SELECT status, count(*) AS n FROM jobs WHERE status IN ('queued', 'running', 'failed') GROUP BY status
"""
# One that waits never starts; one that runs stops at its next step.
CANCEL = """
UPDATE jobs SET cancelling = CASE status WHEN 'running' THEN 1 ELSE 0 END,
                finished_at = CASE status WHEN 'queued' THEN :now ELSE finished_at END,
                status = CASE status WHEN 'queued' THEN 'cancelled' ELSE status END
 WHERE id = :id AND status IN ('queued', 'running')
"""
# Nothing of what was deleted lives on in a job. Making the index anew goes on: it holds no content of its own.
FORGET = """
UPDATE jobs SET cancelling = CASE status WHEN 'running' THEN 1 ELSE 0 END,
                finished_at = CASE status WHEN 'queued' THEN :now ELSE finished_at END,
                status = CASE status WHEN 'queued' THEN 'cancelled' ELSE status END,
                payload = NULL, filename = NULL
 WHERE kind <> 'reindex'
"""
CANCELLED = """
UPDATE jobs SET status = 'cancelled', cancelling = 0, finished_at = :now, current_step = NULL WHERE id = :id
"""
RETRY = """
UPDATE jobs SET status = 'queued', cancelling = 0, error_code = NULL, error_message = NULL, started_at = NULL,
                finished_at = NULL, not_before = NULL, completed_steps = 0, total_steps = 0, attempts = 0,
                seq = :seq
 WHERE id = :id AND status IN ('failed', 'cancelled') AND payload IS NOT NULL
"""
# An interrupted job runs again, unless it was being cancelled.
PUT_BACK = """
UPDATE jobs SET status = CASE cancelling WHEN 1 THEN 'cancelled' ELSE 'queued' END,
                finished_at = CASE cancelling WHEN 1 THEN :now END, attempts = attempts - :uncounted,
                started_at = NULL, completed_steps = 0, current_step = NULL, cancelling = 0
 WHERE id = :id AND status = 'running'
RETURNING id, status
"""
# Once is an accident; a job that was running each time the engine died is likely to be the reason. Attempts of a job
# that had to wait for the database count too: it gets twice as many.
GIVE_UP = """
UPDATE jobs SET status = 'failed', finished_at = :now, current_step = NULL, error_code = 'crashed',
       error_message = 'The engine ended ' || attempts || ' times while this job ran: it crashed, was killed, or ran '
                       || 'out of memory. Retry it to try once more, or split what it adds into smaller parts.'
 WHERE id = :id AND status = 'running' AND cancelling = 0
   AND attempts >= CASE WHEN not_before IS NULL THEN :most ELSE 2 * :most END
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewJob:
    id: str
    kind: JobKind
    lane: str = "small"
    payload: Json | None = None
    filename: str | None = None
    status: JobStatus = "queued"
    document_id: int | None = None  # known when it is answered at once
    uid: str | None = None
    outcome: AddOutcome | None = None
    received_at: str = field(
        default_factory=now
    )  # when it was asked for: the database may have been out of reach since


def add(tx: Transaction, job: NewJob) -> None:
    ended = now() if job.status == "completed" else None
    payload = None if job.payload is None else json.dumps(job.payload, ensure_ascii=False)
    tx.run(INSERT, asdict(job) | {"payload": payload, "chunks_created": 0, "now": job.received_at, "ended": ended})
    tell(tx, job.id, job.status)


def tell(tx: Transaction, job_id: str, action: str) -> None:
    tx.tell(Change("job", job_id, action))


def find(tx: Transaction, job_id: str) -> Row:
    row = tx.row(FIND, {"id": job_id})
    if row is None:
        raise NotFound(f"There is no job {job_id[:80]!r}. List them with GET /api/v1/jobs or `kb jobs`.")
    return row


def get(tx: Transaction, job_id: str) -> Job:
    return as_job(find(tx, job_id))


def page(tx: Transaction, status: JobStatus | None, limit: int, offset: int) -> tuple[list[Job], int]:
    where = "status = :status" if status else "1 = 1"
    params: dict[str, Any] = {"status": status} if status else {}
    rows = tx.rows(
        f"SELECT * FROM jobs WHERE {where} ORDER BY seq DESC LIMIT :limit OFFSET :offset",
        params | {"limit": limit, "offset": offset},
    )
    return [as_job(row) for row in rows], int(tx.value(f"SELECT count(*) FROM jobs WHERE {where}", params))


def set_payload(tx: Transaction, job_id: str, payload: Json) -> None:
    """Record what a job has to do from now on: it is what a restart finds."""
    tx.run("UPDATE jobs SET payload = :payload WHERE id = :id", {"id": job_id, "payload": json.dumps(payload)})


def progress(tx: Transaction, job_id: str, completed: int, total: int, step: str) -> None:
    tx.run(PROGRESS, {"id": job_id, "completed": completed, "total": total, "step": step})
    tell(tx, job_id, "progress")


def complete(
    tx: Transaction,
    job_id: str,
    document_id: int | None,
    uid: str | None,
    chunks: int,
    outcome: AddOutcome | None = None,
) -> None:
    ended = {"id": job_id, "now": now(), "document_id": document_id, "uid": uid, "chunks": chunks, "outcome": outcome}
    tx.run(COMPLETE, ended)
    tell(tx, job_id, "completed")


def fail(tx: Transaction, job_id: str, code: str, message: str) -> None:
    tx.run(FAIL, {"id": job_id, "now": now(), "code": code, "message": message})
    tell(tx, job_id, "failed")


def cancel(tx: Transaction, job_id: str) -> Job:
    job = get(tx, job_id)
    if job.ended:
        raise Conflict(f"Job {job_id} is {job.status}; only a job that waits or runs can be cancelled.")
    tx.run(CANCEL, {"id": job_id, "now": now()})
    job = get(tx, job_id)
    tell(tx, job_id, "cancelled" if job.ended else "cancelling")
    return job


def cancelled(tx: Transaction, job_id: str) -> None:
    tx.run(CANCELLED, {"id": job_id, "now": now()})
    tell(tx, job_id, "cancelled")


def retry(tx: Transaction, job_id: str) -> Row:
    """Put a failed or cancelled job at the end of the queue."""
    row = find(tx, job_id)
    if row["status"] not in ("failed", "cancelled"):
        raise Conflict(f"Job {job_id} is {row['status']}; only a failed or cancelled job can be retried.")
    if row["payload"] is None:
        raise Conflict(f"Job {job_id} no longer knows what it was about. Add the content again.")
    tx.run(RETRY, {"id": job_id, "seq": tx.next_job_seq()})
    tell(tx, job_id, "queued")
    return find(tx, job_id)


def forget(tx: Transaction) -> None:
    """Cancel unfinished jobs and drop the payload of all."""
    waiting = tx.column("SELECT id FROM jobs WHERE status = 'queued'")
    tx.run(FORGET, {"now": now()})
    for job_id in waiting:
        tell(tx, job_id, "cancelled")
    for job_id in tx.column("SELECT id FROM jobs WHERE cancelling = 1"):
        tell(tx, job_id, "cancelling")


def unfinished(tx: Transaction, kind: JobKind) -> Job | None:
    """The job of this kind that waits or runs."""
    row = tx.row(UNFINISHED, {"kind": kind})
    return as_job(row) if row else None


def next_model(tx: Transaction, job_id: str) -> str | None:
    """The model that a job prepares; None if it does something else."""
    payload = tx.value("SELECT payload FROM jobs WHERE id = :id", {"id": job_id})
    model: str | None = json.loads(payload or "{}").get("model")
    return model


def documents_waiting(tx: Transaction) -> int:
    """How many jobs that add or change documents wait or run."""
    return int(tx.value(WAITING))


def waits(tx: Transaction, lane: str) -> bool:
    """Whether a job of this lane could be claimed now."""
    return bool(tx.value(WAITS, {"lane": lane, "now": now()}))


def postpone(tx: Transaction, job_id: str, seconds: float, *, counted: bool) -> None:
    run_again(tx, job_id, counted=counted)
    moment = stamp(datetime.now(UTC) + timedelta(seconds=seconds))
    tx.run("UPDATE jobs SET not_before = :moment WHERE id = :id", {"id": job_id, "moment": moment})


def put_back(tx: Transaction, job_id: str, lane: str | None = None) -> None:
    """Put a job back as if it had not been claimed: it was stopped through no fault of its own."""
    if lane is not None:
        tx.run("UPDATE jobs SET lane = :lane WHERE id = :id", {"id": job_id, "lane": lane})
    run_again(tx, job_id, counted=False)


def recover(tx: Transaction) -> None:
    """Put back what an engine ran that has ended; a job that was running too often fails instead.

    A job keeps its lane and its turn: a later request for the same content must not overtake it.
    """
    for job_id in tx.abandoned_jobs():
        tx.run(GIVE_UP, {"id": job_id, "now": now(), "most": MAX_CRASHES})
        run_again(tx, job_id, counted=True)


def run_again(tx: Transaction, job_id: str, *, counted: bool) -> None:
    """Put a running job back into the queue; unless `counted`, it was not its attempt."""
    for row in tx.rows(PUT_BACK, {"now": now(), "id": job_id, "uncounted": int(not counted)}):
        tell(tx, row["id"], row["status"])


def counts(tx: Transaction) -> QueueCounts:
    by_status = {row["status"]: row["n"] for row in tx.rows(COUNTS)}
    return QueueCounts(by_status.get("queued", 0), by_status.get("running", 0), by_status.get("failed", 0))


def as_job(row: Row) -> Job:
    with readable(f"job {str(row['id'])[:40]}"):
        return job_of(row)


def job_of(row: Row) -> Job:
    elapsed = seconds_between(row["started_at"], row["finished_at"] or now()) if row["started_at"] else 0.0
    completed, total = row["completed_steps"], row["total_steps"]
    share = completed / total if total else 0.0
    running = row["status"] == "running"
    if row["status"] == "completed":  # progress is recorded now and then, and of a short job never
        completed = total = max(total, 1)
    return from_row(
        Job,
        row,
        progress=1.0 if row["status"] == "completed" else round(min(share, 1.0), 4),
        completed_steps=completed,
        total_steps=total,
        error=JobError(row["error_code"], row["error_message"]) if row["error_code"] else None,
        elapsed_seconds=round(max(elapsed, 0.0), 3),
        estimated_remaining_seconds=round(elapsed * (1 - share) / share, 3) if running and 0 < share < 1 else None,
    )
