"""Two engines on one schema: each follows what the other writes, and neither takes the other's work."""

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pytest

from kb.core.changes import RESET, Change
from kb.core.errors import JobLost
from kb.core.times import now
from kb.store import chunks, documents, jobs
from kb.store.backend import Row
from kb.store.postgres.address import parsed
from kb.store.postgres.database import PostgresDatabase
from kb.store.postgres.migrate import migrate
from postgres import PostgresServer
from support import eventually


@dataclass
class Index:
    """Records what a follower does to it."""

    done: list[str] = field(default_factory=list)

    def adopt(self, document_ids: Sequence[int]) -> None:
        self.done.append(f"adopt {list(document_ids)}")

    def reload(self) -> None:
        self.done.append("reload")


@pytest.fixture
def engines(postgres: PostgresServer) -> Iterator[tuple[PostgresDatabase, PostgresDatabase]]:
    name = f"t{uuid.uuid4().hex[:20]}"
    one, two = (PostgresDatabase(parsed(postgres.url, name), f"{place}:/data") for place in ("one", "two"))
    for engine in (one, two):
        migrate(engine)
    yield one, two
    for engine in (one, two):
        engine.close()


def claim(engine: PostgresDatabase) -> Row | None:
    with engine.write(publishes=False) as tx:
        return tx.claim_job("small", now())


def submit(engine: PostgresDatabase, *ids: str) -> None:
    with engine.write() as tx:
        for id_ in ids:
            jobs.add(tx, jobs.NewJob(id=id_, kind="note", payload={}))


def test_each_follows_in_the_order_of_the_log(engines: tuple[PostgresDatabase, PostgresDatabase]) -> None:
    one, two = engines
    index = Index()
    told: list[Change] = []
    two.listen(told.extend)
    two.follow(index)
    eventually(lambda: RESET in told)
    with one.write() as tx:
        tx.publishes([7], lambda: None)
        tx.tell(Change("document", 7, "added"))
    with two.write() as tx:
        tx.publishes([8], lambda: index.done.append("own 8"))
    with one.write() as tx:
        tx.publishes(None, lambda: None)
    assert two.catch_up() is None
    assert index.done == ["reload", "adopt [7]", "own 8", "reload"]
    assert Change("document", 7, "added") in told
    with one.write(publishes=False) as tx:
        tx.tell(Change("job", "a", "progress"))
    eventually(lambda: Change("job", "a", "progress") in told)


def test_one_that_applied_what_the_next_primary_lacks_begins_again(
    engines: tuple[PostgresDatabase, PostgresDatabase],
) -> None:
    one, two = engines
    index = Index()
    two.follow(index)
    with one.write() as tx:
        tx.publishes([7], lambda: None)
    two.catch_up()
    with one.write(publishes=False) as tx:  # as after a failover to a standby that was behind
        tx.run("UPDATE changes SET write_id = :id::uuid", {"id": str(uuid.uuid4())})
    two._follower.check()
    assert index.done == ["reload", "adopt [7]", "reload"]


def test_each_job_is_claimed_once(engines: tuple[PostgresDatabase, PostgresDatabase]) -> None:
    one, two = engines
    submit(one, "a", "b", "c")
    claimed = [claim(engine) for engine in (one, two, one, two)]
    assert [job and job["id"] for job in claimed] == ["a", "b", "c", None]


def test_a_worker_whose_claim_is_over_cannot_publish(engines: tuple[PostgresDatabase, PostgresDatabase]) -> None:
    one, two = engines
    submit(one, "a")
    stale = claim(one)
    assert stale is not None
    with two.write() as tx:
        assert tx.abandoned_jobs() == []
        tx.run("UPDATE jobs SET lease_until = clock_timestamp() - interval '1 second'")
        assert tx.abandoned_jobs() == ["a"]
        jobs.recover(tx)
    fresh = claim(two)
    assert fresh is not None
    with pytest.raises(JobLost), one.write() as tx:
        tx.hold(stale)
    with two.write() as tx:
        tx.hold(fresh)
        jobs.complete(tx, "a", None, None, 0)
    with pytest.raises(JobLost), two.write() as tx:
        tx.hold(fresh)


def test_only_a_renewed_claim_lasts(engines: tuple[PostgresDatabase, PostgresDatabase]) -> None:
    one, two = engines
    submit(one, "a")
    assert claim(one) is not None
    with two.write(publishes=False) as tx:
        jobs.cancel(tx, "a")
    beat = one.beat(["a", "b"], "serving")
    assert (beat.leads, beat.alone, beat.lost, beat.cancelling) == (True, False, frozenset("b"), frozenset("a"))
    assert not two.beat([], "serving").leads


def test_drafts_of_a_living_engine_stay(engines: tuple[PostgresDatabase, PostgresDatabase]) -> None:
    one, two = engines
    with one.write(publishes=False) as tx:
        mine = documents.reserve(tx)
    with two.write(publishes=False) as tx:
        documents.reserve(tx)
    two.close()
    with one.write() as tx:
        chunks.sweep(tx)
        assert tx.column("SELECT id FROM documents") == [mine]
        assert tx.column("SELECT document_id FROM drafts") == [mine]
