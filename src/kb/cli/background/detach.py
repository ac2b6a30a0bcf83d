"""`kb up --detach`: start a supervisor without a terminal, and wait until both servers answer."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.error import HTTPError
from urllib.request import urlopen

from kb.cli.background import log, running
from kb.core.errors import InvalidRequest, Unavailable

if TYPE_CHECKING:
    from pathlib import Path

    from kb.core.settings import Settings

PATIENCE_SECONDS = 300  # a large index takes its time
LOOK_SECONDS = 0.1
LAST_LINES = 15


def detach(settings: "Settings") -> int:
    """Return when both answer; an error says what the log says."""
    running.make_way(settings.data_dir)
    for name, host, port in (
        ("KB_PORT", settings.host, settings.port),
        ("KB_MCP_PORT", settings.mcp_host, settings.mcp_port),
    ):
        _require_free(name, host, port)
    file = log.path(settings.data_dir)
    os.close(log.opened(file))
    begun_at = os.stat(file).st_size
    words = [sys.executable, "-P", "-m", "kb.cli.main", "up", "--log", file]
    supervisor = subprocess.Popen(
        words,
        env=os.environ | {running.STARTED_BY: "detach"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,  # until it writes to the log
        cwd="/",
        start_new_session=True,
    )

    def trouble() -> str | None:
        if supervisor.poll() is None:
            return None
        assert supervisor.stderr
        said = supervisor.stderr.read().decode("utf-8", "replace") + log.since(file, begun_at)
        last = "\n".join(said.strip().splitlines()[-LAST_LINES:])
        return f"kb did not start (exit code {supervisor.returncode}). It said:\n{last}"

    started = await_answers(settings.data_dir, trouble)
    print(f"kb runs, process {supervisor.pid}: {started.engine_url}, and for agents {started.mcp_url}/mcp")
    print("kb logs shows what it says, kb down ends it.")
    return 0


def _require_free(name: str, host: str, port: int) -> None:
    """Another server there would answer in place of the one that cannot start."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.create_server((host, port), family=family).close()
    except OSError as wrong:
        raise InvalidRequest(
            f"{host}:{port} cannot be listened on ({wrong.strerror}): another program may be there. Set {name} to a "
            f"free port, as with: kb config set {name} {port + 100 if port < 60000 else port - 100}"
        ) from wrong


def await_answers(data_dir: "Path", trouble: Callable[[], str | None]) -> running.Running:
    """Wait until both servers of this data folder answer; `trouble` says why they never will."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        known = running.read(data_dir)
        if known and known.supervisor.alive and _healthy(known.engine_url) and _healthy(known.mcp_url):
            return known
        if reason := trouble():
            raise Unavailable(reason)
        time.sleep(LOOK_SECONDS)
    raise Unavailable(
        f"kb started, but does not answer after {PATIENCE_SECONDS} s. It goes on; follow it with: kb logs -f"
    )


def _healthy(url: str) -> bool:
    try:
        with urlopen(f"{url}/health", timeout=5):  # noqa: S310 - an address of this machine
            return True
    except HTTPError as answer:
        answer.close()
        return True  # of a server that says so itself
    except OSError:
        return False
