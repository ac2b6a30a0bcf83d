"""The queue: rows in the database, and a way to wake workers and watchers.

A job is accepted when its row is committed. Workers and the watchers of a job are woken at once.
"""

import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kb.core.errors import Conflict, KBError, Unavailable, is_damage
from kb.core.times import now
from kb.core.values import Job
from kb.store import jobs
from kb.store.backend import Database, Row, Transaction

Watcher = Callable[[], None]
# A reindex and a bulk change delay no other job, and none delays them.
LANES = ("small", "large", "index", "bulk")
MAX_QUEUED = 10_000


class Queue:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._wake = threading.Condition()
        self._arrived = dict.fromkeys(LANES, 0)
        self._watchers: dict[str, list[Watcher]] = defaultdict(list)
        self._watching = threading.Lock()
        self._cancelling: set[str] = set()
        self._damage: tuple[KBError, int] | None = None  # and how often the database had been replaced by then

    def submit(self, tx: Transaction, job: jobs.NewJob) -> None:
        """Add a job to the caller's transaction: it exists when that commits."""
        self._check()
        if job.status == "queued" and jobs.counts(tx).queued >= MAX_QUEUED:
            raise Unavailable(f"{MAX_QUEUED} jobs are waiting already. Try again when some are done.")
        jobs.add(tx, job)
        tx.after_commit(lambda: self._announce(job.lane))

    def claim(self, lane: str, stopping: threading.Event) -> Row | None:
        """Wait for the next job of a lane and take it; None once `stopping` is set."""
        while not stopping.is_set():
            seen = self._arrived[lane]
            if job := self._claimed(lane):
                return job
            with self._wake:
                self._wake.wait_for(lambda seen=seen: self._arrived[lane] != seen or stopping.is_set(), timeout=1)  # type: ignore[misc]
        return None

    def _claimed(self, lane: str) -> Row | None:
        with self._database.read() as tx:
            if not jobs.waits(tx, lane):
                return None
        # A claim that a power cut undoes is made again.
        with self._database.write(durable=False) as tx:
            if job := tx.claim_job(lane, now()):
                jobs.tell(tx, job["id"], "running")
            return job

    def get(self, job_id: str) -> Job:
        with self._database.read() as tx:
            job = jobs.get(tx, job_id)
        if not job.ended:
            self._check()
        return job

    def stuck(self, error: KBError) -> None:
        """Note why a worker cannot go on: while the database is damaged, callers must not wait for a job."""
        if is_damage(error) and self.problem is None:
            self._damage = error, self._database.replacements
            with self._watching:
                watched = list(self._watchers)
            for job_id in watched:
                self.changed(job_id)

    @property
    def problem(self) -> str | None:
        """Why no job can run until the database is mended; None if jobs can run."""
        if self._damage is None or self._damage[1] != self._database.replacements:
            return None
        return self._damage[0].message

    def _check(self) -> None:
        if problem := self.problem:
            raise Conflict(problem, damaged=True)

    def cancel(self, job_id: str) -> Job:
        with self._changing(job_id) as tx:
            job = jobs.cancel(tx, job_id)
            if not job.ended:
                tx.after_commit(lambda: self._cancelling.add(job_id))
        return job

    def forget(self, tx: Transaction) -> None:
        """End every job in the caller's transaction, and drop the payloads."""
        waiting, running = jobs.forget(tx)
        tx.after_commit(lambda: self._cancelling.update(running))
        for job_id in waiting:
            tx.after_commit(lambda job_id=job_id: self.changed(job_id))  # type: ignore[misc]

    def is_cancelling(self, job_id: str) -> bool:
        """Whether a running job was asked to stop."""
        return job_id in self._cancelling

    def retry(self, job_id: str) -> Job:
        with self._changing(job_id) as tx:
            row = jobs.retry(tx, job_id)
            tx.after_commit(lambda: self._announce(row["lane"]))
        return jobs.as_job(row)

    def cancelled(self, job_id: str) -> None:
        with self._changing(job_id) as tx:
            jobs.cancelled(tx, job_id)

    def done_with(self, job_id: str) -> None:
        """Note that no worker runs this job any longer."""
        self._cancelling.discard(job_id)

    def put_back(self, job_id: str) -> None:
        with self._changing(job_id) as tx:
            jobs.put_back(tx, job_id)

    def move(self, job_id: str, lane: str) -> None:
        """Put a job back into another lane, as if it had not been claimed."""
        with self._changing(job_id) as tx:
            jobs.put_back(tx, job_id, lane)
            tx.after_commit(lambda: self._announce(lane))

    def fail(self, job_id: str, code: str, message: str) -> None:
        with self._changing(job_id) as tx:
            jobs.fail(tx, job_id, code, message)

    def postpone(self, job_id: str, seconds: float) -> None:
        """Put a job back, to be claimed after this time at the earliest."""
        with self._changing(job_id) as tx:
            jobs.postpone(tx, job_id, seconds)

    def changed(self, job_id: str) -> None:
        """Call the watchers of this job."""
        with self._watching:
            watchers = list(self._watchers.get(job_id, ()))
        for watcher in watchers:
            watcher()

    @contextmanager
    def watch(self, job_id: str, watcher: Watcher) -> Iterator[None]:
        """Inside, call `watcher` whenever the job changes, from any thread."""
        with self._watching:
            self._watchers[job_id].append(watcher)
        try:
            yield
        finally:
            with self._watching:
                self._watchers[job_id].remove(watcher)
                if not self._watchers[job_id]:
                    del self._watchers[job_id]

    @contextmanager
    def _changing(self, job_id: str) -> Iterator[Transaction]:
        with self._database.write() as tx:
            yield tx
            tx.after_commit(lambda: self.changed(job_id))

    def stop(self) -> None:
        with self._wake:
            self._wake.notify_all()

    def _announce(self, lane: str) -> None:
        with self._wake:
            self._arrived[lane] += 1
            self._wake.notify_all()
