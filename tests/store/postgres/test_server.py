"""What only a database server can do: go away, come back, be taken over, refuse rights."""

import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from kb.core.changes import Change
from kb.core.errors import Conflict, KBError, Unavailable
from kb.store.postgres import database as module
from kb.store.postgres import pool
from kb.store.postgres.address import parsed
from kb.store.postgres.commit import committed, took_place
from kb.store.postgres.database import PostgresDatabase
from kb.store.postgres.migrate import migrate
from kb.store.postgres.pool import connect
from kb.store.postgres.runner import Connection
from postgres import PostgresServer
from support import eventually

SET = "INSERT INTO meta (key, value) VALUES (:key, :value)"
KEYS = "SELECT key FROM meta ORDER BY key"
ROLES = """
CREATE ROLE kb_owner LOGIN; CREATE ROLE kb_app LOGIN;
CREATE SCHEMA {name} AUTHORIZATION kb_owner; GRANT USAGE ON SCHEMA {name} TO kb_app;
ALTER DEFAULT PRIVILEGES FOR ROLE kb_owner IN SCHEMA {name}
    GRANT SELECT, INSERT, UPDATE, DELETE, MAINTAIN ON TABLES TO kb_app;
ALTER DEFAULT PRIVILEGES FOR ROLE kb_owner IN SCHEMA {name} GRANT USAGE, SELECT, UPDATE ON SEQUENCES TO kb_app;
"""


@pytest.fixture
def name() -> str:
    return f"t{uuid.uuid4().hex[:20]}"


@pytest.fixture
def database(postgres: PostgresServer, name: str) -> Iterator[PostgresDatabase]:
    made = PostgresDatabase(parsed(postgres.url, name))
    migrate(made)
    yield made
    made.close()


def keys(database: PostgresDatabase) -> list[str]:
    return [key for (key,) in database.select(KEYS, {})]


def test_what_replaces_everything_needs_it_alone(
    postgres: PostgresServer, database: PostgresDatabase, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOCK_SECONDS", 0.2)
    for place in ("", "here:/data"):
        with pytest.raises(Conflict, match="Another engine is using"):
            migrate(PostgresDatabase(parsed(postgres.url, name), place))
    database.close()
    engines = [PostgresDatabase(parsed(postgres.url, name), f"{place}:/data") for place in ("here", "there")]
    for engine in engines:
        migrate(engine)
    with pytest.raises(Conflict, match="Another engine is using"):
        migrate(PostgresDatabase(parsed(postgres.url, name)))
    for engine in engines:
        engine.close()


def test_connections_that_broke_unused_are_replaced(postgres: PostgresServer, database: PostgresDatabase) -> None:
    with database.write() as tx:
        tx.run(SET, {"key": "before", "value": ""})
    for use in ("select", "read", "write"):
        postgres.end_connections()
        if use == "select":
            assert keys(database) == ["before"]
        elif use == "read":
            with database.read() as tx:
                assert tx.column(KEYS) == ["before"]
        else:
            with database.write() as tx:
                tx.run(SET, {"key": "behind", "value": ""})
    assert keys(database) == ["before", "behind"]


def test_a_connection_that_breaks_inside_a_write_changes_nothing(
    postgres: PostgresServer, database: PostgresDatabase
) -> None:
    with pytest.raises(Unavailable), database.write() as tx:
        tx.run(SET, {"key": "a", "value": ""})
        postgres.end_connections()
        tx.run(SET, {"key": "b", "value": ""})
    assert keys(database) == []


@pytest.mark.parametrize("took_place", [False, True])
def test_a_commit_without_an_answer_is_asked_for(
    postgres: PostgresServer, database: PostgresDatabase, took_place: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log tells whether it took place."""
    followed: list[str] = []

    def interrupted(connection: Connection) -> bool:
        if took_place:
            connection.execute("COMMIT")
        postgres.end_connections()
        return committed(connection)

    monkeypatch.setattr(module, "committed", interrupted)

    def write() -> None:
        with database.write() as tx:
            tx.run(SET, {"key": "a", "value": ""})
            tx.after_commit(lambda: followed.append("after"))
            tx.publishes([1], lambda: followed.append("index"))

    if took_place:
        write()
    else:
        with pytest.raises(Unavailable, match="nothing was changed"):
            write()
    assert (keys(database), followed) == ((["a"], ["index", "after"]) if took_place else ([], []))


def test_a_write_whose_fate_stays_unknown_says_so(database: PostgresDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DOUBT_SECONDS", 0.0)
    monkeypatch.setattr(module, "committed", lambda connection: bool(connection.close()))
    monkeypatch.setattr(module, "took_place", lambda *_: None)
    with pytest.raises(Unavailable, match="whether it took place") as unknown, database.write() as tx:
        tx.run(SET, {"key": "a", "value": ""})
    assert unknown.value.details == {"in_doubt": True}


def test_a_write_that_is_still_on_its_way_is_waited_for(database: PostgresDatabase) -> None:
    """Its COMMIT may yet arrive: only when it has ended is the answer known."""
    with connect(database.address.conninfo) as slow:
        slow.execute("BEGIN; UPDATE head SET seq = seq + 1")
        assert took_place(database.address.conninfo, str(uuid.uuid4())) is None
        slow.execute("ROLLBACK")
    assert took_place(database.address.conninfo, str(uuid.uuid4())) is False


def test_a_commit_after_a_failed_statement_is_no_commit(database: PostgresDatabase) -> None:
    with pytest.raises(Unavailable, match="rolled a change back"), database.write(publishes=False) as tx:
        tx.run(SET, {"key": "a", "value": ""})
        with suppress(KBError, psycopg.Error):
            tx.run(SET, {"key": "a", "value": ""})
    assert keys(database) == []


def test_the_log_has_a_row_for_each_write_that_publishes(database: PostgresDatabase) -> None:
    with database.write() as tx:
        tx.publishes([3, 4], lambda: None)
        tx.tell(Change("document", 3, "added"))
    with database.write(publishes=False) as tx:
        tx.run(SET, {"key": "a", "value": ""})
    with database.write() as tx:
        tx.publishes(None, lambda: None)
    with pytest.raises(ZeroDivisionError), database.write():
        raise ZeroDivisionError
    found = database.select("SELECT seq, kind, document_ids, told FROM changes ORDER BY seq", {})
    assert found == [(1, "documents", [3, 4], '[["document",3,"added"]]'), (2, "index", [], "[]")]
    assert database.select("SELECT seq FROM head", {}) == [(2,)]


def test_the_owner_makes_the_tables_and_another_role_serves_them(postgres: PostgresServer, name: str) -> None:
    """With the roles of docs/deploy.md."""
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(ROLES.format(name=name))
    try:
        owner, app = (postgres.url.replace("postgres@", f"{role}@") for role in ("kb_owner", "kb_app"))
        for missing in (name, f"{name}x"):
            with pytest.raises(KBError, match=r"docs/deploy\.md"):
                migrate(PostgresDatabase(parsed(app, missing)))
        made = PostgresDatabase(parsed(owner, name))
        migrate(made)
        made.close()
        served = PostgresDatabase(parsed(app, name))
        migrate(served)
        with served.write() as tx:
            tx.run(SET, {"key": "a", "value": ""})
            assert tx.next_job_seq() == 1
            tx.fulltext.rebuild()
        served.vacuum()
        assert keys(served) == ["a"]
        served.close()
    finally:
        with psycopg.connect(postgres.url, autocommit=True) as connection:
            connection.execute("DROP OWNED BY kb_app; DROP OWNED BY kb_owner; DROP ROLE kb_app, kb_owner")


def test_what_was_purged_is_vacuumed_when_writing_pauses(
    database: PostgresDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.tidy()
    before = vacuums(database)
    with database.write() as tx:
        tx.run_many(SET, [{"key": f"{number}", "value": "x" * 1000} for number in range(1000)])
    with database.write() as tx:
        tx.run("DELETE FROM meta")
    database.truncate_wal()
    database.tidy()
    assert vacuums(database) == before  # it does not stand in the way of others who write
    monkeypatch.setattr(module, "IDLE_SECONDS", 0.0)
    database.tidy()
    assert vacuums(database) == before + 1
    database.tidy()
    assert vacuums(database) == before + 1  # nothing was purged since


def vacuums(database: PostgresDatabase) -> int:
    """How often kb vacuumed a table. Its size says less: the server keeps what another transaction may still see."""
    ((count,),) = database.select("SELECT pg_stat_get_vacuum_count('meta'::regclass)", {})
    return int(count)


def test_a_server_that_is_not_there_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="cannot be reached"):
        migrate(PostgresDatabase(parsed(f"postgresql://kb@/kb?host={tmp_path}", "kb")))


def test_an_engine_goes_on_soon_after_the_server_is_back(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "WAIT_SECONDS", 0.5)
    server = PostgresServer()
    database = PostgresDatabase(parsed(server.url, name))
    try:
        migrate(database)
        server.kill()
        away = time.monotonic() + 4
        while time.monotonic() < away:
            with pytest.raises(Unavailable):
                keys(database)
        server.start()
        eventually(lambda: answers(database), 2.5)
    finally:
        database.close()
        server.close()


def answers(database: PostgresDatabase) -> bool:
    try:
        return keys(database) == []
    except Unavailable:
        return False


def test_a_schema_of_a_newer_kb_is_refused(postgres: PostgresServer, database: PostgresDatabase, name: str) -> None:
    with database.write() as tx:
        tx.run("INSERT INTO migrations (version, applied_at) VALUES (999, '')")
    database.close()
    with pytest.raises(KBError, match="newer kb"):
        migrate(PostgresDatabase(parsed(postgres.url, name)))
