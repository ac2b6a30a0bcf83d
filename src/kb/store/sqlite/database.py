"""SQLite connections: one per thread, many readers, one writer at a time.

Promises: WAL with `synchronous=FULL` and foreign keys on, each read back after it was set; a write transaction
takes the lock before it begins, so it never fails half-way with "busy"; what apsw raises leaves here as an error
of ours.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

import apsw
import numpy as np
import sqlite_vec
from numpy.typing import NDArray

from kb.core.errors import Conflict, KBError, StorageFull, Unavailable, damaged
from kb.store.backend import Row
from kb.store.sqlite import checksums
from kb.store.sqlite.checksums import Changes
from kb.store.sqlite.fulltext import VOCABULARY, SQLiteFullText, parsed
from kb.store.sqlite.vectors import SQLiteVectors
from kb.store.stored import readable

BUSY_MS = 10_000
MOST_FREE = 0.25  # of the file, and
LEAST_WASTED = 64 * 2**20  # bytes: free space from which on it is returned to the disk
IDLE_SECONDS = 3.0  # without a write, until the log is folded into the file

# (name, value to set, value read back). secure_delete: what is deleted is overwritten, not merely unlinked. The file
# may be damaged, or made by another: functions in its schema are not trusted, a damaged page is an error, and no page
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


def of_texts(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The same rows. None of kb's own tables holds bytes: where there are some, a bit that says "text" has changed."""
    for row in rows:
        if bytes in map(type, row):
            raise damaged("The database has bytes in the place of a text.")
    return rows


class SQLiteTransaction:
    """One unit of work on one connection."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._after: list[Callable[[], None]] = []
        self.fulltext = SQLiteFullText(connection)
        self.vectors = SQLiteVectors(connection)

    def run(self, sql: str, params: Mapping[str, Any] | None = None) -> None:
        self._connection.execute(sql, params).fetchall()

    def run_many(self, sql: str, params: Sequence[Mapping[str, Any]]) -> None:
        self._connection.executemany(sql, params).fetchall()

    def rows(self, sql: str, params: Mapping[str, Any] | None = None) -> list[Row]:
        cursor = self._connection.execute(sql, params)
        first = cursor.fetchone()
        if first is None:
            return []
        names = [column[0] for column in cursor.get_description()]
        return [dict(zip(names, values, strict=True)) for values in of_texts([first, *cursor])]

    def tuples(self, sql: str, params: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        return of_texts(self._connection.execute(sql, params).fetchall())

    def row(self, sql: str, params: Mapping[str, Any] | None = None) -> Row | None:
        return next(iter(self.rows(sql, params)), None)

    def column(self, sql: str, params: Mapping[str, Any] | None = None) -> list[Any]:
        return [values[0] for values in of_texts(self._connection.execute(sql, params).fetchall())]

    def value(self, sql: str, params: Mapping[str, Any] | None = None) -> Any:
        return next(iter(self.column(sql, params)), None)

    def integers(self, columns: Sequence[str], rest: str, params: Mapping[str, Any] | None = None) -> NDArray[np.int64]:
        row = " || ' ' || ".join(columns)
        found = self.value(f"SELECT group_concat({row}, ' ') FROM {rest}", params)
        with readable("numbers"):
            return parsed(found).reshape(-1, len(columns))

    def chunk_ids_given(self) -> int:
        return int(self.value("SELECT CAST(seq AS INTEGER) FROM sqlite_sequence WHERE name = 'chunks'") or 0)

    def claim_job(self, lane: str, now: str) -> Row | None:
        return self.row(CLAIM, {"lane": lane, "now": now})

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

    def after_commit(self, action: Callable[[], None]) -> None:
        self._after.append(action)

    def committed(self) -> None:
        for action in self._after:
            action()


class SQLiteDatabase:
    """The database file and this process's connections to it."""

    name = "sqlite"

    def __init__(self, path: Path) -> None:
        self.path = path
        self._local = threading.local()
        self._connections: dict[apsw.Connection, threading.Thread] = {}  # each with the thread that uses it
        self._registry = threading.Lock()
        self._writer = threading.Lock()
        self.changes = 0
        self.replacements = 0
        self._shrinking: apsw.Connection | None = None  # what a writer interrupts
        self._written = 0.0  # when the last write ended, on the monotonic clock

    @contextmanager
    def read(self) -> Iterator[SQLiteTransaction]:
        with translated():
            connection = self._connection()
            connection.execute("BEGIN")
            try:
                yield SQLiteTransaction(connection)
            finally:
                connection.execute("ROLLBACK")

    def glance(self, sql: str, params: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        with translated():
            return of_texts(self._connection().execute(sql, params).fetchall())

    @contextmanager
    def write(self, *, durable: bool = True) -> Iterator[SQLiteTransaction]:
        if (shrinking := self._shrinking) is not None:
            shrinking.interrupt()
        with self._writer, translated(), self._synchronous(durable) as connection:
            connection.execute("BEGIN IMMEDIATE")
            transaction = SQLiteTransaction(connection)
            changes = self._local.changes
            try:
                yield transaction
                changes.stamp()
                connection.execute("COMMIT")
            except BaseException:
                changes.forget()
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            self.changes += 1
            self._written = time.monotonic()
            transaction.committed()

    @contextmanager
    def _synchronous(self, durable: bool) -> Iterator[apsw.Connection]:
        """Without waiting for the disk, a commit is in the log all the same, and the next one that waits covers it."""
        connection = self._connection()
        if durable:
            yield connection
            return
        connection.execute("PRAGMA synchronous=NORMAL")
        try:
            yield connection
        finally:
            connection.execute("PRAGMA synchronous=FULL")

    def settle(self) -> None:
        with self._writer:
            pass

    def damage(self) -> list[str]:
        found = self._integrity_check("PRAGMA integrity_check")
        return [line for line in found if "fts5" not in line.lower()]

    def fulltext_damage(self) -> list[str]:
        return self._integrity_check("PRAGMA integrity_check(chunks_fts)")

    def _integrity_check(self, pragma: str) -> list[str]:
        """Check on a connection of its own.

        FTS5 keeps the structure of its index with the connection, and a check does not look whether another connection
        has changed it since: a connection that checks twice reports damage that is not there.
        """
        with translated():
            return problems(self.path, pragma)

    @contextmanager
    def replacing(self) -> Iterator[Callable[[Path], None]]:
        """Nothing is written meanwhile. The function puts what is in a file in the place of all that is here."""
        with self._writer, translated():
            yield self._replace

    def _replace(self, path: Path) -> None:
        """Page by page, as a write like any other: readers go on with what they see."""
        source, target = apsw.Connection(str(path)), apsw.Connection(str(self.path))
        try:
            target.set_busy_timeout(BUSY_MS)
            target.pragma("synchronous", "FULL")
            with target.backup("main", source, "main") as backup:
                backup.step(-1)
        finally:
            target.close()
            source.close()
        self.changes += 1
        self.replacements += 1
        self._written = time.monotonic()

    def size_bytes(self) -> int:
        files = (self.path, Path(f"{self.path}-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    def forget_log(self) -> None:
        """What a reader still needs stays in the log until the next time: nobody waits for that reader."""
        with self._writer, translated():
            connection = self._connection()
            connection.set_busy_timeout(0)
            try:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            finally:
                connection.set_busy_timeout(BUSY_MS)

    @property
    def is_idle(self) -> bool:
        return time.monotonic() - self._written > IDLE_SECONDS

    def tidy(self) -> None:
        log = Path(f"{self.path}-wal")
        if self.is_idle and log.exists() and log.stat().st_size:
            self.forget_log()

    @property
    def wasted_bytes(self) -> int:
        with translated():
            connection = self._connection()
            free, pages, size = (connection.pragma(name) for name in ("freelist_count", "page_count", "page_size"))
        return free * size if free > pages * MOST_FREE and free * size > LEAST_WASTED else 0

    def shrink(self, room: Path) -> bool:
        """`VACUUM` itself would hold all of it in memory, as temporary tables are kept there."""
        with self.replacing() as replace:
            self._shrinking = connection = self._connection()
            try:
                connection.execute("VACUUM INTO ?", (str(room),)).fetchall()
            except apsw.InterruptError:
                return False
            finally:
                self._shrinking = None
            replace(room)
        self.forget_log()
        return True

    def give_back(self) -> None:
        with self._writer, translated():
            connection = self._connection()
            connection.execute("VACUUM").fetchall()
        self.forget_log()

    def close(self) -> None:
        """Close every connection; the last one folds the WAL into the file."""
        with self._writer, self._registry:
            for connection in self._connections:
                connection.close()
            self._connections.clear()
            self._local = threading.local()

    def _connection(self) -> apsw.Connection:
        connection: apsw.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = connect(self.path)
            self._local.connection = connection
            self._local.changes = Changes(connection)
            with self._registry:
                self._close_unused()
                self._connections[connection] = threading.current_thread()
        return connection

    def _close_unused(self) -> None:
        """Close the connections of threads that have ended: a server starts and ends threads for as long as it runs."""
        for connection in [one for one, thread in self._connections.items() if not thread.is_alive()]:
            connection.close()
            del self._connections[connection]


def connect(path: Path) -> apsw.Connection:
    """One connection with sqlite-vec loaded, every pragma confirmed, and a view on the vocabulary."""
    connection = private_file(path)
    connection.set_busy_timeout(BUSY_MS)
    connection.enable_load_extension(True)
    connection.load_extension(sqlite_vec.loadable_path())
    connection.enable_load_extension(False)
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)  # no SQL writes what virtual tables or the schema are kept in
    for name, value, expected in PRAGMAS:
        connection.pragma(name, value)
        actual = connection.pragma(name)
        if actual != expected:
            raise KBError(f"SQLite did not accept PRAGMA {name}={value}: it says {actual!r}.")
    connection.execute(VOCABULARY)
    return connection


def problems(path: Path, pragma: str) -> list[str]:
    """What a check of a file finds, on a connection of its own."""
    connection = connect(path)
    try:
        found = [str(line) for (line,) in connection.execute(pragma)]
    except apsw.CorruptError as error:
        found = [str(error)]
    finally:
        connection.close()
    return [] if found == ["ok"] else found


def private_file(path: Path) -> apsw.Connection:
    """A connection to a file that only its owner may read; SQLite gives the files beside it the same permissions."""
    with suppress(OSError):  # what is wrong, SQLite will say
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    return apsw.Connection(str(path))


def copy_into(connection: apsw.Connection, path: Path) -> None:
    """A consistent copy, in one file, of what the connection sees; inside a transaction, of that moment."""
    copy = private_file(path)
    try:
        copy.pragma("synchronous", "OFF")  # a copy that is not finished is worth nothing anyway
        with copy.backup("main", connection, "main") as backup:
            backup.step(-1)
        copy.pragma("journal_mode", "delete")
    finally:
        copy.close()


@contextmanager
def translated() -> Iterator[None]:
    """The edge where what SQLite raises becomes an error of ours."""
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
