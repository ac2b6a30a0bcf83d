"""Connections to PostgreSQL, and writes of several engines on one knowledge base.

Every write that publishes locks the row in `head`, so such writes happen one after another, whichever engine they come
from. Each gets the next number and a row in the log, which every engine follows (`follower.py`). The row carries an id
of the write: it tells, when the answer to a COMMIT is lost, whether the write took place. Drafts, progress and claims
of jobs need none of this and wait for nobody.
"""

import json
import logging
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
from psycopg import errors as pg
from psycopg.sql import SQL, Identifier

from kb.core.changes import Change
from kb.core.errors import Conflict, KBError, Unavailable
from kb.core.status import EngineInfo, EngineState
from kb.core.times import now
from kb.store.backend import Beat, IndexFollower, Listener
from kb.store.postgres import log as changelog
from kb.store.postgres.address import Address
from kb.store.postgres.commit import committed, took_place
from kb.store.postgres.errors import translated
from kb.store.postgres.follower import LogFollower
from kb.store.postgres.listener import LogListener
from kb.store.postgres.log import Entry
from kb.store.postgres.pool import Pool, connect
from kb.store.postgres.presence import Presence
from kb.store.postgres.runner import Connection, executed
from kb.store.postgres.statements import unescaped_rows
from kb.store.postgres.transaction import PostgresTransaction

log = logging.getLogger(__name__)

LOCK_SECONDS = 15.0  # to wait for the lock of another that has just ended: the server must notice it first
DOUBT_SECONDS = 10.0  # to find out whether a write took place whose COMMIT got no answer
IDLE_SECONDS = 3.0
FEW_CHANGES = 100  # writes after which the planner's figures are out of date

READ = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"
# A COMMIT is never cancelled, so no time limits it. An engine that stands still must not keep the others from writing.
PUBLISH = "BEGIN; SET LOCAL statement_timeout TO 0; SET LOCAL idle_in_transaction_session_timeout TO '15s'"
# Of what has the knowledge base for itself: it may read files for longer.
REPLACE = "BEGIN; SET LOCAL statement_timeout TO 0; SET LOCAL idle_in_transaction_session_timeout TO 0"
WRITE = "BEGIN"
WRITE_SOON = "BEGIN; SET LOCAL synchronous_commit TO off"
NOTIFY = "SELECT pg_notify(:channel, :told)"
MOST_TOLD = 7500  # bytes of one notification
# Engines share the knowledge base; what replaces all of it, and an engine from before there could be several, need it
# for themselves.
LOCKS = {
    True: "SELECT pg_try_advisory_lock_shared(hashtext('kb engine'), hashtext(:schema))",
    False: "SELECT pg_try_advisory_lock(hashtext('kb engine'), hashtext(:schema))",
}
SIZE = """
SELECT COALESCE(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class
 WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'
"""
OWN_TABLES = "SELECT tablename::text FROM pg_tables WHERE schemaname = current_schema()"
FAILURES = "SELECT checksum_failures FROM pg_stat_database WHERE datname = current_database()"


class PostgresDatabase:
    """`place` names the machine and the data folder of an engine; what has none needs the knowledge base for itself."""

    name = "postgresql"

    def __init__(self, address: Address, place: str = "", url: str = "") -> None:
        self.address = address
        self._place = place
        self._engine = uuid.uuid4().hex[:12]  # of this run
        self._channel = f"kb_{address.schema}"
        self._pool = Pool(address.conninfo)
        self._anywhere = Pool(address.anywhere, patient=False)
        self._local = threading.local()  # .away: this thread reads from any server
        self._follower = LogFollower(self._pool, self._tell)
        self._listener = LogListener(
            address.conninfo, self._channel, self._engine, self._follower, self._tell, self._share
        )
        self._presence = Presence(self._engine, place, url)
        self._guard: Connection | None = None  # holds the lock
        self._writer = threading.Lock()  # others of this engine would only wait at the server
        self._listeners: list[Listener] = []
        self._current = now()  # when the index was last known to show every change
        self.replacements = 0
        self._writes = 0
        self._analyzed = 0  # of `_writes`, when the planner last looked
        self._purged, self._vacuumed = 0, -1  # of `_writes`; at start something may be left of what was purged before
        self._written = 0.0  # when the last write ended, on the monotonic clock

    def lock(self) -> Connection:
        """Connect, and keep others out: all, or with a place those that need the knowledge base for themselves.

        The connection is for migrations.
        """
        with translated():
            self._guard = guard = connect(self.address.conninfo)
            end = time.monotonic() + LOCK_SECONDS
            while executed(guard, LOCKS[bool(self._place)], {"schema": self.address.schema}).fetchone() != (True,):
                if time.monotonic() > end:
                    raise Conflict(
                        f"Another engine is using {self.address.shown}. Stop it first, or name another knowledge base "
                        "with KB_NAME. Nothing was changed."
                    )
                time.sleep(0.1)
        return guard

    def _share(self, connection: Connection) -> None:
        """Lock as `lock` did, whose connection is gone after a failover; what needs no place keeps others out by it."""
        taken = executed(connection, LOCKS[True], {"schema": self.address.schema}).fetchone()
        if self._place and taken != (True,):
            raise Unavailable(f"Another program replaces what is in {self.address.shown}. Try again when it is done.")

    def open(self) -> None:
        """Begin to read and write."""
        with translated():
            self._pool.open()
            self._anywhere.closed = False
            if self._place:
                with self._pool.connection() as connection:
                    self._presence.enter(connection)

    @contextmanager
    def read(self) -> Iterator[PostgresTransaction]:
        """The moment that it sees is that of its first statement."""
        with translated():
            pool = self._readable
            transaction = PostgresTransaction(lambda: pool.take_working(READ))
            try:
                yield transaction
            finally:
                if (connection := transaction.connection) is not None:
                    with suppress(psycopg.Error):  # what broke it was raised before
                        connection.execute("ROLLBACK")
                    pool.give_back(connection)

    def select(self, sql: str, params: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        with translated():
            pool = self._readable
            try:
                with pool.connection() as connection:
                    return unescaped_rows(executed(connection, sql, params).fetchall())
            except psycopg.OperationalError:
                pool.clear()
                with pool.connection() as connection:
                    return unescaped_rows(executed(connection, sql, params).fetchall())

    @property
    def _readable(self) -> Pool:
        return self._anywhere if getattr(self._local, "away", False) else self._pool

    @contextmanager
    def reading_anywhere(self) -> Iterator[None]:
        self._local.away = True
        try:
            yield
        finally:
            self._local.away = False

    @contextmanager
    def write(self, *, durable: bool = True, publishes: bool = True) -> Iterator[PostgresTransaction]:
        """What publishes is always durable: other engines follow it at once, so no failover may undo it."""
        if publishes:
            with self._writer, translated(), self._publishing() as transaction:
                yield transaction
        else:
            with translated(), self._writing(WRITE if durable else WRITE_SOON) as transaction:
                yield transaction
                transaction.flush()
                if transaction.told:
                    self._notify(transaction)
                assert transaction.connection is not None
                if not committed(transaction.connection):
                    raise doubtful()
            self._tell(transaction.told)
        self._writes += 1
        self._written = time.monotonic()
        transaction.committed()

    @contextmanager
    def _publishing(self) -> Iterator[PostgresTransaction]:
        write_id = str(uuid.uuid4())
        with self._writing(PUBLISH if self._place else REPLACE) as transaction:
            connection = transaction.connection
            assert connection is not None
            seq = self._next(connection)
            yield transaction
            transaction.flush()
            entry = Entry(seq, write_id, transaction.kind, transaction.document_ids, transaction.told)
            changelog.append(connection, entry, self._channel, self._engine)
            self._follower.expect(write_id, transaction)
            try:
                if not committed(connection):
                    self._resolve(write_id)
            except Unavailable as unknown:
                if not unknown.details.get("in_doubt"):
                    self._follower.forget(write_id)
                raise
            except BaseException:
                self._follower.forget(write_id)
                raise
            try:
                self._follower.committed(entry, transaction)
            except (KBError, psycopg.Error) as error:  # the write took place; the next search follows, or says so
                log.warning("change %d cannot be followed yet: %s", seq, error)

    @contextmanager
    def _writing(self, begin: str) -> Iterator[PostgresTransaction]:
        """A connection inside a transaction, which ends with the caller's COMMIT, or is rolled back."""
        connection = self._pool.take_working(begin)
        try:
            transaction = PostgresTransaction(lambda: connection, self._engine)
            transaction.connection = connection
            try:
                yield transaction
            except BaseException:
                with suppress(psycopg.Error):
                    connection.execute("ROLLBACK")
                raise
        finally:
            self._pool.give_back(connection)

    def _next(self, connection: Connection) -> int:
        try:
            return changelog.number(connection, changelog.NEXT)
        except pg.ReadOnlySqlTransaction:  # it has become a standby
            connection.close()
            self._pool.clear()
            raise

    def _notify(self, transaction: PostgresTransaction) -> None:
        """Have other engines hear of what is in no log; they need not."""
        told = f"{self._engine} {json.dumps(transaction.told, separators=(',', ':'))}"
        if len(told.encode()) <= MOST_TOLD:
            transaction.run(NOTIFY, {"channel": self._channel, "told": told})

    def _resolve(self, write_id: str) -> None:
        """Find out about a write whose COMMIT got no answer, or one that is not to be believed."""
        end = time.monotonic() + DOUBT_SECONDS
        while (found := took_place(self.address.conninfo, write_id)) is None:
            if time.monotonic() > end:
                raise doubtful()
            time.sleep(0.2)
        if not found:
            raise Unavailable("PostgreSQL went away, and nothing was changed. Try again in a moment.")

    def follow(self, index: IndexFollower, *, load: bool = True) -> None:
        with translated():
            self._follower.start(index, load=load)
            self._listener.start()

    def catch_up(self) -> str | None:
        if not self._follower.follows:
            return None
        if self._listener.away:
            return self._current
        moment = now()
        with translated():
            try:
                seq = self._head()
            except psycopg.OperationalError:
                self._pool.clear()
                if self._listener.lost():
                    return self._current
                seq = self._head()
            self._follower.reach(seq)
        self._current = moment
        return None

    def _head(self) -> int:
        with self._pool.connection() as connection:
            return changelog.number(connection, changelog.HEAD)

    @property
    def engine_id(self) -> str:
        return self._engine

    def beat(self, running: Sequence[str], state: EngineState) -> Beat:
        with translated(), self._pool.connection() as connection:
            return self._presence.beat(connection, running, state, self._follower.applied)

    def engines(self) -> list[EngineInfo]:
        with translated(), self._pool.connection() as connection:
            return self._presence.engines(connection)

    def gauges(self) -> Iterator[tuple[str, str, float]]:
        head, applied = self._listener.head, self._follower.applied
        yield "applied_seq", "The change up to which this engine has followed.", applied
        yield "head_seq", "The last change in the database that this engine knows of.", max(head, applied)
        yield "lag", "Changes that this engine knows of and has not followed yet.", max(head - applied, 0)
        yield "engines", "Engines that live, as this one last saw.", self._presence.living
        yield "leading", "1 for the engine that tidies up for all.", self._presence.leads
        yield "database_away", "1 while the database cannot be reached.", self._listener.away

    @property
    def changes(self) -> int:
        return self._follower.changes

    def listen(self, listener: Listener) -> None:
        self._listeners.append(listener)

    def _tell(self, changes: Sequence[Change]) -> None:
        if changes:
            for listener in self._listeners:
                listener(changes)

    def settle(self) -> None:
        """Do it also while the listener is not connected again: the caller has just read from the database."""
        if self._follower.started:
            ((seq,),) = self.select(changelog.HEAD, {})
            with translated():
                self._follower.reach(seq)

    def damage(self) -> list[str]:
        """What PostgreSQL met when it read pages; it has a checksum for each, unless its cluster was made without."""
        found = self.select(FAILURES, {})
        failures = found[0][0] if found else 0
        return [f"PostgreSQL has met {failures} pages with a wrong checksum; its log names them"] if failures else []

    def fulltext_damage(self) -> list[str]:
        return []

    def size_bytes(self) -> int:
        return int(self.select(SIZE, {})[0][0])

    def truncate_wal(self) -> None:
        """Vacuum when writing pauses. The log is the server's, which recycles it."""
        self._purged = self._writes

    @property
    def is_idle(self) -> bool:
        return time.monotonic() - self._written > IDLE_SECONDS

    def tidy(self) -> None:
        """Remove what was purged, and have the planner look at the tables, long before autovacuum does.

        Else reading hits takes ten times as long. The planner looks whenever the content may have doubled, and when
        writing pauses.
        """
        writes = self._writes
        new = writes - self._analyzed
        if self.is_idle and self._purged > self._vacuumed:
            self._maintain("VACUUM (ANALYZE)")
            self._vacuumed = self._analyzed = writes
        elif new > max(FEW_CHANGES, self._analyzed) or (new > FEW_CHANGES and self.is_idle):
            self._maintain("ANALYZE")
            self._analyzed = writes
            if self._presence.leads:
                with translated(), self._pool.connection() as connection:
                    executed(connection, changelog.PRUNE, {"kept": changelog.KEPT})

    @property
    def wasted_bytes(self) -> int:
        return 0

    def vacuum_into(self, room: Path) -> bool:  # noqa: ARG002 - the server needs no file of ours
        return True

    def vacuum(self) -> None:
        with self._writer:
            self._maintain("VACUUM (ANALYZE)")

    def _maintain(self, command: str) -> None:
        """Run it on the tables of this knowledge base; the server skips those of which this role is not the owner."""
        with translated(), self._pool.connection() as connection:
            names = [name for (name,) in executed(connection, OWN_TABLES).fetchall()]
            tables = SQL(", ").join(map(Identifier, names))
            connection.execute(SQL("{} {}").format(SQL(command), tables), prepare=False)

    def close(self) -> None:
        with self._writer:
            self._listener.stop()
            if self._place and not self._pool.closed:
                with suppress(KBError, psycopg.Error), self._pool.connection() as connection:  # others will notice
                    self._presence.leave(connection)
            self._pool.close()
            self._anywhere.close()
            if self._guard is not None:
                self._guard.close()
                self._guard = None


def doubtful() -> Unavailable:
    return Unavailable(
        "PostgreSQL went away while a change was being committed, and whether it took place is not known. Look before "
        "you repeat it.",
        in_doubt=True,
    )
