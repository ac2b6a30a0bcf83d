"""SQLite as kb uses it: durable, one writer, many readers, errors of our own."""

import os
import threading
import time
from pathlib import Path

import apsw
import pytest

from kb.core.errors import KBError, StorageFull
from kb.index import terms
from kb.store.sqlite import database as databases
from kb.store.sqlite.connection import PRAGMAS, connect
from kb.store.sqlite.database import SQLiteDatabase
from kb.store.sqlite.migrate import migrate


@pytest.fixture
def database(tmp_path: Path) -> SQLiteDatabase:
    path = tmp_path / "kb.db"
    migrate(path, terms.index_terms)
    return SQLiteDatabase(path)


def count(database: SQLiteDatabase) -> int:
    with database.read() as tx:
        return int(tx.value("SELECT count(*) FROM meta"))


def put(database: SQLiteDatabase, key: str) -> None:
    with database.write() as tx:
        tx.run("INSERT INTO meta (key, value) VALUES (:key, 'x')", {"key": key})


@pytest.mark.parametrize(("name", "value"), [(name, expected) for name, _, expected in PRAGMAS])
def test_every_connection_has_its_pragmas(tmp_path: Path, name: str, value: object) -> None:
    assert connect(tmp_path / "kb.db").pragma(name) == value


def test_foreign_keys_are_really_on(database: SQLiteDatabase) -> None:
    with pytest.raises(KBError, match="FOREIGN KEY"), database.write() as tx:
        tx.run("INSERT INTO tags (document_id, tag) VALUES (12345, 'x')")


def test_only_a_durable_write_waits_for_the_disk(database: SQLiteDatabase) -> None:
    full = {name: expected for name, _, expected in PRAGMAS}["synchronous"]
    with pytest.raises(ZeroDivisionError), database.write(durable=False) as tx:
        raise ZeroDivisionError
    with database.write(durable=False) as tx:
        assert tx.value("PRAGMA synchronous") < full
        tx.run("INSERT INTO meta (key, value) VALUES ('a', 'x')")
    assert count(database) == 1
    with database.write() as tx:
        assert tx.value("PRAGMA synchronous") == full


def test_a_glance_sees_what_is_committed_and_leaves_nothing_open(database: SQLiteDatabase) -> None:
    put(database, "a")
    rows = "SELECT key FROM meta WHERE key = :key"
    assert database.select(rows, {"key": "a"}) == [("a",)]
    with pytest.raises(KBError, match="no such table"):
        database.select("SELECT * FROM nowhere", {})
    assert not database._connection().in_transaction
    put(database, "b")
    assert database.select(rows, {"key": "b"}) == [("b",)]


def test_a_write_that_fails_leaves_nothing(database: SQLiteDatabase) -> None:
    with pytest.raises(ZeroDivisionError), database.write() as tx:
        tx.run("INSERT INTO meta (key, value) VALUES ('a', 'x')")
        raise ZeroDivisionError
    assert count(database) == 0


def test_what_follows_a_commit_does_not_follow_a_rollback(database: SQLiteDatabase) -> None:
    told: list[str] = []
    with pytest.raises(ZeroDivisionError), database.write() as tx:
        tx.after_commit(lambda: told.append("rolled back"))
        raise ZeroDivisionError
    with database.write() as tx:
        tx.after_commit(lambda: told.append("committed"))
    assert told == ["committed"]


def test_a_reader_sees_one_moment(database: SQLiteDatabase) -> None:
    put(database, "before")
    with database.read() as tx:
        assert tx.value("SELECT count(*) FROM meta") == 1
        writer = threading.Thread(target=put, args=(database, "meanwhile"))
        writer.start()
        writer.join()
        assert tx.value("SELECT count(*) FROM meta") == 1
    assert count(database) == 2


def test_many_threads_write_one_after_the_other(database: SQLiteDatabase) -> None:
    threads = [threading.Thread(target=put, args=(database, str(number))) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert count(database) == 20


def test_a_file_that_is_no_database_is_a_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "kb.db"
    path.write_bytes(b"this is not a database, but it is long enough to be read as one" * 20)
    with pytest.raises(KBError, match="damaged or is not one"):
        migrate(path, terms.index_terms)


def test_a_folder_that_is_not_there_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(StorageFull, match="cannot be written or read"):
        migrate(tmp_path / "no" / "kb.db", terms.index_terms)


def test_a_foreign_sqlite_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "kb.db"
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE somebody_elses (x)")
    connection.close()
    with pytest.raises(KBError, match="was not made by kb"):
        migrate(path, terms.index_terms)


def test_integrity_check_passes_in_a_process_that_knows_nothing_of_kb(database: SQLiteDatabase) -> None:
    with database.write() as tx:
        tx.fulltext.add(1, "a title", "", "some 搜索 words")
    database.close()
    plain = apsw.Connection(str(database.path))
    assert plain.execute("SELECT * FROM pragma_integrity_check WHERE 1").fetchall() == [("ok",)]
    plain.execute("INSERT INTO chunks_fts (chunks_fts) VALUES ('integrity-check')").fetchall()


def test_a_check_after_somebody_elses_write_finds_nothing(database: SQLiteDatabase) -> None:
    """What a connection knows about the full text from its last check is out of date by the next."""

    def write(number: int) -> None:
        with database.write() as tx:
            tx.fulltext.add(number, "a title", "", f"words and number{number}")

    for number in range(1, 6):
        writer = threading.Thread(target=write, args=(number,))
        writer.start()
        writer.join()
        assert (database.damage(), database.fulltext_damage()) == ([], [])


def test_a_pause_empties_the_log_and_work_does_not(database: SQLiteDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    log = database.path.with_name("kb.db-wal")
    put(database, "busy")
    database.tidy()
    assert log.stat().st_size > 0
    monkeypatch.setattr(databases, "IDLE_SECONDS", 0.01)
    time.sleep(0.02)
    database.tidy()
    assert log.stat().st_size == 0
    assert count(database) == 1


@pytest.fixture
def emptied(database: SQLiteDatabase, monkeypatch: pytest.MonkeyPatch) -> SQLiteDatabase:
    """A large file that is free for the most part."""
    monkeypatch.setattr(databases, "LEAST_WASTED", 2**20)
    with database.write() as tx:
        rows = [{"key": f"key {number}", "value": "x" * 2000} for number in range(5000)]
        tx.run_many("INSERT INTO meta (key, value) VALUES (:key, :value)", rows)
    assert database.wasted_bytes == 0
    with database.write() as tx:
        tx.run("DELETE FROM meta WHERE rowid % 10 <> 0")
    assert database.wasted_bytes > 2**20
    return database


def test_what_a_large_deletion_freed_goes_back_to_the_disk(emptied: SQLiteDatabase, tmp_path: Path) -> None:
    with emptied.read() as tx:
        before = tx.tuples("SELECT rowid, * FROM meta ORDER BY rowid")
        large = emptied.path.stat().st_size
        vacuuming = threading.Thread(target=emptied.vacuum_into, args=(tmp_path / "room",))
        vacuuming.start()
        vacuuming.join()
        assert tx.tuples("SELECT rowid, * FROM meta ORDER BY rowid") == before  # its moment is as it was
    emptied.truncate_wal()
    assert emptied.path.stat().st_size < large / 4
    assert emptied.wasted_bytes == 0
    with emptied.read() as tx:
        assert tx.tuples("SELECT rowid, * FROM meta ORDER BY rowid") == before
        assert (tx.changed_rows(), tx.lost_rows()) == ({}, {})
    put(emptied, "afterwards")
    assert emptied.damage() == []


def test_a_writer_does_not_wait_until_the_file_is_smaller(emptied: SQLiteDatabase, tmp_path: Path) -> None:
    """The writer comes while the file is being copied: it interrupts that, and everything stays as it was."""
    writers: list[threading.Thread] = []

    def write() -> bool:
        if emptied._vacuuming is not None and not writers:
            writers.append(threading.Thread(target=put, args=(emptied, "came in between")))
            writers[0].start()
            time.sleep(0.2)
        return False

    connection = emptied._connection()
    connection.set_progress_handler(write, 100)
    assert emptied.vacuum_into(tmp_path / "room") is False
    connection.set_progress_handler(None)
    writers[0].join()
    assert count(emptied) == 501
    assert emptied.wasted_bytes > 2**20


def test_nobody_waits_for_a_reader_that_needs_the_log(database: SQLiteDatabase) -> None:
    """Were the reader waited for, this would never end: it lets go only after the log was asked for."""
    put(database, "before")
    with database.read() as tx:
        assert tx.value("SELECT count(*) FROM meta") == 1
        forgetting = threading.Thread(target=database.truncate_wal)
        forgetting.start()
        forgetting.join(5)
        assert not forgetting.is_alive()
    database.truncate_wal()
    assert database.path.with_name("kb.db-wal").stat().st_size == 0


def test_reading_postings_leaves_prepared_statements_as_they_are(database: SQLiteDatabase) -> None:
    """Whatever changes the schema, if only to be rolled back, has every statement of the connection parsed anew."""
    with database.write() as tx:
        tx.fulltext.add(1, "", "", "words")
    with database.read() as tx:
        before = tx.value("PRAGMA temp.schema_version")
    with database.read() as tx:
        assert tx.fulltext.postings(["words"])[0].chunk_ids.tolist() == [1]
        assert tx.value("PRAGMA temp.schema_version") == before


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files are counted through /proc")
def test_threads_that_have_ended_leave_no_connection_behind(database: SQLiteDatabase) -> None:
    put(database, "first")

    def open_files() -> int:
        names = [path for path in Path("/proc/self/fd").iterdir() if path.is_symlink()]
        return sum(str(database.path) in os.readlink(name) for name in names)

    before = open_files()
    for _ in range(20):
        reader = threading.Thread(target=count, args=(database,))
        reader.start()
        reader.join()
    assert open_files() <= before + 4  # the last thread's file and log, and what SQLite closes later
    assert count(database) == 1
