"""SQLite connections: one per thread, many readers, one writer at a time.

A write transaction takes the lock before it begins, so it never fails half-way with "busy". Errors of apsw are
translated into ours.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import apsw

from kb.core.changes import RESET, Change
from kb.core.status import EngineInfo, EngineState
from kb.store.backend import Beat, IndexFollower, Listener
from kb.store.sqlite.checksums import Changes
from kb.store.sqlite.connection import BUSY_MS, SQLiteTransaction, connect, integrity_check, translated, without_bytes

MOST_FREE = 0.25  # of the file, and at least
LEAST_WASTED = 64 * 2**20  # bytes are free: then a vacuum is worth it
IDLE_SECONDS = 3.0  # without a write, until the log is truncated


class SQLiteDatabase:
    """The database file and this process's connections to it."""

    name = "sqlite"

    def __init__(self, path: Path) -> None:
        self.path = path
        self._local = threading.local()
        self._connections: dict[apsw.Connection, threading.Thread] = {}  # each with the thread that uses it
        self._registry = threading.Lock()
        self._writer = threading.Lock()
        self._committing = threading.RLock()  # held from a commit until everything in memory has followed it
        self._listeners: list[Listener] = []
        self.changes = 0
        self.replacements = 0
        self._vacuuming: apsw.Connection | None = None  # a writer interrupts it
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

    def select(self, sql: str, params: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        with translated():
            return without_bytes(self._connection().execute(sql, params).fetchall())

    @contextmanager
    def write(self, *, durable: bool = True, publishes: bool = True) -> Iterator[SQLiteTransaction]:  # noqa: ARG002
        if (vacuuming := self._vacuuming) is not None:
            vacuuming.interrupt()
        with self._writer, translated(), self._synchronous(durable) as connection:
            connection.execute("BEGIN IMMEDIATE")
            transaction = SQLiteTransaction(connection)
            changes = self._local.changes
            try:
                yield transaction
                changes.stamp()
                with self._committing:
                    connection.execute("COMMIT")
                    self._follow(transaction)
            except BaseException:
                changes.forget()
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def _follow(self, transaction: SQLiteTransaction) -> None:
        self.changes += 1
        self._written = time.monotonic()
        try:
            transaction.committed()
        finally:
            self._tell(transaction.told)

    def follow(self, index: IndexFollower, *, load: bool = True) -> None:
        """There is one engine: every write has its index follow by itself."""
        if load:
            index.reload()

    def catch_up(self) -> str | None:
        return None

    def reading_anywhere(self) -> AbstractContextManager[None]:
        return nullcontext()

    engine_id = ""

    def beat(self, running: Sequence[str], state: EngineState) -> Beat:  # noqa: ARG002 - no other engine asks
        return Beat()

    def engines(self) -> list[EngineInfo]:
        return []

    def gauges(self) -> Iterator[tuple[str, str, float]]:
        yield from ()

    def listen(self, listener: Listener) -> None:
        self._listeners.append(listener)

    def _tell(self, changes: Sequence[Change]) -> None:
        if changes:
            for listener in self._listeners:
                listener(changes)

    @contextmanager
    def _synchronous(self, durable: bool) -> Iterator[apsw.Connection]:
        """The connection; if not `durable`, its commit is written to the log without waiting for the disk."""
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
        with self._committing:
            pass

    def damage(self) -> list[str]:
        found = self._integrity_check()
        return [line for line in found if "fts5" not in line.lower()]

    def fulltext_damage(self) -> list[str]:
        return self._integrity_check("chunks_fts")

    def _integrity_check(self, table: str = "") -> list[str]:
        """Check on a new connection.

        FTS5 caches the structure of its index per connection, and a check does not notice that another connection has
        changed it since: a connection that checks twice reports damage that is not there.
        """
        with translated(), closing(connect(self.path)) as connection:
            return integrity_check(connection, table)

    @contextmanager
    def replacing(self) -> Iterator[Callable[[Path], None]]:
        """Block writers, and provide a function that replaces the whole database by the content of a file."""
        with self._writer, translated():
            yield self._replace

    def _replace(self, path: Path) -> None:
        """Copy page by page in a write transaction: readers keep what they see."""
        with closing(apsw.Connection(str(path))) as source, closing(apsw.Connection(str(self.path))) as target:
            target.set_busy_timeout(BUSY_MS)
            target.pragma("synchronous", "FULL")
            with target.backup("main", source, "main") as backup:
                backup.step(-1)
        self.changes += 1
        self.replacements += 1
        self._tell([RESET])
        self._written = time.monotonic()

    def size_bytes(self) -> int:
        files = (self.path, Path(f"{self.path}-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    def truncate_wal(self) -> None:
        """Do not wait for readers: what one still needs stays in the log until the next time."""
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
            self.truncate_wal()

    @property
    def wasted_bytes(self) -> int:
        with translated():
            connection = self._connection()
            free, pages, size = (connection.pragma(name) for name in ("freelist_count", "page_count", "page_size"))
        return free * size if free > pages * MOST_FREE and free * size > LEAST_WASTED else 0

    def vacuum_into(self, room: Path) -> bool:
        """A plain `VACUUM` would hold the whole database in memory, where temporary tables are kept."""
        with self.replacing() as replace:
            self._vacuuming = connection = self._connection()
            try:
                connection.execute("VACUUM INTO ?", (str(room),)).fetchall()
            except apsw.InterruptError:
                return False
            finally:
                self._vacuuming = None
            replace(room)
        self.truncate_wal()
        return True

    def vacuum(self) -> None:
        with self._writer, translated():
            connection = self._connection()
            connection.execute("VACUUM").fetchall()
        self.truncate_wal()

    def close(self) -> None:
        """Close every connection; the last one merges the log into the file."""
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
