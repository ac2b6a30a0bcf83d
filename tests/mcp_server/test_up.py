"""`kb up`: both processes, one end."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support import Http

Up = Callable[..., "Both"]


class Both:
    """`kb up` and where its two servers are."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.log = folder / "up.log"
        environment = {name: value for name, value in os.environ.items() if not name.startswith("KB_")}
        environment |= {"KB_DATA_DIR": str(folder / "data"), "KB_PORT": "0", "KB_MCP_PORT": "0", **settings}
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "kb.cli.main", "up"], stdout=log, stderr=log, env=environment
            )

    def addresses(self) -> tuple[str, str]:
        for _ in range(600):
            found = [line.split()[-1] for line in self.log.read_text().splitlines() if "listens on" in line]
            if len(found) == 2:
                engine, mcp = sorted(found, key=lambda url: url.endswith("/mcp"))
                return engine, mcp.removesuffix("/mcp")
            time.sleep(0.05)
        raise AssertionError(self.log.read_text())

    def children(self) -> list[int]:
        pid = self.process.pid
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Up]:
    started: list[Both] = []

    def start(**settings: str) -> Both:
        started.append(Both(tmp_path, **settings))
        return started[-1]

    yield start
    for both in started:
        if both.process.poll() is None:
            both.process.terminate()
            both.process.wait(30)


def refused(url: str) -> bool:
    try:
        Http(url)("GET", "/health")
    except OSError:
        return True
    return False


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_up_starts_both_and_ends_both(up: Up, how: signal.Signals) -> None:
    both = up(KB_API_KEY="secret")
    engine, mcp = both.addresses()
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "kb_status", "arguments": {}}}
    status = Http(mcp)("POST", "/mcp", call).json["result"]["structuredContent"]
    assert status["storage"]["path"], "the MCP server talks to the engine beside it, with its key"
    both.process.send_signal(how)
    assert both.process.wait(30) == 0, both.log.read_text()
    assert refused(engine)
    assert refused(mcp)


@pytest.mark.skipif(not Path("/proc").exists(), reason="finds the processes in /proc")
def test_neither_is_restarted_in_silence(up: Up) -> None:
    both = up()
    engine, mcp = both.addresses()
    os.kill(both.children()[1], signal.SIGKILL)
    assert both.process.wait(30) == 1
    assert "the MCP server ended (signal 9), so everything stops" in both.log.read_text()
    assert refused(engine)
    assert refused(mcp)


def test_a_server_that_cannot_start_ends_the_other(up: Up) -> None:
    both = up(KB_MCP_CONTRACTS="unheard-of")
    assert both.process.wait(60) == 2
    assert "KB_MCP_CONTRACTS" in both.log.read_text()
