"""One connection to a SQLite file: its settings, units of work on it, and SQLite's errors as ours."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

import apsw
import numpy as np
import sqlite_vec
from numpy.typing import NDArray

from kb.core.changes import Change
from kb.core.errors import Conflict, KBError, StorageFull, Unavailable, damaged
from kb.store.backend import Row
from kb.store.rows import readable
from kb.store.sqlite import checksums
from kb.store.sqlite.fulltext import VOCABULARY, SQLiteFullText, parsed
from kb.store.sqlite.vectors import SQLiteVectors

BUSY_MS = 10_000

# (name, value to set, value read back). secure_delete: what is deleted is overwritten, not merely unlinked. The file
# may be damaged or crafted: functions in its schema are not trusted, a damaged page is an error, and no page
# is mapped, as reading a mapped one beyond the file's end would end the process.
PRAGMAS: tuple[tuple[str, str, Any], ...] = (
    ("journal_mode", "wal", "wal"),
    ("synchronous", "FULL", 2),
    ("foreign_keys", "ON", 1),
    ("secure_delete", "ON", 1),
    ("journal_size_limit", str(16 * 2**20), 16 * 2**20),
    ("temp_store", "MEMORY", 2),
    ("trusted_schema", "OFF", 0),
    ("cell_size_check", "ON", 1),
    ("mmap_size", "0", 0),
    ("cache_size", "-8000", -8000),  # kB, for each of some dozens of threads; the system keeps pages too
)

# No two workers get the same job: each claims inside a write transaction, and there is one writer at a time.
CLAIM = """
UPDATE jobs SET status = 'running', started_at = :now, attempts = attempts + 1
 WHERE seq = (SELECT seq FROM jobs
               WHERE status = 'queued' AND lane = :lane AND (not_before IS NULL OR not_before <= :now)
               ORDER BY seq LIMIT 1)
RETURNING *
"""

UNPUBLISHED = """
SELECT c.id FROM chunks c JOIN documents d ON d.id = c.document_id WHERE d.revision <> c.revision
"""
GIVEN = "SELECT CAST(seq AS INTEGER) FROM sqlite_sequence WHERE name = :name"
RAISE_IDS = "UPDATE sqlite_sequence SET seq = max(seq, :seq) WHERE name = :name"
ADD_IDS = """
INSERT INTO sqlite_sequence (name, seq) SELECT :name, :seq WHERE :name NOT IN (SELECT name FROM sqlite_sequence)
"""


def connect(path: Path) -> apsw.Connection:
    """A connection with sqlite-vec, the pragmas (each read back) and the views of the vocabulary."""
    connection = private_file(path)
    connection.set_busy_timeout(BUSY_MS)
    load_sqlite_vec(connection)
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)  # no SQL may write shadow tables or the schema
    for name, value, expected in PRAGMAS:
        connection.pragma(name, value)
        actual = connection.pragma(name)
        if actual != expected:
            raise KBError(f"SQLite did not accept PRAGMA {name}={value}: it says {actual!r}.")
    connection.execute(VOCABULARY)
    return connection


def load_sqlite_vec(connection: apsw.Connection) -> None:
    connection.enable_load_extension(True)
    connection.load_extension(sqlite_vec.loadable_path())
    connection.enable_load_extension(False)


def integrity_check(connection: apsw.Connection, table: str = "") -> list[str]:
    """What SQLite finds wrong with the file, or with one of its tables."""
    pragma = f"PRAGMA integrity_check({table})" if table else "PRAGMA integrity_check"
    try:
        found = [str(line) for (line,) in connection.execute(pragma)]
    except apsw.CorruptError as error:
        return [str(error)]
    return [] if found == ["ok"] else found


def private_file(path: Path) -> apsw.Connection:
    """A connection to a file that only its owner may read. SQLite gives its log the same permissions."""
    with suppress(OSError):  # SQLite reports the error
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    return apsw.Connection(str(path))


def copy_into(connection: apsw.Connection, path: Path) -> None:
    """Copy what the connection sees into one consistent file; inside a transaction, that moment."""
    with closing(private_file(path)) as copy:
        copy.pragma("synchronous", "OFF")  # an unfinished copy is of no use anyway
        with copy.backup("main", connection, "main") as backup:
            backup.step(-1)
        copy.pragma("journal_mode", "delete")


class SQLiteTransaction:
    """One unit of work on one connection."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._after: list[Callable[[], None]] = []
        self.told: list[Change] = []
        self.fulltext = SQLiteFullText(connection)
        self.vectors = SQLiteVectors(connection)

    def run(self, sql: str, params: Mapping[str, Any] | None = None) -> None:
        self._connection.execute(sql, params).fetchall()

    def run_many(self, sql: str, params: Sequence[Mapping[str, Any]]) -> None:
        self._connection.executemany(sql, params).fetchall()

    def values(self, sql: str, params: Sequence[Mapping[str, Any]]) -> list[Any]:
        return [values[0] for values in without_bytes(self._connection.executemany(sql, params).fetchall())]

    def rows(self, sql: str, params: Mapping[str, Any] | None = None) -> list[Row]:
        cursor = self._connection.execute(sql, params)
        first = cursor.fetchone()
        if first is None:
            return []
        names = [column[0] for column in cursor.get_description()]
        return [dict(zip(names, values, strict=True)) for values in without_bytes([first, *cursor])]

    def tuples(self, sql: str, params: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        return without_bytes(self._connection.execute(sql, params).fetchall())

    def row(self, sql: str, params: Mapping[str, Any] | None = None) -> Row | None:
        return next(iter(self.rows(sql, params)), None)

    def column(self, sql: str, params: Mapping[str, Any] | None = None) -> list[Any]:
        return [values[0] for values in without_bytes(self._connection.execute(sql, params).fetchall())]

    def value(self, sql: str, params: Mapping[str, Any] | None = None) -> Any:
        return next(iter(self.column(sql, params)), None)

    def integers(self, columns: Sequence[str], rest: str, params: Mapping[str, Any] | None = None) -> NDArray[np.int64]:
        row = " || ' ' || ".join(columns)
        found = self.value(f"SELECT group_concat({row}, ' ') FROM {rest}", params)
        with readable("numbers"):
            return parsed(found).reshape(-1, len(columns))

    def ids_given(self, table: str) -> int:
        return int(self.value(GIVEN, {"name": table}) or 0)

    def raise_ids(self, table: str, highest: int) -> None:
        self.run(RAISE_IDS, {"name": table, "seq": highest})
        self.run(ADD_IDS, {"name": table, "seq": highest})

    def next_job_seq(self) -> int:
        return int(self.value("SELECT max(seq) + 1 FROM jobs"))

    def claim_job(self, lane: str, now: str) -> Row | None:
        return self.row(CLAIM, {"lane": lane, "now": now})

    def hold(self, job: Row) -> None:
        """Every claim counts: there is one engine."""

    def abandoned_jobs(self) -> list[str]:
        return self.column("SELECT id FROM jobs WHERE status = 'running'")

    def begin_draft(self, document_id: int, revision: int) -> None:
        """Nothing is recorded: what is not published is a draft of this engine, or of one that died."""

    def end_draft(self, document_id: int, revision: int) -> None: ...

    def abandoned_drafts(self) -> tuple[list[int], list[int]]:
        return self.column(UNPUBLISHED), self.column("SELECT id FROM documents WHERE revision = 0")

    def forget_abandoned_drafts(self) -> None: ...

    def copy_to(self, path: Path) -> None:
        copy_into(self._connection, path)

    def changed_rows(self) -> dict[str, list[int]]:
        return checksums.changed(self._connection)

    def lost_rows(self) -> dict[str, list[int]]:
        return checksums.lost(self._connection)

    def forget_lost_rows(self) -> None:
        checksums.forget_lost(self._connection)

    def broken_references(self) -> list[str]:
        return [str(row["table"]) for row in self.rows("PRAGMA foreign_key_check")]

    def publishes(self, document_ids: Sequence[int] | None, follow: Callable[[], None]) -> None:  # noqa: ARG002
        self._after.append(follow)

    def after_commit(self, action: Callable[[], None]) -> None:
        self._after.append(action)

    def tell(self, change: Change) -> None:
        self.told.append(change)

    def committed(self) -> None:
        for action in self._after:
            action()


def without_bytes(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return the rows; raise an error if one has bytes, which only a damaged file has in place of a text."""
    for row in rows:
        if bytes in map(type, row):
            raise damaged("The database has bytes in the place of a text.")
    return rows


@contextmanager
def translated() -> Iterator[None]:
    """Translate errors of SQLite into ours."""
    try:
        yield
    except apsw.Error as error:
        raise_ours(error)
    except UnicodeDecodeError as error:
        raise damaged(f"A text in the database is damaged ({error.reason}).") from error


def raise_ours(error: apsw.Error) -> NoReturn:
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        raise Unavailable("The database is busy. Try again in a moment.") from error
    if isinstance(error, apsw.FullError | apsw.IOError | apsw.ReadOnlyError | apsw.CantOpenError):
        raise StorageFull(
            f"The database cannot be written or read ({error}). Free some disk space or check the folder's "
            "permissions, then try again."
        ) from error
    if isinstance(error, apsw.CorruptError | apsw.NotADBError):
        raise damaged(f"The database file is damaged or is not one ({error}).") from error
    raise Conflict(f"The database refused a statement ({error}). `kb doctor` tells whether it is damaged.") from error
