"""`kb up --detach`, `kb down` and `kb logs`: exactly what was started is ended, whatever happened meanwhile."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kb.cli.background import log, running
from support import Http, eventually

from .conftest import Kb

pytestmark = pytest.mark.slow


@pytest.fixture
def detached(tmp_path: Path) -> Iterator[Kb]:
    """`kb` with a data folder of its own; what it started is ended."""
    settings = {"KB_DATA_DIR": str(tmp_path / "data"), "KB_PORT": "0", "KB_MCP_PORT": "0", "KB_ENGINE_URL": ""}
    kb = Kb("", tmp_path, settings)
    yield kb
    if known := running.read(tmp_path / "data"):
        running.stop(known, 30)


def known(kb: Kb) -> running.Running:
    found = running.read(kb.folder / "data")
    assert found
    return found


def test_it_answers_when_the_command_returns_and_ends_on_request(detached: Kb) -> None:
    ran = detached("up", "--detach")
    assert ran.code == 0, ran.err
    both = known(detached)
    assert Http(both.engine_url)("GET", "/health").status == 200
    assert Http(both.mcp_url)("GET", "/health").status == 200
    assert "listens on" in detached("logs").out
    assert "kb up --detach" in detached("status", KB_ENGINE_URL=both.engine_url).out

    again = detached("up", "--detach")
    assert (again.code, "already" in again.err, both.engine_url in again.err) == (4, True, True)
    assert detached("up").code == 4

    assert detached("down").code == 0
    assert not any(process.alive for process in (both.supervisor, *both.servers))
    assert detached("down").code == 3


def test_servers_that_lost_their_supervisor_are_ended_too(detached: Kb) -> None:
    assert detached("up", "--detach").code == 0
    both = known(detached)
    os.kill(both.supervisor.pid, signal.SIGKILL)
    eventually(lambda: not both.supervisor.alive)
    assert all(process.alive for process in both.servers)
    assert detached("down").code == 0
    assert not any(process.alive for process in both.servers)


def test_a_new_start_takes_over_from_a_killed_one(detached: Kb) -> None:
    assert detached("up", "--detach").code == 0
    both = known(detached)
    os.kill(both.supervisor.pid, signal.SIGKILL)
    eventually(lambda: not both.supervisor.alive)
    port = both.engine_url.rpartition(":")[2]
    ran = detached("up", "--detach", KB_PORT=port)
    assert ran.code == 0, ran.err
    assert known(detached).engine_url == both.engine_url
    assert not any(process.alive for process in both.servers)


def test_a_process_that_has_the_id_of_an_ended_one_is_left_alone(detached: Kb) -> None:
    bystander = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        (detached.folder / "data").mkdir()
        said = {"way": "detach", "processes": [[bystander.pid, "1"]], "engine_url": "", "mcp_url": ""}
        (detached.folder / "data" / "up.json").write_text(json.dumps(said))
        assert detached("down").code == 3
        assert bystander.poll() is None
        running.Process(bystander.pid, "1").signal(signal.SIGKILL)
        assert bystander.poll() is None
    finally:
        bystander.communicate()


def test_a_start_that_fails_says_what_the_log_says(detached: Kb) -> None:
    ran = detached("up", "--detach", KB_DATABASE_URL="nonsense://")
    assert (ran.code, "KB_DATABASE_URL" in ran.err) == (6, True)
    with Taken() as port:
        ran = detached("up", "--detach", KB_PORT=str(port))
        assert (ran.code, "kb config set KB_PORT" in ran.err) == (2, True)
    assert running.read(detached.folder / "data") is None


class Taken:
    """A port that somebody else listens on."""

    def __enter__(self) -> int:
        import socket

        self._socket = socket.create_server(("127.0.0.1", 0))
        return int(self._socket.getsockname()[1])

    def __exit__(self, *_: object) -> None:
        self._socket.close()


def test_one_in_a_terminal_is_not_ended_from_elsewhere(detached: Kb) -> None:
    process = detached.begin("up")
    try:
        eventually(lambda: running.read(detached.folder / "data"))
        told = detached("down")
        assert (told.code, "Ctrl-C" in told.err) == (4, True)
        assert process.poll() is None
    finally:
        process.terminate()
        process.communicate()


def test_the_log_stays_small(tmp_path: Path) -> None:
    file = log.path(tmp_path)
    handle = log.opened(file)
    os.write(handle, b"first\n" * 100)
    assert log.tail(file, 2) == ("first\nfirst\n", 600)
    log.bound(file, full=1000)
    assert os.stat(file).st_size == 600
    log.bound(file, full=500)
    assert (os.stat(file).st_size, os.stat(f"{file}.1").st_size) == (0, 600)
    assert os.stat(f"{file}.1").st_mode & 0o777 == 0o600
    os.write(handle, b"after\n")
    os.close(handle)
    assert log.tail(file, 50) == ("after\n", 6)


def test_following_goes_on_after_the_log_was_emptied(tmp_path: Path) -> None:
    file = log.path(tmp_path)
    handle = log.opened(file)
    os.write(handle, b"before\n")
    with subprocess.Popen(
        [sys.executable, "-m", "kb.cli.main", "logs", "-f"],
        env=os.environ | {"KB_DATA_DIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    ) as following:
        assert following.stdout
        assert following.stdout.readline() == "before\n"
        os.write(handle, b"one more line\n")
        assert following.stdout.readline() == "one more line\n"
        log.bound(file, full=1)
        os.write(handle, b"new\n")
        assert following.stdout.readline() == "new\n"
        following.terminate()
    os.close(handle)
