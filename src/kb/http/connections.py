"""The open connections of a server: how many there may be, and how long a client may keep the server waiting.

A connection with a request in progress is never ended in favour of another one. When the server is full,
the connection that has been idle the longest ends, so that idle connections cannot lock out a new client.
"""

import asyncio
import fcntl
import logging
import struct
import termios
from dataclasses import dataclass
from typing import Literal, Protocol

from kb.core.errors import KBError, Unavailable
from kb.core.sizes import readable_size
from kb.http.logs import Throttle

log = logging.getLogger(__name__)
log.addFilter(Throttle())

Stage = Literal["request", "body", "answer"]


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """What one server grants its clients."""

    connections: int = 1000  # a household or a team needs tens; an idle one costs about 6 KB
    # From connecting, or from the answer before, until the head of a request is complete. A browser that connects ahead
    # of time comes again; a head is one packet, and 20 seconds let a lost one be sent five times.
    request_seconds: float = 20
    # A body or an answer must move `stalled_bytes` in this time: about 1 KB/s, a fifth of what GPRS carries.
    stalled_seconds: float = 60
    stalled_bytes: int = 64 * 2**10
    # The same while every connection has a request in progress, so that stalled ones give way to new clients.
    crowded_seconds: float = 5
    sweep_seconds: float = 1


class Connection(Protocol):
    """What the connections need to know of one of them."""

    transport: asyncio.Transport
    client: tuple[str, int] | None
    received: int  # bytes, ever
    drains: int  # how often the transport's full buffer became empty enough to go on

    @property
    def cycle(self) -> object:
        """The request in progress, or the last one."""

    def stage(self) -> Stage | None:
        """What the client has to do next; None when it is the server's turn."""

    def refuse(self, error: KBError) -> None:
        """Close the connection, with this answer if one can still be sent."""


@dataclass(slots=True)
class Watch:
    """Progress of one transfer since the sweep that first saw it."""

    cycle: object = None
    stage: Stage | None = None
    since: float = 0
    drains: int = 0
    level: int = 0  # bytes received, or bytes still to be sent
    moved: int = 0


class Connections:
    """Used from the event loop only, so nothing needs a lock."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self._limits = limits
        self._open: dict[Connection, Watch] = {}
        self._idle: dict[Connection, float] = {}  # without a request in progress, the longest first; since when
        self._sweeping = False

    def opened(self, connection: Connection) -> None:
        """Take in a new connection. When the server is full, end the longest idle one for it, or refuse it."""
        if len(self._open) >= self._limits.connections and not self._make_room():
            log.warning(
                "connection from %s refused: %d connections have a request in progress",
                _name(connection),
                len(self._open),
            )
            connection.refuse(Unavailable("The server has as many requests in progress as it takes. Try again soon."))
            return
        self._open[connection] = Watch()
        self._idle[connection] = _now()
        if not self._sweeping:
            self._sweeping = True
            asyncio.get_running_loop().call_later(self._limits.sweep_seconds, self._sweep)

    def busy(self, connection: Connection) -> None:
        """A request begins."""
        self._idle.pop(connection, None)

    def idle(self, connection: Connection) -> None:
        """The last request was answered, or what was left of it has arrived."""
        if connection in self._open:
            self._idle.pop(connection, None)
            self._idle[connection] = _now()

    def closed(self, connection: Connection) -> None:
        self._open.pop(connection, None)
        self._idle.pop(connection, None)

    def _make_room(self) -> bool:
        longest = next(iter(self._idle), None)
        if longest is None:
            return False
        log.warning(
            "connection from %s ended: all %d are taken, and it was idle the longest (%.1f s)",
            _name(longest),
            len(self._open),
            _now() - self._idle[longest],
        )
        self.closed(longest)
        longest.transport.abort()
        return True

    def _sweep(self) -> None:
        """End connections whose clients keep the server waiting; again in a second while any are open."""
        limits = self._limits
        crowded = len(self._open) >= limits.connections and not self._idle
        patience = limits.crowded_seconds if crowded else limits.stalled_seconds
        now = _now()
        for connection, watch in list(self._open.items()):
            stage = connection.stage()
            if stage == "request":
                if now - self._idle.get(connection, now) >= limits.request_seconds:
                    self._end_without_request(connection)
            elif stage is not None:
                self._take_note(connection, stage, watch, now)
                waited = now - watch.since
                if waited >= patience and watch.moved < limits.stalled_bytes * waited / limits.stalled_seconds:
                    self._end_stalled(connection, stage, watch.moved, waited)
            watch.stage = stage
        self._sweeping = bool(self._open)
        if self._sweeping:
            asyncio.get_running_loop().call_later(limits.sweep_seconds, self._sweep)

    def _take_note(self, connection: Connection, stage: Stage, watch: Watch, now: float) -> None:
        """Add what moved since the last sweep; begin anew with each request, and when enough has moved."""
        level = connection.received if stage == "body" else _unsent(connection.transport)
        if (watch.stage, watch.cycle, watch.drains) == (stage, connection.cycle, connection.drains):
            watch.moved += max(0, level - watch.level if stage == "body" else watch.level - level)
            begun = watch.moved < self._limits.stalled_bytes
        else:
            begun = False
        if not begun:
            watch.cycle, watch.drains, watch.since, watch.moved = connection.cycle, connection.drains, now, 0
        watch.level = level

    def _end_without_request(self, connection: Connection) -> None:
        seconds = self._limits.request_seconds
        if connection.received:
            log.warning("connection from %s ended: no whole request head within %g s", _name(connection), seconds)
            connection.refuse(Unavailable(f"The head of the request did not arrive within {seconds:g} seconds."))
        else:
            log.info("connection from %s ended: no request within %g s", _name(connection), seconds)
            connection.transport.abort()

    def _end_stalled(self, connection: Connection, stage: Stage, moved: int, seconds: float) -> None:
        what = "its request arrives" if stage == "body" else "it reads its answer"
        log.warning(
            "connection from %s ended: %s too slowly (%s in %.0f s)",
            _name(connection),
            what,
            readable_size(moved),
            seconds,
        )
        if stage == "body":
            connection.refuse(
                Unavailable(f"Only {readable_size(moved)} arrived in {seconds:.0f} seconds. Send it again.")
            )
        else:
            connection.transport.abort()


def _unsent(transport: asyncio.Transport) -> int:
    """Bytes that the client has not received yet, also those that the system holds for it."""
    unsent = transport.get_write_buffer_size()
    try:
        held = fcntl.ioctl(transport.get_extra_info("socket").fileno(), termios.TIOCOUTQ, bytes(4))
    except OSError:  # not every system tells
        return unsent
    (queued,) = struct.unpack("i", held)
    return unsent + int(queued)


def _name(connection: Connection) -> str:
    return ":".join(map(str, connection.client or "?"))


def _now() -> float:
    return asyncio.get_running_loop().time()
