"""The queue: rows in the database, and a way to wake workers and watchers.

A job is accepted when its row is committed. Workers of this engine and the watchers of a job are woken at once; workers
of other engines look every second.
"""

import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from kb.core.changes import Change
from kb.core.errors import Conflict, KBError, Unavailable, is_damage
from kb.core.status import EngineState
from kb.core.times import now
from kb.core.values import Job
from kb.store import jobs
from kb.store.backend import Beat, Database, Row, Transaction

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
        self._running: dict[str, Row] = {}  # jobs that workers of this engine run, as they were claimed
        self._cancelling: set[str] = set()
        self._lost: set[str] = set()
        self.stopped = False
        self._damage: tuple[KBError, int] | None = None  # and how often the database had been replaced by then
        database.listen(self._hear)

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
        with self._database.write(durable=False, publishes=False) as tx:
            if job := tx.claim_job(lane, now()):
                jobs.tell(tx, job["id"], "running")
        if job:
            self._running[job["id"]] = job
        return job

    def get(self, job_id: str) -> Job:
        """The job. If it has ended, searches already find what it brought."""
        with self._database.read() as tx:
            job = jobs.get(tx, job_id)
        if job.ended:
            self._database.settle()
        else:
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
        with self._database.write(publishes=False) as tx:
            return jobs.cancel(tx, job_id)

    def forget(self, tx: Transaction) -> None:
        """End every job in the caller's transaction, and drop the payloads."""
        jobs.forget(tx)

    def is_cancelling(self, job_id: str) -> bool:
        """Whether a running job was asked to stop."""
        return job_id in self._cancelling

    def is_lost(self, job_id: str) -> bool:
        """Whether another engine has taken over a job that runs here."""
        return job_id in self._lost

    def beat(self, state: EngineState) -> Beat:
        """Say that this engine lives; what it learns of its jobs stops them."""
        beat = self._database.beat(list(self._running), state)
        self._cancelling |= beat.cancelling & self._running.keys()
        self._lost |= beat.lost & self._running.keys()
        return beat

    def retry(self, job_id: str) -> Job:
        with self._database.write() as tx:
            row = jobs.retry(tx, job_id)
            tx.after_commit(lambda: self._announce(row["lane"]))
        return jobs.as_job(row)

    def cancelled(self, job: Row) -> None:
        with self._ending(job) as tx:
            jobs.cancelled(tx, job["id"])

    def done_with(self, job_id: str) -> None:
        """Note that no worker runs this job any longer."""
        self._running.pop(job_id, None)
        self._cancelling.discard(job_id)
        self._lost.discard(job_id)

    def put_back(self, job: Row) -> None:
        with self._ending(job) as tx:
            jobs.put_back(tx, job["id"])

    def move(self, job: Row, lane: str) -> None:
        """Put a job back into another lane, as if it had not been claimed."""
        with self._ending(job) as tx:
            jobs.put_back(tx, job["id"], lane)
            tx.after_commit(lambda: self._announce(lane))

    def fail(self, job: Row, code: str, message: str) -> None:
        with self._ending(job) as tx:
            jobs.fail(tx, job["id"], code, message)

    def postpone(self, job: Row, seconds: float, *, counted: bool = True) -> None:
        """Put a job back, to be claimed after this time at the earliest. Only so many attempts are `counted`."""
        with self._ending(job) as tx:
            jobs.postpone(tx, job["id"], seconds, counted=counted)

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
    def _ending(self, job: Row) -> Iterator[Transaction]:
        """Raises JobLost if the job is another worker's by now."""
        with self._database.write(publishes=False) as tx:
            tx.hold(job)
            yield tx

    def _hear(self, changes: Sequence[Change]) -> None:
        """What any engine did to a job."""
        for change in changes:
            if change.kind == "job":
                job_id = str(change.id)
                if change.action == "cancelling" and job_id in self._running:
                    self._cancelling.add(job_id)
                self.changed(job_id)
            elif change.kind == "reset":
                for watched in list(self._watchers):
                    self.changed(watched)

    def stop(self) -> None:
        """Wake all workers and watchers a last time."""
        self.stopped = True
        with self._wake:
            self._wake.notify_all()
        for watched in list(self._watchers):
            self.changed(watched)

    def _announce(self, lane: str) -> None:
        with self._wake:
            self._arrived[lane] += 1
            self._wake.notify_all()
