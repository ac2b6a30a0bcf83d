"""The queue on a real database: bounded, fair between lanes, and patient only so long."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from kb.core.errors import Conflict, Unavailable, damaged
from kb.embedding.priority import LONGEST, Priority
from kb.engine.jobs import queue as queues
from kb.engine.jobs.queue import Queue
from kb.engine.jobs.worker import Worker
from kb.store import jobs
from kb.store.backend import Database, Row
from kb.store.open import Store


@pytest.fixture
def database(store: Store) -> Database:
    return store.database


def submit(database: Database, queue: Queue, job_id: str, lane: str = "small") -> None:
    with database.write() as tx:
        queue.submit(tx, jobs.NewJob(id=job_id, kind="note", lane=lane, payload={}))


def claim(database: Database, lane: str = "small") -> Row | None:
    with database.write() as tx:
        return tx.claim_job(lane, "2100-01-01T00:00:00Z")


def claimed(database: Database) -> Row:
    job = claim(database)
    assert job is not None
    return job


def jobs_of(database: Database) -> Counter[str]:
    with database.read() as tx:
        return Counter(job.status for job in jobs.page(tx, None, 100, 0)[0])


def test_a_full_queue_takes_nothing_more(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queues, "MAX_QUEUED", 3)
    queue = Queue(database)
    for number in range(3):
        submit(database, queue, f"job-{number}")
    with pytest.raises(Unavailable, match="3 jobs are waiting"):
        submit(database, queue, "one-too-many")
    claim(database)
    submit(database, queue, "there-is-room-again")
    with database.read() as tx:
        assert jobs.page(tx, None, 10, 0)[1] == 4


@pytest.mark.sqlite
def test_nobody_waits_for_a_job_while_the_database_is_damaged(store: Store, tmp_path: Path) -> None:
    database = store.database
    queue = Queue(database)
    submit(database, queue, "done")
    with database.write() as tx:
        jobs.complete(tx, "done", None, None, 0)
    submit(database, queue, "waiting")

    def fail(_: Row, __: Callable[[], None]) -> None:
        queue.stuck(damaged("The jobs cannot be read."))

    worker = Worker(queue, fail, Priority())
    told = threading.Event()
    with queue.watch("waiting", told.set):
        worker.start("small")
        assert told.wait(10)
    worker.stop()
    for attempt in (lambda: queue.get("waiting"), lambda: submit(database, queue, "more")):
        with pytest.raises(Conflict, match="kb doctor --fix"):
            attempt()
    assert queue.get("done").status == "completed"

    store.mender.mend(tmp_path / "room")
    assert queue.get("waiting").status == "running"
    submit(database, queue, "more")


def test_a_small_job_does_not_wait_behind_a_large_one(database: Database) -> None:
    queue = Queue(database)
    large_runs, small_ran = threading.Event(), threading.Event()

    def run(job: Row, _: object) -> None:
        if job["lane"] == "large":
            large_runs.set()
            assert small_ran.wait(30)
        else:
            small_ran.set()
        with database.write() as tx:
            jobs.complete(tx, job["id"], None, None, 0)

    worker = Worker(queue, run, Priority())
    worker.start()
    try:
        submit(database, queue, "large", "large")
        assert large_runs.wait(30)
        submit(database, queue, "small")
        assert small_ran.wait(30)
    finally:
        worker.stop()
    with database.read() as tx:
        assert {job.status for job in jobs.page(tx, None, 10, 0)[0]} == {"completed"}


def test_a_job_waits_between_its_steps_while_something_goes_first(database: Database) -> None:
    queue, priority, done = Queue(database), Priority(), threading.Event()
    took: list[float] = []

    def run(job: Row, interrupt: Callable[[], None]) -> None:
        with priority.search():
            started = time.monotonic()
            interrupt()
            took.append(time.monotonic() - started)
        with database.write() as tx:
            jobs.complete(tx, job["id"], None, None, 0)
        done.set()

    worker = Worker(queue, run, priority)
    worker.start()
    try:
        submit(database, queue, "job")
        assert done.wait(30)
    finally:
        worker.stop()
    assert took[0] >= LONGEST * 0.9


def test_several_jobs_of_a_lane_run_at_once_where_there_are_hands_for_them(database: Database) -> None:
    queue = Queue(database)
    together = threading.Barrier(3)

    def run(job: Row, _: object) -> None:
        together.wait(30)
        with database.write() as tx:
            jobs.complete(tx, job["id"], None, None, 0)

    worker = Worker(queue, run, Priority(), {"small": 3})
    worker.start()
    try:
        for number in range(6):
            submit(database, queue, f"job-{number}")
        deadline = time.monotonic() + 30
        while jobs_of(database) != {"completed": 6} and time.monotonic() < deadline:
            time.sleep(0.01)
    finally:
        worker.stop()
    assert jobs_of(database) == {"completed": 6}


def test_a_job_that_was_running_whenever_the_engine_died_is_given_up(database: Database) -> None:
    queue = Queue(database)
    submit(database, queue, "deadly")
    submit(database, queue, "harmless")
    for _ in range(jobs.MAX_CRASHES):
        row = claim(database)
        assert row is not None
        assert row["id"] == "deadly"
        with database.write() as tx:
            jobs.recover(tx)  # as a start does after the process died
    deadly, harmless = queue.get("deadly"), queue.get("harmless")
    assert deadly.error
    assert deadly.error.code == "crashed"
    assert "ended 5 times" in deadly.error.message
    assert (harmless.status, harmless.attempts) == ("queued", 0)
    assert queue.retry("deadly").status == "queued"
    assert queue.get("deadly").error is None


class NoOtherEngine:
    """An index that only changes by the writes of its own engine."""

    def adopt(self, document_ids: Sequence[int]) -> None:
        raise AssertionError(f"another engine wrote {document_ids}")

    def reload(self) -> None:
        raise AssertionError


def test_a_job_is_told_to_have_ended_once_searches_find_what_it_brought(database: Database) -> None:
    queue = Queue(database)
    database.follow(NoOtherEngine(), load=False)
    submit(database, queue, "slow to be followed")
    committed, follow = threading.Event(), threading.Event()
    told: list[str] = []

    def slowly() -> None:
        committed.set()
        follow.wait(30)

    def complete() -> None:
        with database.write() as tx:
            jobs.complete(tx, "slow to be followed", None, None, 0)
            tx.publishes([1], slowly)

    def ask() -> None:
        told.append(queue.get("slow to be followed").status)

    completing, asking = threading.Thread(target=complete), threading.Thread(target=ask)
    completing.start()
    assert committed.wait(30)
    asking.start()
    asking.join(0.3)
    assert not told
    follow.set()
    asking.join(30)
    completing.join(30)
    assert told == ["completed"]


def test_a_job_that_was_interrupted_keeps_its_turn(database: Database) -> None:
    queue = Queue(database)
    submit(database, queue, "first")
    claim(database)
    submit(database, queue, "second")
    with database.write() as tx:
        jobs.recover(tx)
    again = claim(database)
    assert again is not None
    assert again["id"] == "first"


def test_waiting_for_better_times_is_no_crash(database: Database) -> None:
    queue = Queue(database)
    submit(database, queue, "patient")
    for _ in range(jobs.MAX_CRASHES):
        queue.postpone(claimed(database), 0)
    claim(database)
    with database.write() as tx:
        jobs.recover(tx)
    assert queue.get("patient").status == "queued"


def test_a_job_that_gets_no_memory_says_so(database: Database) -> None:
    queue = Queue(database)

    def run(_: Row, __: object) -> None:
        raise MemoryError

    worker = Worker(queue, run, Priority())
    worker.start()
    try:
        submit(database, queue, "large")
        deadline = time.monotonic() + 30
        while not queue.get("large").ended and time.monotonic() < deadline:
            time.sleep(0.01)
    finally:
        worker.stop()
    error = queue.get("large").error
    assert error
    assert error.code == "out_of_memory"


def test_being_put_back_is_no_attempt(database: Database) -> None:
    queue = Queue(database)
    submit(database, queue, "interrupted")
    for _ in range(2 * jobs.MAX_CRASHES):
        queue.put_back(claimed(database))
    claim(database)
    with database.write() as tx:
        jobs.recover(tx)
    assert queue.get("interrupted").status == "queued"


def test_a_cancelled_job_that_died_with_the_engine_stays_cancelled(database: Database) -> None:
    queue = Queue(database)
    submit(database, queue, "unwanted")
    claim(database)
    queue.cancel("unwanted")
    with database.write() as tx:
        jobs.recover(tx)
    assert queue.get("unwanted").status == "cancelled"
