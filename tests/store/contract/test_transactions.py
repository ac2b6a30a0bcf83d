"""Units of work: whole or not at all, one moment, one writer at a time, and texts that come back as they were."""

import threading

import pytest

from kb.core.changes import Change
from kb.core.errors import KBError
from kb.store import documents, meta
from kb.store.open import Store

SET = "INSERT INTO meta (key, value) VALUES (:key, :value)"
GET = "SELECT value FROM meta WHERE key = :key"


def test_a_write_that_fails_changes_nothing(store: Store) -> None:
    with pytest.raises(ZeroDivisionError), store.database.write() as tx:
        tx.run(SET, {"key": "a", "value": "1"})
        tx.after_commit(lambda: pytest.fail("it was not committed"))
        raise ZeroDivisionError
    with store.database.read() as tx:
        assert tx.value(GET, {"key": "a"}) is None


def test_a_refused_statement_is_an_error_of_ours_and_changes_nothing(store: Store) -> None:
    with pytest.raises(KBError), store.database.write() as tx:
        tx.run(SET, {"key": "a", "value": "1"})
        tx.run(SET, {"key": "a", "value": "2"})
    with store.database.write() as tx:
        assert tx.value(GET, {"key": "a"}) is None


def test_a_read_sees_one_moment(store: Store) -> None:
    def write() -> None:
        with store.database.write() as tx:
            tx.run(SET, {"key": "a", "value": "1"})

    with store.database.read() as tx:
        assert tx.value(GET, {"key": "a"}) is None
        other = threading.Thread(target=write)
        other.start()
        other.join()
        assert tx.value(GET, {"key": "a"}) is None
    assert store.database.select(GET, {"key": "a"}) == [("1",)]


@pytest.mark.parametrize("durable", [True, False])
def test_there_is_one_writer_at_a_time(store: Store, durable: bool) -> None:
    with store.database.write() as tx:
        tx.run(SET, {"key": "n", "value": "0"})

    def count() -> None:
        for _ in range(20):
            with store.database.write(durable=durable) as tx:
                value = int(tx.value(GET, {"key": "n"}))
                tx.run("UPDATE meta SET value = :value WHERE key = 'n'", {"value": str(value + 1)})

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.database.select(GET, {"key": "n"}) == [("80",)]


def test_the_index_follows_the_commit_and_listeners_follow_the_index(store: Store) -> None:
    order: list[str] = []
    store.database.listen(lambda changes: order.append(f"told {changes[0].id}"))
    before = store.database.changes
    with store.database.write() as tx:
        tx.tell(Change("document", 7, "added"))
        tx.publishes([7], lambda: order.append(f"index {store.database.select(GET, {'key': 'a'})}"))
        tx.after_commit(lambda: order.append("after"))
        tx.run(SET, {"key": "a", "value": "1"})
        order.append("inside")
    order.remove("after")
    assert order == ["inside", "index [('1',)]", "told 7"]
    assert store.database.changes == before + 1


@pytest.mark.parametrize(
    "text",
    ["a\0b\0", "\U0010fffe", "\U0010fffe0 and \0", "it's :name 100% %s %(x)s ::int", "\\ \x1f \n\r", "😀漢字", ""],
)
def test_a_text_comes_back_as_it_was(store: Store, text: str) -> None:
    with store.database.write() as tx:
        tx.run(SET, {"key": text, "value": text})
        assert tx.value(GET, {"key": text}) == text
        assert tx.rows("SELECT * FROM meta WHERE value = :v", {"v": text}) == [{"key": text, "value": text}]
        assert tx.values("SELECT value FROM meta WHERE key = :key", [{"key": text}]) == [text]


def test_whole_numbers_come_as_arrays(store: Store) -> None:
    with store.database.write() as tx:
        ids = [documents.reserve(tx) for _ in range(3)]
        found = tx.integers(("id", "revision", "version"), "documents WHERE id > :least", {"least": ids[0]})
        assert sorted(map(tuple, found.tolist())) == [(id_, 0, 1) for id_ in ids[1:]]
        assert tx.integers(("id",), "documents WHERE id < 0").shape == (0, 1)


def test_no_id_is_given_twice(store: Store) -> None:
    with store.database.write() as tx:
        first = documents.reserve(tx)
        documents.delete(tx, first)
    with store.database.write() as tx:
        assert documents.reserve(tx) > first
        assert tx.ids_given("documents") > first
        tx.raise_ids("documents", 1000)
        tx.raise_ids("documents", 10)
        assert documents.reserve(tx) == 1001
        assert tx.ids_given("chunks") == 0


def test_a_database_that_can_be_read_says_so(store: Store) -> None:
    with store.database.read() as tx:
        meta.probe(tx)
        assert (tx.changed_rows(), tx.lost_rows(), tx.broken_references()) == ({}, {}, [])
    assert (store.database.damage(), store.database.fulltext_damage()) == ([], [])
    assert store.database.size_bytes() > 0
    store.database.vacuum()
    store.database.tidy()
