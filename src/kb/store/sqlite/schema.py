"""The check that a database file has exactly the schema that kb's migrations make.

A file may be restored from anywhere. A trigger or a view in it would run with every statement of ours, so a file with
anything that the migrations do not make is refused by name, before anything else reads it.
"""

import re
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import apsw

from kb.core.errors import Conflict
from kb.store.sqlite.connection import load_sqlite_vec

MIGRATIONS = Path(__file__).parent / "migrations"
# Shadow tables are not compared: they differ between versions of sqlite-vec.
TABLES = "SELECT name, wr FROM pragma_table_list WHERE schema = 'main' AND type IN ('table', 'virtual')"
COLUMNS = "SELECT name, upper(type), pk, hidden FROM pragma_table_xinfo(?) ORDER BY cid"
OTHERS = "SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE type <> 'table' AND sql IS NOT NULL"
VIRTUAL = "SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND sql LIKE 'CREATE VIRTUAL%'"
OWN_OF_SQLITE = ("sqlite_", "migrations")  # SQLite's own, and the record of migrations


def check(connection: apsw.Connection, version: int) -> None:
    """Refuse a file that differs from what the migrations up to `version` make."""
    found, wanted = things(connection), expected(version)
    if foreign := sorted(found.keys() - wanted.keys()):
        kind, name = foreign[0]
        raise Conflict(
            f"The database file has a {kind} named {name!r}, which kb did not make. Nothing was changed. Take a backup "
            f'that you trust, or remove it with another program: DROP {kind.upper()} "{name}".'
        )
    if missing := sorted(wanted.keys() - found.keys()):
        kind, name = missing[0]
        raise Conflict(f"The database file has no {kind} named {name!r}: it is damaged. Restore a backup.")
    if changed := sorted(key for key, shape in wanted.items() if found[key] != shape):
        kind, name = changed[0]
        raise Conflict(
            f"The {kind} {name!r} in the database file is not the one that kb makes. Nothing was changed. Restore a "
            "backup that you trust."
        )


def things(connection: apsw.Connection) -> dict[tuple[str, str], str]:
    """Everything in the schema by kind and name, as a text to compare."""
    found: dict[tuple[str, str], str] = {}
    kind: Any
    name: Any
    sql: Any
    for name, without_rowid in connection.execute(TABLES).fetchall():
        if not name.startswith(OWN_OF_SQLITE):
            columns = connection.execute(COLUMNS, (name,)).fetchall()
            found["table", name] = repr((columns, without_rowid))
    for name, sql in connection.execute(VIRTUAL).fetchall():
        found["table", name] += normalised(sql)
    for kind, name, table, sql in connection.execute(OTHERS).fetchall():
        found[kind, name] = f"{table}: {normalised(sql)}"
    return found


def normalised(sql: str) -> str:
    """A statement without what may differ: blanks, quotes, and the size of vectors."""
    return re.sub(r"float\[\d+\]", "float[]", re.sub(r"[\s\"'`]+", " ", sql).strip().lower())


@cache
def expected(version: int) -> dict[tuple[str, str], str]:
    """The schema that the migrations up to `version` make."""
    with closing(apsw.Connection(":memory:")) as connection:
        load_sqlite_vec(connection)
        for file in sorted(MIGRATIONS.glob("*.sql"))[:version]:
            connection.execute(file.read_text(encoding="utf-8")).fetchall()
        return things(connection)
