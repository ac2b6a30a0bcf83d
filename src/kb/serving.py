"""A server behind a real port, until it is told to stop: what the engine and the MCP server share."""

import signal
import socket
from typing import Any

import uvicorn

from kb.errors import Conflict
from kb.protocol import Protocol

GRACE_SECONDS = 5  # for answers that are under way when the server stops


class Stop:
    """Takes the signals that end a server, at any moment of its life.

    It only takes note. An exception raised from here could strike in the middle of an import and leave its lock
    behind, and other threads would wait for it for ever.
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

    def run(self, app: Any, listener: socket.socket, **options: Any) -> None:
        """Serve until asked to stop. While it serves, uvicorn takes the signals itself and hands them back."""
        config = uvicorn.Config(
            app,
            http=Protocol,
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=GRACE_SECONDS,
            **options,
        )
        self._server = uvicorn.Server(config)
        if not self._asked:
            self._server.run(sockets=[listener])


def listen(host: str, port: int, setting: str) -> socket.socket:
    """The socket, already listening; `setting` chooses another port."""
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
            f"Cannot listen on {host}:{port}: {error.strerror}. Choose another port with {setting}."
        ) from error
    listener.listen(128)
    return listener


def address(host: str, listener: socket.socket) -> str:
    """Where the socket is, as people write it."""
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{listener.getsockname()[1]}"
