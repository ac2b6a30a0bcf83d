"""The worker: one thread per lane that claims a job, runs it and records how it ended."""

import logging
import threading
from collections.abc import Callable

from kb.errors import JobCancelled, JobFailure, JobInterrupted, KBError
from kb.jobs.queue import LANES, Queue
from kb.store.backend import Row

log = logging.getLogger(__name__)

Interrupt = Callable[[], None]
Run = Callable[[Row, Interrupt], None]


class Worker:
    """`run` does one job and records its success; what it raises is recorded here.

    It is given a function to call between its steps, which raises when the job should not go on.
    """

    def __init__(self, queue: Queue, run: Run) -> None:
        self._queue = queue
        self._run = run
        self._stopping = threading.Event()
        self._threads = [threading.Thread(target=self._work, args=(lane,), name=f"worker-{lane}") for lane in LANES]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Take no further job; the ones that run end, or go back into the queue at their next step."""
        self._stopping.set()
        self._queue.stop()
        for thread in self._threads:
            if thread.is_alive():
                thread.join()

    def _work(self, lane: str) -> None:
        while not self._stopping.is_set():
            try:
                job = self._queue.claim(lane, self._stopping)
                if job is not None:
                    self._do(job)
            except KBError:
                log.exception("the %s worker could not reach the queue", lane)
                self._stopping.wait(1)

    def _check(self, job_id: str) -> None:
        if self._queue.is_cancelling(job_id):
            raise JobCancelled
        if self._stopping.is_set():
            raise JobInterrupted

    def _do(self, job: Row) -> None:
        try:
            self._run(job, lambda: self._check(job["id"]))
        except JobInterrupted:
            log.info("job %s goes back into the queue", job["id"])
            self._queue.put_back(job["id"])
        except JobCancelled:
            log.info("job %s was cancelled", job["id"])
            self._queue.cancelled(job["id"])
        except JobFailure as failure:
            log.warning("job %s failed: %s", job["id"], failure.code)
            self._queue.fail(job["id"], failure.code, failure.message)
        except Exception as error:
            log.exception("job %s failed", job["id"])
            message = error.message if isinstance(error, KBError) else f"{type(error).__name__}: {error}"
            self._queue.fail(job["id"], "internal", message)
