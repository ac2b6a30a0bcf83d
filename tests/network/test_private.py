"""kb opens no connection of its own: everything runs in a network namespace that records any attempt."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from network.isolated import UNABLE

TESTS = Path(__file__).parent.parent
ISOLATED = TESTS / "network" / "isolated.py"
# What OpenVINO imports to report itself, for machines on which it is installed. OpenVINO goes on without it.
REPORTER = """
import contextlib, socket
with contextlib.suppress(OSError):
    socket.socket(type=socket.SOCK_DGRAM).sendto(b"imported", ("192.0.2.7", 443))
raise ImportError
"""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has network namespaces: NOT PROVEN here")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def attempts(folder: Path, home: Path, command: Sequence[str], python_path: Sequence[Path] = ()) -> list[str]:
    """Run a command with no network; what it tried to reach beyond loopback.

    The environment is that of a person: on machines for continuous integration, some libraries keep quiet.
    """
    record = folder / "record.json"
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join(map(str, [*python_path, TESTS])),
    }
    done = subprocess.run(
        [sys.executable, str(ISOLATED), str(record), *command],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    if done.returncode == UNABLE:
        pytest.skip(f"NOT PROVEN here: {done.stderr.strip()}")
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return list(json.loads(record.read_text()))


@pytest.mark.parametrize(
    ("attempt", "seen"),
    [
        ("socket.getaddrinfo('telemetry.example', 443)", "udp to 192.0.2.53 port 53 for telemetry.example"),
        ("socket.create_connection(('192.0.2.1', 443), timeout=0.1)", "tcp to 192.0.2.1 port 443"),
        ("socket.create_connection(('2001:db8::1', 443), timeout=0.1)", "tcp to 2001:db8::1 port 443"),
        ("socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('192.0.2.1', 9))", "udp to 192.0.2.1 port 9"),
        ("socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.53', 53))", "udp to 127.0.0.53 port 53 for "),
    ],
)
def test_an_attempt_is_recorded(tmp_path: Path, home: Path, attempt: str, seen: str) -> None:
    code = f"import contextlib, socket\nwith contextlib.suppress(OSError): {attempt}"
    assert attempts(tmp_path, home, [sys.executable, "-c", code]) == [seen]


def test_nothing_is_recorded_of_loopback(tmp_path: Path, home: Path) -> None:
    code = (
        "import socket\nserver = socket.create_server(('localhost', 0))\nsocket.create_connection(server.getsockname())"
    )
    assert attempts(tmp_path, home, [sys.executable, "-c", code]) == []


def test_nothing_that_kb_does_reaches_beyond_loopback(tmp_path: Path, home: Path) -> None:
    reporter = tmp_path / "path" / "openvino_telemetry"
    reporter.mkdir(parents=True)
    (reporter / "__init__.py").write_text(REPORTER)
    journey = [sys.executable, "-m", "network.journey", str(tmp_path)]
    assert attempts(tmp_path, home, journey, [reporter.parent]) == []
    assert list(home.iterdir()) == [], "a library left something in the home folder"
