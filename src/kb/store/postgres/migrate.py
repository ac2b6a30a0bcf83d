"""Bring a schema of PostgreSQL to the current version: each migration and its record are one transaction.

A schema that is up to date is only read: an engine may then run as a role that can change rows and nothing else.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from psycopg import sql

from kb.core.errors import KBError
from kb.core.times import now
from kb.store.postgres.database import PostgresDatabase
from kb.store.postgres.errors import translated
from kb.store.postgres.runner import Connection, executed

MIGRATIONS = Path(__file__).parent / "migrations"
RECORD = "INSERT INTO migrations (version, applied_at) VALUES (:version, :now)"
# One at a time, also if two engines start at once with an empty server.
ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(hashtext('kb migrations'), hashtext(:schema))"


def migrate(database: PostgresDatabase) -> None:
    """Lock the knowledge base, bring its schema to the current version, and open it."""
    with translated(), closed_on_error(database):
        guard = database.lock()
        files = sorted(MIGRATIONS.glob("*.sql"))
        done = applied(guard)
        if done > len(files):
            raise KBError(
                f"This knowledge base has schema {done}, made by a newer kb; this one knows {len(files)}. Upgrade kb."
            )
        for number in range(done + 1, len(files) + 1):
            apply(guard, database.address.schema, number, files[number - 1].read_text(encoding="utf-8"))
        database.open()


@contextmanager
def closed_on_error(database: PostgresDatabase) -> Iterator[None]:
    try:
        yield
    except BaseException:
        database.close()
        raise


def applied(connection: Connection) -> int:
    """The number of the last migration; 0 if there is no schema yet."""
    if executed(connection, "SELECT to_regclass('migrations')").fetchone() == (None,):
        return 0
    found = executed(connection, "SELECT max(version) FROM migrations").fetchone()
    return int(found[0]) if found and found[0] else 0


def apply(connection: Connection, schema: str, number: int, statements: str) -> None:
    with connection.transaction():
        executed(connection, ONE_AT_A_TIME, {"schema": schema})
        if number == 1:
            # Also where it is there, `IF NOT EXISTS` asks for the right to make one.
            if executed(connection, "SELECT current_schema()").fetchone() == (None,):
                connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
            connection.execute(
                "CREATE TABLE IF NOT EXISTS migrations (version bigint PRIMARY KEY, applied_at text NOT NULL)"
            )
        if applied(connection) < number:
            connection.execute(statements)
            executed(connection, RECORD, {"version": number, "now": now()})
