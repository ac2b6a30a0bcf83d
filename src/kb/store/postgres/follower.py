"""The follower: the only one that changes the index in memory, in the order of the log.

What a write of this engine did is known here, and applied as the write says. What another engine did is read from the
database. Whoever needs a number applied applies it: the writer after its commit, a search that finds the database
ahead, and the thread that listens.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import psycopg

from kb.core.changes import RESET, Change
from kb.core.errors import KBError, Unavailable
from kb.store.backend import IndexFollower
from kb.store.postgres import log as changelog
from kb.store.postgres.log import Entry
from kb.store.postgres.pool import Pool
from kb.store.postgres.runner import Connection, executed
from kb.store.postgres.transaction import PostgresTransaction

log = logging.getLogger(__name__)

WAIT_SECONDS = 10.0  # that a search or a writer waits for another thread that applies changes, while nothing gets on
NOT_STARTED = -1


class LogFollower:
    """`tell` passes on what listeners hear; it runs in the order of the log, too."""

    def __init__(self, pool: Pool, tell: Callable[[Sequence[Change]], None]) -> None:
        self._pool = pool
        self._tell = tell
        self._lock = threading.RLock()
        self._index: IndexFollower | None = None
        self._own: dict[str, PostgresTransaction] = {}  # by write_id: writes of this engine on their way
        self._last = ""  # write_id of the change that was applied last
        self.applied = NOT_STARTED
        self.changes = 0

    @property
    def follows(self) -> bool:
        """Whether there is an index to bring in step, which may still be loading."""
        return self._index is not None

    @property
    def started(self) -> bool:
        return self.applied != NOT_STARTED

    def start(self, index: IndexFollower, *, load: bool) -> None:
        """Begin to follow; with `load`, the index is loaded first."""
        with self._lock:
            self._index = index
            self._begin_again(load=load)

    def expect(self, write_id: str, transaction: PostgresTransaction) -> None:
        """A write of this engine is about to be committed."""
        self._own[write_id] = transaction

    def forget(self, write_id: str) -> None:
        """That write did not take place."""
        self._own.pop(write_id, None)

    def committed(self, entry: Entry, transaction: PostgresTransaction) -> None:
        """Apply a write of this engine, and what others committed before it."""
        if not self.started:
            self.forget(entry.write_id)
            transaction.follow()
            self._told([entry])
            return
        with self._locked():
            if self.applied == entry.seq - 1:
                self._apply([entry])
            else:
                self.reach(entry.seq)

    def reach(self, seq: int) -> None:
        """Apply everything up to this number, once the index is loaded. Returns at once if that is done."""
        if self.applied >= seq or not self.follows:
            return
        with self._locked():
            while self.started and self.applied < seq:
                with self._pool.connection() as connection:
                    entries = list(changelog.after(connection, self.applied))
                if not entries:
                    raise Unavailable("The database is behind what was read from it before. Try again in a moment.")
                self._apply(entries)

    def check(self) -> None:
        """Connected again, perhaps to another server: begin again from it if it lacks what was applied here."""
        with self._locked():
            if not self.started:
                return
            with self._pool.connection() as connection:
                same = written_as(connection, self.applied) == self._last
            if not same:
                log.error(
                    "change %d, which was applied here, is not in the database: a server that was not synchronous has "
                    "become the primary, and lost changes. The index is loaded again",
                    self.applied,
                )
                self._begin_again()
            self._tell([RESET])  # what was told meanwhile was missed

    @contextmanager
    def _locked(self) -> Iterator[None]:
        end, seen = time.monotonic() + WAIT_SECONDS, self.applied
        while not self._lock.acquire(timeout=0.5):
            if self.applied != seen:
                end, seen = time.monotonic() + WAIT_SECONDS, self.applied
            if time.monotonic() > end:
                raise Unavailable(
                    "This engine is still taking in what other engines changed. Try again in a moment, or ask another."
                )
        try:
            yield
        finally:
            self._lock.release()

    def _begin_again(self, *, load: bool = True) -> None:
        """Load the index. Behind it comes what was not committed yet when that began; some of it may be loaded."""
        assert self._index is not None
        with self._pool.connection() as connection:
            seq = changelog.number(connection, changelog.HEAD)
            last = written_as(connection, seq)
        if load:
            self._index.reload()
        self.applied, self._last = seq, last
        self.changes += 1

    def _apply(self, entries: Sequence[Entry]) -> None:
        if entries[0].seq != self.applied + 1:
            log.warning("changes from %d on are not in the log any longer: the index is loaded again", self.applied + 1)
            self._begin_again()
            self._tell([RESET])
            return
        others: list[Entry] = []
        for entry in entries:
            if entry.seq <= self.applied:  # loaded
                self.forget(entry.write_id)
                self._told([entry])
            elif (own := self._own.pop(entry.write_id, None)) is not None:
                self._adopt(others)
                self._apply_own(entry, own)
            elif entry.kind == "index":
                self._adopt(others)
                self._begin_again()
                self._told([entry])
            else:
                others.append(entry)
                continue
            others = []
        self._adopt(others)

    def _apply_own(self, entry: Entry, own: PostgresTransaction) -> None:
        try:
            own.follow()
        except Exception as error:
            away = isinstance(error, psycopg.Error) or (isinstance(error, KBError) and error.retryable)
            message = "a change could not be applied as it was made, and is read from the database: %s"
            log.warning(message, " ".join(str(error).split()), exc_info=None if away else error)
            self._adopt([entry])
        else:
            self._applied([entry])

    def _adopt(self, entries: Sequence[Entry]) -> None:
        """Take over what other engines wrote, all at once."""
        if entries:
            assert self._index is not None
            if ids := {id_ for entry in entries for id_ in entry.document_ids}:
                self._index.adopt(sorted(ids))
            self._applied(entries)

    def _applied(self, entries: Sequence[Entry]) -> None:
        self.applied, self._last = entries[-1].seq, entries[-1].write_id
        self._told(entries)

    def _told(self, entries: Sequence[Entry]) -> None:
        self.changes += 1
        if told := [change for entry in entries for change in entry.told]:
            self._tell(told)


def written_as(connection: Connection, seq: int) -> str:
    """The `write_id` of a change; empty if it is not in the log."""
    found = executed(connection, changelog.WRITE_ID, {"seq": seq}).fetchone()
    return str(found[0]) if found else ""
