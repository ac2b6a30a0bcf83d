"""Who follows changes misses none silently."""

import pytest

from kb.core.changes import RESET, Change
from kb.engine import feed as feeds
from kb.engine.feed import BUFFERED, Feed
from kb.store import jobs
from kb.store.backend import Database
from kb.store.open import Store


@pytest.fixture
def database(store: Store) -> Database:
    return store.database


def told(database: Database, *changes: Change) -> None:
    with database.write() as tx:
        for change in changes:
            tx.tell(change)


def test_a_follower_that_takes_nothing_is_told_to_begin_anew(database: Database) -> None:
    feed = Feed(database)
    woken: list[None] = []
    changes = [Change("document", number, "tags") for number in range(BUFFERED)]
    with feed.follow(lambda: woken.append(None)) as slow, feed.follow(lambda: None) as quick:
        told(database, *changes)
        assert [event.change for event in quick.take()] == changes
        told(database, Change("document", 1, "deleted"))
        told(database, Change("document", 2, "deleted"))
        assert [event.change for event in slow.take()] == [RESET, Change("document", 2, "deleted")]
        assert [event.change.id for event in quick.take()] == [1, 2]
    assert len(woken) == 3
    told(database, Change("document", 3, "deleted"))
    assert slow.take() == []


def test_what_is_rolled_back_is_not_told(database: Database) -> None:
    with Feed(database).follow(lambda: None) as follower:
        with pytest.raises(ZeroDivisionError), database.write() as tx:
            tx.tell(Change("document", 1, "added"))
            _ = 1 / 0
        assert follower.take() == []


def test_progress_is_told_once_in_a_while_and_the_end_always(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = Feed(database)
    with feed.follow(lambda: None) as follower:
        with database.write() as tx:
            for id_ in ("one", "two"):
                jobs.add(tx, jobs.NewJob(id=id_, kind="note", payload={}))
                jobs.progress(tx, id_, 1, 9, "first")
                jobs.progress(tx, id_, 2, 9, "second")
        with database.write() as tx:
            jobs.fail(tx, "one", "internal", "no")
        assert [event.change[1:] for event in follower.take()] == [
            ("one", "queued"), ("one", "progress"), ("two", "queued"), ("two", "progress"), ("one", "failed"),
        ]  # fmt: skip
        monkeypatch.setattr(feeds, "PROGRESS_SECONDS", 0.0)
        with database.write() as tx:
            jobs.progress(tx, "two", 3, 9, "third")
        assert [event.change[1:] for event in follower.take()] == [("two", "progress")]
