"""The worker: threads, each of one lane, that claim a job, run it and record how it ended."""

import logging
import threading
from collections.abc import Callable, Mapping

from kb.core.errors import JobCancelled, JobFailure, JobInterrupted, JobLost, JobSlow, KBError
from kb.core.types import Interrupt
from kb.embedding.priority import Priority
from kb.engine.jobs.queue import LANES, Queue
from kb.store.backend import Row

log = logging.getLogger(__name__)

MAX_ATTEMPTS = 10
LONGEST_WAIT = 60.0  # seconds
ENDPOINT_WAIT = 2.0  # seconds, until a job looks whether the endpoint is back

Run = Callable[[Row, Interrupt], None]


class Worker:
    """`run` does one job and records its success; the worker records what it raises.

    `run` gets a function to call between its steps, which waits while a search is running, and raises when the job
    should not go on. `concurrency` says how many jobs of a lane may run at once: one, unless it is named.
    `may_claim` says whether this engine can do the jobs of a lane now.
    """

    def __init__(
        self,
        queue: Queue,
        run: Run,
        priority: Priority,
        concurrency: Mapping[str, int] | None = None,
        may_claim: Callable[[str], bool] = lambda lane: True,  # noqa: ARG005
    ) -> None:
        self._queue = queue
        self._run = run
        self._priority = priority
        self._may_claim = may_claim
        self.stopping = threading.Event()
        self._threads = [
            (lane, threading.Thread(target=self._work, args=(lane,), name=f"worker-{lane}-{number}"))
            for lane in LANES
            for number in range((concurrency or {}).get(lane, 1))
        ]

    def start(self, *lanes: str) -> None:
        """Start these lanes, or all that have not started yet."""
        for lane, thread in self._threads:
            if (not lanes or lane in lanes) and not thread.is_alive() and not self.stopping.is_set():
                thread.start()

    def release(self) -> None:
        """Take no further job. Running jobs end, or go back into the queue at their next step."""
        self.stopping.set()
        self._queue.stop()

    def stop(self) -> None:
        self.release()
        for _, thread in self._threads:
            if thread.is_alive():
                thread.join()

    def _work(self, lane: str) -> None:
        while not self.stopping.is_set():
            if not self._may_claim(lane):
                self.stopping.wait(1)
                continue
            try:
                job = self._queue.claim(lane, self.stopping)
                if job is not None:
                    self._do(job)
            except KBError as error:
                message = "the %s worker could not reach the queue: %s"
                log.error(message, lane, error.message, exc_info=None if error.retryable else error)
                self._queue.stuck(error)
                self.stopping.wait(1)

    def _check(self, job_id: str) -> None:
        self._priority.give_way()
        if self._queue.is_cancelling(job_id):
            raise JobCancelled
        if self._queue.is_lost(job_id):
            raise JobLost
        if self.stopping.is_set():
            raise JobInterrupted

    def _do(self, job: Row) -> None:
        try:
            self._run(job, lambda: self._check(job["id"]))
        except JobInterrupted:
            log.info("job %s goes back into the queue", job["id"])
            self._record(lambda: self._queue.put_back(job))
        except JobCancelled:
            log.info("job %s was cancelled", job["id"])
            self._record(lambda: self._queue.cancelled(job))
        except JobLost:
            log.warning("job %s is run by another engine by now, or has ended", job["id"])
        except JobSlow:
            log.info("job %s goes on in the lane of large jobs", job["id"])
            self._record(lambda: self._queue.move(job, "large"))
        except JobFailure as failure:
            log.warning("job %s failed: %s", job["id"], failure.code)
            code, message = failure.code, failure.message
            self._record(lambda: self._queue.fail(job, code, message))
        except Exception as error:  # noqa: BLE001 - whatever happens, the job ends in a recorded state
            self._failed(job, error)
        finally:
            self._queue.done_with(job["id"])

    def _failed(self, job: Row, error: Exception) -> None:
        """Try again later if the reason may pass (a full disk, a busy database), each time later; else fail the job.

        However long an embedding endpoint is away, the job waits for it.
        """
        if isinstance(error, KBError) and error.details.get("endpoint_away"):
            log.debug("job %s waits: %s", job["id"], error.message)
            self._record(lambda: self._queue.postpone(job, ENDPOINT_WAIT, counted=False))
            return
        if isinstance(error, KBError) and error.retryable and job["attempts"] < MAX_ATTEMPTS:
            wait = min(2.0 ** job["attempts"], LONGEST_WAIT)
            log.warning("job %s is tried again in %.0f s: %s", job["id"], wait, error.message)
            self._record(lambda: self._queue.postpone(job, wait))
            return
        log.error("job %s failed", job["id"], exc_info=error)
        if isinstance(error, MemoryError):
            message = "The engine got no more memory for it. Split it into smaller parts, or give kb more memory."
            self._record(lambda: self._queue.fail(job, "out_of_memory", message))
            return
        message = error.message if isinstance(error, KBError) else f"{type(error).__name__}: {error}"
        self._record(lambda: self._queue.fail(job, "internal", message))

    def _record(self, outcome: Callable[[], None]) -> None:
        """Record how a job ended as soon as the database can be written; else the job runs again after a restart."""
        while True:
            try:
                outcome()
            except JobLost:
                return
            except KBError as error:
                log.warning("how a job ended cannot be written down yet: %s", error.message)
                self._queue.stuck(error)
                if self.stopping.wait(1):
                    return
            else:
                return
