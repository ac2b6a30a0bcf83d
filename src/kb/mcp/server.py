"""`kb mcp`: the MCP server behind a real port, until it is told to stop."""

import logging
import sys
from dataclasses import replace

from kb import __version__
from kb.core.settings import Settings
from kb.http.connections import ConnectionLimits
from kb.http.logs import configure
from kb.http.serve import Stop, address, affordable, listen
from kb.http.websocket import SocketConnection
from kb.mcp.app import create_app
from kb.mcp.transports.wire import MAX_MESSAGE

log = logging.getLogger(__name__)


def serve(settings: Settings) -> int:
    configure(settings)
    # The SDK tells of sessions by their ids, which are as good as keys.
    logging.getLogger("mcp").setLevel(logging.WARNING)
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    stop = Stop()
    limits, sessions = room(settings)
    with listen(settings.mcp_host, settings.mcp_port, "KB_MCP_HOST and KB_MCP_PORT") as listener:
        app = create_app(replace(settings, mcp_max_sessions=sessions))
        announce(settings, address(settings.mcp_host, listener))
        stop.run(app, listener, limits, lifespan="on", websocket=SocketConnection, ws_max_size=MAX_MESSAGE)
    return 0


def room(settings: Settings) -> tuple[ConnectionLimits, int]:
    """The limits on connections, and how many sessions a contract may have.

    A session may hold a connection as long as it lives. So sessions never get all of them: as many as another server
    has, or half of what there is, are left for connections that come and go.
    """
    contracts = len(settings.mcp_contracts)
    usual = ConnectionLimits()
    limits = affordable(replace(usual, connections=usual.connections + settings.mcp_max_sessions * contracts))
    for_sessions = limits.connections - min(usual.connections, limits.connections // 2)
    return limits, min(settings.mcp_max_sessions, max(1, for_sessions // contracts))


def announce(settings: Settings, place: str) -> None:
    if not settings.mcp_loopback and not settings.mcp_api_key:
        log.warning("anybody who reaches %s can read and change everything: set KB_MCP_API_KEY", place)
    contracts = "\n".join(f"  contract {place}/mcp/{name}" for name in settings.mcp_contracts)
    print(  # noqa: T201 - for the person who started it
        f"""kb {__version__} MCP server listens on {place}/mcp
  engine   {settings.engine_url}
{contracts}
Press Ctrl-C to stop.""",
        file=sys.stderr,
        flush=True,
    )
