"""The feed: every change of a job or a document, sent to all followers, so that none has to poll.

Each follower has its own buffer. One that reads too slowly loses its buffer and gets `reset`: it has to load
everything again. Nothing is left out silently, except progress that newer progress replaces.
"""

import secrets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from kb.core.changes import RESET, Change
from kb.store.backend import Database

BUFFERED = 1000  # events for one follower
PROGRESS_SECONDS = 1.0  # at least between two events about the progress of one job


class Event(NamedTuple):
    id: str  # of this run of the engine, and its number
    change: Change


class Follower:
    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._waiting: list[Event] = []
        self._lock = threading.Lock()

    def put(self, events: Sequence[Event]) -> None:
        with self._lock:
            self._waiting += events
            if len(self._waiting) > BUFFERED:
                self._waiting = [Event(events[-1].id, RESET)]
        self._wake()

    def take(self) -> list[Event]:
        """What happened since the last call."""
        with self._lock:
            taken, self._waiting = self._waiting, []
        return taken


class Feed:
    def __init__(self, database: Database) -> None:
        self._lock = threading.Lock()
        self._run = secrets.token_hex(4)
        self._number = 0
        self._followers: list[Follower] = []
        self.closed = False
        self._progress: dict[str | int | None, float] = {}  # when the progress of a running job was last sent
        database.listen(self._hear)

    @contextmanager
    def follow(self, wake: Callable[[], None], since: str | None = None) -> Iterator[Follower]:
        """Have `wake` called, from any thread, whenever there is something to take.

        `since` is the id of the last event that the follower has seen, before its connection broke.
        """
        follower = Follower(wake)
        with self._lock:
            latest = self._id()
            if since is not None and since != latest:
                follower.put([Event(latest, RESET)])
            self._followers.append(follower)
        try:
            yield follower
        finally:
            with self._lock:
                self._followers.remove(follower)

    def close(self) -> None:
        """Wake all followers a last time: nothing more is told."""
        self.closed = True
        with self._lock:
            for follower in self._followers:
                follower.put([])

    def _hear(self, changes: Sequence[Change]) -> None:
        with self._lock:
            events = [self._numbered(change) for change in changes if not self._is_too_soon(change)]
            if events:
                for follower in self._followers:
                    follower.put(events)

    def _numbered(self, change: Change) -> Event:
        self._number += 1
        return Event(self._id(), change)

    def _id(self) -> str:
        return f"{self._run}-{self._number}"

    def _is_too_soon(self, change: Change) -> bool:
        if change.kind != "job":
            return False
        if change.action != "progress":
            self._progress.pop(change.id, None)
            return False
        now = time.monotonic()
        if now - self._progress.get(change.id, -PROGRESS_SECONDS) < PROGRESS_SECONDS:
            return True
        self._progress[change.id] = now
        return False
