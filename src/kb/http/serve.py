"""A server behind a real port, until it is told to stop: what the engine and the MCP server share."""

import logging
import resource
import signal
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from types import FrameType
from typing import Any

import uvicorn

from kb.core.errors import Conflict
from kb.http.connections import ConnectionLimits, Connections
from kb.http.protocol import HttpConnection

log = logging.getLogger(__name__)

GRACE_SECONDS = 5  # for answers that are under way when the server stops
DRAINED_GRACE_SECONDS = 20  # where another one serves meanwhile
FILES_PER_CONNECTION = 2  # its own, and a file or a connection to the engine that its request opens
# For everything else: some 50 threads with three files of SQLite each, pipes of extractors, the model, the log, and
# new connections that are accepted before an idle one is closed for them.
RESERVED_FILES = 512


class Stop:
    """Handles the signals that end a server, from its first moment on.

    A signal only sets a flag. An exception raised here could interrupt an import statement and leave its lock held,
    and other threads would wait for that lock for ever.
    """

    def __init__(self) -> None:
        self._asked = False
        self._server: uvicorn.Server | None = None
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self)

    def __call__(self, *_: Any) -> None:
        self._asked = True
        if self._server is not None:
            self._server.should_exit = True

    def run(
        self,
        app: Any,
        listener: socket.socket,
        limits: ConnectionLimits,
        on_stop: Callable[[], None] = lambda: None,
        drain: Callable[[], float] = lambda: 0.0,
        **options: Any,
    ) -> None:
        """Serve until asked to stop. While it serves, uvicorn takes the signals itself and hands them back.

        `drain` is called first, and returns for how many seconds requests are still taken. `on_stop` ends answers that
        would go on for ever: the server waits for those that are under way.
        """
        self._server = server(app, limits, on_stop=on_stop, drain=drain, **options)
        if not self._asked:
            self._server.run(sockets=[listener])


class Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, on_stop: Callable[[], None], drain: Callable[[], float]) -> None:
        super().__init__(config)
        self._on_stop = on_stop
        self._drain = drain
        self._draining = False

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """The first SIGTERM lets a load balancer notice before the port closes; what comes next ends at once."""
        if sig != signal.SIGTERM or self._draining:
            super().handle_exit(sig, frame)
            return
        self._draining = True
        threading.Thread(target=self._drained, args=(sig, frame), daemon=True).start()

    def _drained(self, sig: int, frame: FrameType | None) -> None:
        if seconds := self._drain():
            self.config.timeout_graceful_shutdown = DRAINED_GRACE_SECONDS
            time.sleep(seconds)
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._on_stop()
        await super().shutdown(sockets)


def server(
    app: Any,
    limits: ConnectionLimits,
    *,
    websocket: type | None = None,
    on_stop: Callable[[], None] = lambda: None,
    drain: Callable[[], float] = lambda: 0.0,
    **options: Any,
) -> Server:
    """The application behind connections that are limited."""
    http: Any = partial(HttpConnection, Connections(limits))
    return Server(
        uvicorn.Config(
            app,
            http=http,
            ws=websocket or "none",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=GRACE_SECONDS,
            **options,
        ),
        on_stop,
        drain,
    )


def affordable(limits: ConnectionLimits) -> ConnectionLimits:
    """The limits, with no more connections than the process may open files for.

    The process first raises its own limit of open files as far as the system allows.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = limits.connections * FILES_PER_CONNECTION + RESERVED_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        more = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with suppress(OSError, ValueError):  # macOS says that there is no limit, and has one
            resource.setrlimit(resource.RLIMIT_NOFILE, (more, hard))
            soft = more
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return limits
    connections = (soft - min(RESERVED_FILES, soft // 2)) // FILES_PER_CONNECTION
    log.warning(
        "%d connections at a time instead of %d: this process may open %d files only; raise its limit (ulimit -n)",
        connections,
        limits.connections,
        soft,
    )
    return replace(limits, connections=connections)


def listen(host: str, port: int, settings: str) -> socket.socket:
    """The socket, already listening; `settings` choose another address."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol is named because asyncio sends at once (TCP_NODELAY) only on sockets that do: without it, an answer
    # on a connection that is kept open comes 40 ms late.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise Conflict(
            f"Cannot listen on {host}:{port}: {error.strerror}. Choose another address with {settings}."
        ) from error
    listener.listen(128)
    return listener


def address(host: str, listener: socket.socket) -> str:
    """Where the socket is, as people write it."""
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{listener.getsockname()[1]}"
