"""`kb serve`: the engine behind a real port, until it is told to stop."""

import logging
import sys
from dataclasses import replace

from kb import __version__
from kb.api.app import create_app
from kb.core.endpoint import reached
from kb.core.settings import Settings
from kb.engine.assembly import RunningEngine
from kb.http.connections import ConnectionLimits
from kb.http.logs import configure
from kb.http.serve import Stop, address, affordable, listen

log = logging.getLogger(__name__)


def serve(settings: Settings, *, reindex: bool = False) -> int:
    """Listen first, so that `/health` answers at once; the model loads meanwhile."""
    configure(settings)
    stop = Stop()
    limits = affordable(ConnectionLimits())
    listener = listen(settings.host, settings.port, "KB_HOST and KB_PORT")
    running = RunningEngine(replace(settings, port=listener.getsockname()[1]), reindex=reindex)
    with listener, running as engine:
        announce(settings, address(settings.host, listener))
        stop.run(create_app(engine, settings), listener, limits, engine.feed.close, running.drain, lifespan="off")
    return 0


def announce(settings: Settings, place: str) -> None:
    if not settings.loopback and not settings.api_key:
        log.warning("anybody who reaches %s can read and change everything: set KB_API_KEY", place)
    own = reached(settings.host, int(place.rpartition(":")[2]))
    # With --port, or a port that was free, the command line looks for the engine elsewhere.
    kb = "kb" if settings.engine_url == own else f"KB_ENGINE_URL={own} kb"
    print(  # noqa: T201 - for the person who started it
        f"""kb {__version__} listens on {place}
  data     {settings.data_dir}
  page     {own}/
  try      {kb} addnote "The boiler was serviced in March"
           {kb} search "when was the heating checked"
Press Ctrl-C to stop.""",
        file=sys.stderr,
        flush=True,
    )
