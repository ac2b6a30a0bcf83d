"""`kb mcp`: the MCP server behind a real port, until it is told to stop."""

import logging
import sys

from kb import __version__
from kb.logs import configure
from kb.mcp.app import create_app
from kb.mcp.wire import MAX_MESSAGE
from kb.serving import Stop, address, listen
from kb.settings import Settings

log = logging.getLogger(__name__)


def serve(settings: Settings) -> int:
    configure(settings)
    # The SDK tells of sessions by their ids, which are as good as keys.
    logging.getLogger("mcp").setLevel(logging.WARNING)
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    stop = Stop()
    with listen(settings.mcp_host, settings.mcp_port, "KB_MCP_PORT") as listener:
        app = create_app(settings)
        announce(settings, address(settings.mcp_host, listener))
        stop.run(app, listener, lifespan="on", ws="websockets-sansio", ws_max_size=MAX_MESSAGE)
    return 0


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
