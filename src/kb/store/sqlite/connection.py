"""One connection to a SQLite file: its settings, and SQLite's errors as ours."""

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

import apsw
import sqlite_vec

from kb.core.errors import Conflict, KBError, StorageFull, Unavailable, damaged
from kb.store.sqlite.fulltext import VOCABULARY

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
