"""A COMMIT is believed only when the server says so without a doubt.

With a synchronous standby, a COMMIT that is cancelled while it waits for the standby returns as if it had succeeded,
with a warning; a failover would then lose it. A connection that breaks leaves open whether the server has committed.
"""

import psycopg
from psycopg import errors as pg

from kb.core.errors import Unavailable
from kb.store.postgres.pool import connect
from kb.store.postgres.runner import Connection, executed

WARNING = "01000"
# Waits for the write that it asks about, and writes itself: when its own commit is durable, so is every one before it.
ASK = """
BEGIN; SET LOCAL lock_timeout TO '3s'; SET LOCAL statement_timeout TO '5s'; UPDATE head SET seq = seq
"""
TOOK_PLACE = "SELECT 1 FROM changes WHERE write_id = :write_id::uuid"


def committed(connection: Connection) -> bool:
    """Commit. False if it is not known whether that happened, and will last; an error if it certainly did not."""
    warnings: list[str | None] = []

    def note(diagnostic: psycopg.errors.Diagnostic) -> None:
        warnings.append(diagnostic.sqlstate)

    connection.add_notice_handler(note)
    try:
        answer = connection.execute("COMMIT").statusmessage
    except (psycopg.OperationalError, psycopg.InterfaceError):
        if not connection.closed:
            raise
        return False
    finally:
        connection.remove_notice_handler(note)
    if answer != "COMMIT":  # a statement had failed
        raise Unavailable("PostgreSQL rolled a change back; nothing was changed. Try again in a moment.")
    return WARNING not in warnings


def took_place(conninfo: str, write_id: str) -> bool | None:
    """Whether a write was committed, and will last; None while that cannot be found out."""
    try:
        with connect(conninfo) as connection:
            connection.execute(ASK.encode(), prepare=False)
            found = executed(connection, TOOK_PLACE, {"write_id": write_id}).fetchone() is not None
            return found if committed(connection) else None
    except (psycopg.OperationalError, psycopg.InterfaceError, pg.QueryCanceled, pg.LockNotAvailable, Unavailable):
        return None
