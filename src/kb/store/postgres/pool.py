"""Connections to the server that may be used again. They outlive a failover: a broken one is replaced at once.

Nothing happens in the background. Whoever needs a connection and finds none that works makes one, and tries for a few
seconds, so that requests that arrive during a failover are served by the next primary.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psycopg
from psycopg.pq import TransactionStatus

from kb.core.errors import Unavailable
from kb.store.postgres.runner import Connection

MOST = 24  # connections at a time
WAIT_SECONDS = 5.0  # for a connection
PAUSE = 0.1  # seconds between two attempts


class Pool:
    def __init__(self, conninfo: str, *, patient: bool = True) -> None:
        """One that is not `patient` tries once to connect."""
        self._conninfo = conninfo
        self._patient = patient
        self._room = threading.Semaphore(MOST)
        self._idle: list[Connection] = []  # the one used last is used first
        self.closed = True

    def open(self) -> None:
        self.closed = False
        self.give_back(self.take())

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        connection = self.take()
        try:
            yield connection
        finally:
            self.give_back(connection)

    def take(self) -> Connection:
        """A connection; the caller gives it back."""
        if not self._room.acquire(timeout=WAIT_SECONDS):
            raise Unavailable(f"All {MOST} connections to PostgreSQL are in use. Try again in a moment.")
        try:
            with suppress(IndexError):
                return self._idle.pop()
            return self._connected()
        except BaseException:
            self._room.release()
            raise

    def take_working(self, begin: str) -> Connection:
        """A connection on which this statement was run. Those that broke while nobody used them are closed."""
        connection = self.take()
        try:
            connection.execute(begin.encode(), prepare=False)
        except psycopg.OperationalError:
            self.give_back(connection)
            self.clear()
            connection = self.take()
            try:
                connection.execute(begin.encode(), prepare=False)
            except BaseException:
                self.give_back(connection)
                raise
        except BaseException:
            self.give_back(connection)
            raise
        return connection

    def give_back(self, connection: Connection) -> None:
        if self.closed or connection.closed or connection.info.transaction_status != TransactionStatus.IDLE:
            connection.close()
        else:
            self._idle.append(connection)
        self._room.release()

    def clear(self) -> None:
        """Close the connections that are not in use: the server that they lead to is gone."""
        while True:
            try:
                self._idle.pop().close()
            except IndexError:
                return

    def close(self) -> None:
        self.closed = True
        self.clear()

    def _connected(self) -> Connection:
        end = time.monotonic() + WAIT_SECONDS
        while True:
            if self.closed:
                raise Unavailable("The engine is stopping.")
            try:
                return connect(self._conninfo)
            except psycopg.OperationalError:
                if time.monotonic() > end or not self._patient:
                    raise
            time.sleep(PAUSE)


def connect(conninfo: str) -> Connection:
    return psycopg.connect(conninfo, autocommit=True, prepare_threshold=1)
