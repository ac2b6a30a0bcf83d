"""The thread that listens for what other engines did, and looks at the log every second in case it heard nothing."""

import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress

import psycopg
from psycopg.sql import SQL, Identifier

from kb.core.changes import Change
from kb.core.errors import KBError
from kb.store.postgres import log as changelog
from kb.store.postgres.follower import LogFollower
from kb.store.postgres.log import parsed
from kb.store.postgres.pool import connect
from kb.store.postgres.runner import Connection

log = logging.getLogger(__name__)

POLL_SECONDS = 1.0
PAUSE = 0.2  # seconds between two attempts to connect
LONGER_PAUSE = 2.0  # while something is missing here


class LogListener:
    """`away` says that the database could not be reached when it was last tried, a moment ago."""

    def __init__(
        self,
        conninfo: str,
        channel: str,
        engine: str,
        follower: LogFollower,
        tell: Callable[[Sequence[Change]], None],
        share: Callable[[Connection], None],
    ) -> None:
        """`share` locks the knowledge base for as long as the connection lasts, against what replaces all of it."""
        self._conninfo = conninfo
        self._channel = channel
        self._engine = engine
        self._follower = follower
        self._tell = tell
        self._share = share
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._connection: Connection | None = None
        self._behind = ""  # why changes of other engines cannot be taken in
        self.away = False
        self.head = 0

    def start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="follower", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(2 * POLL_SECONDS)

    def lost(self) -> bool:
        """Whether the database is out of reach, as a caller suspects."""
        try:
            with connect(self._conninfo):
                return False
        except psycopg.Error:
            self.away = True
            return True

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                with connect(self._conninfo) as connection:
                    self._share(connection)
                    connection.execute(SQL("LISTEN {}").format(Identifier(self._channel)))
                    self._follower.check()
                    self._listen(connection)
            except (KBError, psycopg.Error) as error:
                if isinstance(error, KBError) and error.details.get("cannot_follow"):
                    self._cannot_follow(error)
                    continue
                if not self.away and not self._stopping.is_set():
                    log.warning("the database cannot be reached: %s", " ".join(str(error).split()))
                self.away = True
            except Exception:
                log.exception("what other engines changed could not be applied; it is tried again")
            self._stopping.wait(PAUSE)

    def _cannot_follow(self, error: KBError) -> None:
        """The database is there, but not what the change needs here. Try again, and say so once."""
        if error.message != self._behind:
            log.error("%s", error.message)
        self._behind = error.message
        self._stopping.wait(LONGER_PAUSE)

    def _listen(self, connection: Connection) -> None:
        while not self._stopping.is_set():
            self.head = changelog.number(connection, changelog.HEAD)
            if self.away:
                log.warning("the database can be reached again")
            self.away = False
            self._follower.reach(self.head)
            for heard in connection.notifies(timeout=POLL_SECONDS, stop_after=1):
                self._hear(heard.payload)

    def _hear(self, payload: str) -> None:
        """The number of a change, or what listeners hear of something that is in no log."""
        engine, _, said = payload.partition(" ")
        if engine != self._engine and said.startswith("["):
            with suppress(ValueError, TypeError):  # of a newer version
                self._tell(parsed(said))
