"""`kb serve`: the engine behind a real port, until it is told to stop."""

import logging
import signal
import socket
import sys
from typing import Any

import uvicorn

from kb import __version__
from kb.api.app import create_app
from kb.errors import Conflict
from kb.logs import configure
from kb.settings import Settings
from kb.wiring import RunningEngine

log = logging.getLogger(__name__)

GRACE_SECONDS = 5  # for answers that are under way when the engine stops


def serve(settings: Settings, *, reindex: bool = False) -> int:
    """Listen first, so that `/health` answers at once; the model loads meanwhile."""
    configure(settings)
    stop = Stop()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    listener = listen(settings)
    with listener, RunningEngine(settings, reindex=reindex) as engine:
        name = f"[{settings.host}]" if ":" in settings.host else settings.host
        announce(settings, f"http://{name}:{listener.getsockname()[1]}")
        config = uvicorn.Config(
            create_app(engine, settings),
            log_config=None,
            access_log=False,
            lifespan="off",
            server_header=False,
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
        stop.run(uvicorn.Server(config), listener)
    return 0


class Stop:
    """Takes the signals that end the engine, at any moment of its life.

    It only takes note. An exception raised from here could strike in the middle of an import and leave its lock
    behind, and other threads would wait for it for ever.
    """

    def __init__(self) -> None:
        self._asked = False
        self._server: uvicorn.Server | None = None

    def __call__(self, *_: Any) -> None:
        self._asked = True
        if self._server is not None:
            self._server.should_exit = True

    def run(self, server: uvicorn.Server, listener: socket.socket) -> None:
        """Serve until asked to stop. While it serves, uvicorn takes the signals itself and hands them back."""
        self._server = server
        if not self._asked:
            server.run(sockets=[listener])


def listen(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # The protocol is named because asyncio sends at once (TCP_NODELAY) only on sockets that do: without it, an answer
    # on a connection that is kept open comes 40 ms late.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
    except OSError as error:
        listener.close()
        raise Conflict(
            f"Cannot listen on {settings.host}:{settings.port}: {error.strerror}. Choose another port with KB_PORT."
        ) from error
    listener.listen(128)
    return listener


def announce(settings: Settings, address: str) -> None:
    if not settings.loopback and not settings.api_key:
        log.warning("anybody who reaches %s can read and change everything: set KB_API_KEY", address)
    print(  # noqa: T201 - for the person who started it
        f"""kb {__version__} listens on {address}
  data     {settings.data_dir}
  page     {address}/
  try      kb addnote "The boiler was serviced in March"
           kb search "when was the heating checked"
Press Ctrl-C to stop.""",
        file=sys.stderr,
        flush=True,
    )
