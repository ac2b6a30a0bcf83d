"""`kb service`: what it writes is valid and starts kb, also after a kill; where nothing can run, nothing is written."""

import os
import plistlib
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from kb.cli.background import running
from kb.cli.background.service import Launchd, Systemd
from support import Http, eventually

from .conftest import Kb


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Kb]:
    """`kb` with an empty home, a file with settings, and no systemd that would listen."""
    folder = tmp_path / "a home, 100% mine"
    folder.mkdir()
    empty = {"XDG_CONFIG_HOME": "", "XDG_DATA_HOME": "", "XDG_RUNTIME_DIR": "", "DBUS_SESSION_BUS_ADDRESS": ""}
    kb = Kb("", folder, {"HOME": str(folder), "KB_ENGINE_URL": "", **empty})
    for name in ("KB_PORT", "KB_MCP_PORT"):
        kb("config", "set", name, "0")
    yield kb
    if known := running.read(folder / ".local/share/kb"):
        running.stop(known)


def unit(kb: Kb) -> str:
    ran = kb("service", "install", "--print")
    assert ran.code == 0, ran.err
    return ran.out


def started(text: str, home: Path) -> "subprocess.Popen[bytes]":
    """The unit's own command with the unit's own environment, as systemd would start it."""
    lines = text.splitlines()
    [command] = [line.removeprefix("ExecStart=") for line in lines if line.startswith("ExecStart=")]
    variables = [line.removeprefix("Environment=") for line in lines if line.startswith("Environment=")]
    pairs = (shlex.split(variable)[0].replace("%%", "%").partition("=")[::2] for variable in variables)
    words = [word.replace("%%", "%") for word in shlex.split(command)]
    return subprocess.Popen(words, env={"HOME": str(home), **dict(pairs)}, cwd="/")


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="asks systemd whether the unit is valid")
def test_systemd_finds_nothing_wrong_with_the_unit(home: Kb, tmp_path: Path) -> None:
    file = tmp_path / "kb-server.service"
    file.write_text(unit(home))
    runtime = tmp_path / "runtime"
    runtime.mkdir(mode=0o700)
    asked = subprocess.run(
        ["systemd-analyze", "--user", "verify", file],
        env=os.environ | {"XDG_RUNTIME_DIR": str(runtime)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (asked.returncode, asked.stderr) == (0, "")
    assert "Restart=always" in file.read_text()


@pytest.mark.slow
def test_the_units_command_starts_kb_and_starts_it_again_after_a_kill(home: Kb) -> None:
    data = home.folder / ".local/share/kb"
    text = unit(home)
    first = started(text, home.folder)
    before = eventually(lambda: running.read(data))
    assert before
    assert before.way == "service"
    told = home("down")
    assert (told.code, "kb service remove" in told.err) == (4, True)
    first.send_signal(signal.SIGKILL)
    first.wait()
    second = started(text, home.folder)
    try:
        eventually(lambda: (now := running.read(data)) and now.supervisor.pid == second.pid)
        after = running.read(data)
        assert after
        assert not any(server.alive for server in before.servers)
        eventually(lambda: answers(after.engine_url))
        assert "runs as    the service" in home("status", KB_ENGINE_URL=after.engine_url).out
    finally:
        second.terminate()
        assert second.wait(60) == 0


def answers(url: str) -> bool:
    try:
        return Http(url)("GET", "/health").status == 200
    except OSError:
        return False


def test_nothing_is_written_where_no_service_can_run(home: Kb) -> None:
    ran = home("service", "install")
    assert (ran.code, "kb up --detach" in ran.err) == (6, True)
    assert not (home.folder / ".config/systemd").exists()
    assert home("service", "remove").code == 3
    assert "kb service install" in home("service").out
    assert home("service", "status", "--json").json["installed"] is False


def test_settings_of_the_shell_are_not_lost_in_silence(home: Kb) -> None:
    ran = home("service", "install", "--print", KB_PORT="8100")
    assert (ran.code, "kb config set KB_PORT" in ran.err) == (2, True)
    named = home.folder / "other.toml"
    named.write_text("")
    assert (
        f'Environment="KB_CONFIG={named}"'.replace("%", "%%")
        in home("service", "install", "--print", KB_CONFIG=str(named)).out
    )


def test_what_systemd_would_expand_is_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", 'a "b" %h $c')
    text = Systemd().text('/x/$HOME/%u "y"\\z/kb.log')
    assert r'"/x/$$HOME/%%u \"y\"\\z/kb.log"' in text
    assert r'Environment="PATH=a \"b\" %%h $c"' in text


def test_the_agent_of_launchd_is_a_property_list_that_keeps_kb_alive() -> None:
    agent = plistlib.loads(Launchd().text("/x & y/kb.log").encode())
    assert agent["ProgramArguments"][-3:] == ["up", "--log", "/x & y/kb.log"]
    assert (agent["KeepAlive"], agent["RunAtLoad"]) == (True, True)
    assert agent["EnvironmentVariables"]["KB_STARTED_BY"] == "service"
