"""The sessions of a contract: how many there may be, and which one ends in favour of a new one."""

import logging
import time
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field

from kb.core.errors import Unavailable
from kb.http.logs import Throttle

log = logging.getLogger(__name__)
log.addFilter(Throttle())

# Without a call and without an open stream; the client begins a new session when it comes back. Agents are left alone
# for the length of a meeting, and those that never come back do not add up.
IDLE_SECONDS = 30 * 60


@dataclass(eq=False, slots=True)
class Session:
    end: Callable[[], Awaitable[None]]
    used: float  # when the last call began or was answered
    calls: set[Hashable] = field(default_factory=set)  # in progress
    streams: int = 0  # that are open while nothing is asked


class Sessions:
    """Used from the event loop only, so nothing needs a lock."""

    def __init__(self, contract: str, limit: int, idle_seconds: float = IDLE_SECONDS) -> None:
        self._contract = contract
        self._limit = limit
        self._idle_seconds = idle_seconds
        self._open: dict[Session, None] = {}  # the least recently used first

    async def open(self, end: Callable[[], Awaitable[None]]) -> Session:
        """A new session. If there is no room, the least recently used one without a call in progress is ended."""
        ended = None
        if len(self._open) >= self._limit:
            ended = next((session for session in self._open if not session.calls), None)
            if ended is None:
                log.warning(
                    "session refused: all %d of contract %s have a call in progress", self._limit, self._contract
                )
                raise Unavailable(f"{self._limit} sessions have a call in progress. Try again in a moment.")
            log.warning(
                "session ended for a new one: contract %s keeps %d (KB_MCP_MAX_SESSIONS), and it was unused for %.0f s",
                self._contract,
                self._limit,
                time.monotonic() - ended.used,
            )
            self.close(ended)
        session = Session(end, time.monotonic())
        self._open[session] = None
        if ended is not None:
            await ended.end()
        return session

    def close(self, session: Session) -> None:
        self._open.pop(session, None)

    def begin(self, session: Session, call: Hashable) -> None:
        session.calls.add(call)
        self._touch(session)

    def done(self, session: Session, call: Hashable) -> None:
        session.calls.discard(call)
        self._touch(session)

    async def expire(self) -> None:
        """End sessions whose clients seem to be gone."""
        latest = time.monotonic() - self._idle_seconds
        idle = [s for s in self._open if s.used <= latest and not s.calls and not s.streams]
        for session in idle:
            log.info("session ended: contract %s, unused for %.0f s", self._contract, time.monotonic() - session.used)
            self.close(session)
            await session.end()

    def _touch(self, session: Session) -> None:
        session.used = time.monotonic()
        if session in self._open:
            del self._open[session]
            self._open[session] = None
