"""Checks of a database file that no engine uses: in a backup, or before a restore."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import apsw

from kb.core.errors import InvalidRequest, KBError
from kb.store.sqlite import checksums, schema
from kb.store.sqlite.connection import integrity_check, load_sqlite_vec, translated
from kb.store.sqlite.migrate import STAMPED, applied
from kb.store.sqlite.vectors import SQLiteVectors

OWNERS = "SELECT id FROM documents WHERE doc_type <> 'note' AND content_hash = ? ORDER BY id"


def check(path: Path) -> None:
    """Refuse a file that this kb cannot open, that has a foreign schema, or whose tables cannot be read.

    Full text and vectors are not looked at: they can be made again.
    """
    try:
        with opened(path) as connection:
            version = applied(connection)
            if not version:
                raise InvalidRequest("It is empty.")
            schema.check(connection, version)
            for table in checksums.PARTS:
                if table in tables(connection) and (wrong := integrity_check(connection, table)):
                    raise InvalidRequest(f"Its table {table} is damaged: {wrong[0]}.")
    except KBError as error:
        raise InvalidRequest(f"The database in the backup cannot be used. {error.message}") from error


def damage(path: Path) -> list[str]:
    """What is wrong with rows, full text and vectors, a sentence each."""
    try:
        with opened(path) as connection:
            found = [
                f"The table {table} is damaged: {wrong[0]}."
                for table in sorted(tables(connection))
                if (wrong := integrity_check(connection, table))
            ]
            if applied(connection) >= STAMPED and not found:
                rows = {
                    **checksums.changed(connection),
                    "full text": checksums.differing(connection, checksums.FULLTEXT),
                }
                rows["vectors"] = SQLiteVectors(connection).unsound()
                found += [f"{len(ids)} rows of {name} are not as kb wrote them." for name, ids in rows.items() if ids]
                lost = checksums.lost(connection)
                found += [f"{len(ids)} rows of {table} are gone." for table, ids in lost.items()]
    except KBError as error:
        return [error.message]
    return found


def documents_with(path: Path, sha256: str) -> list[int]:
    """The documents that this original belongs to."""
    with opened(path) as connection:
        return [int(id_) for (id_,) in connection.execute(OWNERS, (sha256,))]


def tables(connection: Any) -> set[str]:
    return {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """A connection that only reads."""
    with translated(), closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        load_sqlite_vec(connection)
        connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
        connection.pragma("trusted_schema", "OFF")
        yield connection
