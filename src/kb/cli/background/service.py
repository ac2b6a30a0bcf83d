"""kb as a service of the user: a systemd unit on Linux, a launchd agent on macOS.

Each platform is one class with the same four methods; `commands/service.py` asks `platform_service` for the one that is
here. The service runs `kb up` with this interpreter and starts again when it dies or when the user logs in.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from typing import NamedTuple

from kb.cli.background.running import STARTED_BY
from kb.cli.connect.files import replaced
from kb.core.errors import KBError, Unavailable

# A service gets next to nothing of the shell's environment. These say where files and programs are; everything else is
# a setting, which belongs into the file with settings.
KEPT = ("KB_CONFIG", "PATH", "XDG_CONFIG_HOME", "XDG_DATA_HOME")
RESTART_SECONDS = 2
STOP_SECONDS = 70  # longer than `kb up` takes in the worst case
LABEL = "kb-server"


class ServiceState(NamedTuple):
    """What the platform says of the service."""

    installed: bool
    enabled: bool  # starts with the user's session
    active: bool
    detail: str


def command(log_file: str) -> list[str]:
    # -P: no module is imported from the current folder.
    return [sys.executable, "-P", "-m", "kb.cli.main", "up", "--log", log_file]


def environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in KEPT if os.environ.get(name)}
    return {STARTED_BY: "service", **kept}


class Systemd:
    """A unit of `systemd --user`."""

    name = f"{LABEL}.service"

    @property
    def path(self) -> str:
        base = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
        return os.path.join(base, "systemd", "user", self.name)

    def text(self, log_file: str) -> str:
        words = " ".join(_systemd_word(word).replace("$", "$$") for word in command(log_file))
        variables = "\n".join(
            f"Environment={_systemd_word(f'{name}={value}')}" for name, value in environment().items()
        )
        return f"""\
# Written by `kb service install`; `kb service remove` takes it away.
[Unit]
Description=kb: knowledge base (engine and MCP server)
StartLimitIntervalSec=120
StartLimitBurst=5

[Service]
ExecStart={words}
{variables}
Restart=always
RestartSec={RESTART_SECONDS}
# A setting that cannot be used stays wrong: kb says so once and is not started again.
RestartPreventExitStatus=2
# Only `kb up` is asked to end; it ends its servers in order.
KillMode=mixed
TimeoutStopSec={STOP_SECONDS}

[Install]
WantedBy=default.target
"""

    def install(self, log_file: str) -> None:
        self._require()
        replaced(self.path, self.text(log_file), private=True)
        _run("systemctl", "--user", "daemon-reload")
        _run("systemctl", "--user", "enable", self.name)
        _run("systemctl", "--user", "restart", self.name)

    def remove(self) -> None:
        self._require()
        _run("systemctl", "--user", "disable", "--now", self.name)
        os.unlink(self.path)
        _run("systemctl", "--user", "daemon-reload")

    def state(self) -> ServiceState:
        if not os.path.exists(self.path):
            return ServiceState(False, False, False, "not installed")
        fields = "ActiveState,SubState,UnitFileState,MainPID,NRestarts,Result"
        try:
            told = _run("systemctl", "--user", "show", self.name, f"--property={fields}")
        except KBError as wrong:
            return ServiceState(True, False, False, wrong.message)
        said = dict(line.partition("=")[::2] for line in told.splitlines())
        detail = f"{said.get('ActiveState')} ({said.get('SubState')})"
        if said.get("MainPID", "0") != "0":
            detail += f", process {said['MainPID']}"
        if said.get("Result") not in (None, "", "success"):
            detail += f", last result: {said['Result']}"
        if said.get("NRestarts", "0") != "0":
            detail += f", started again {said['NRestarts']} times"
        return ServiceState(True, said.get("UnitFileState") == "enabled", said.get("ActiveState") == "active", detail)

    def hint(self) -> str:
        return "It runs while you are logged in. To run it without a login: loginctl enable-linger"

    def _require(self) -> None:
        """Nothing is written where nothing could run it."""
        try:
            _run("systemctl", "--user", "show-environment")
        except KBError as wrong:
            raise Unavailable(f"systemd runs no services for you here: {wrong.message}. Use: kb up --detach") from wrong


class Launchd:
    """An agent of launchd."""

    name = f"local.{LABEL}"

    @property
    def path(self) -> str:
        return os.path.join(os.path.expanduser("~"), "Library", "LaunchAgents", f"{self.name}.plist")

    def text(self, log_file: str) -> str:
        import plistlib

        agent = {
            "Label": self.name,
            "ProgramArguments": command(log_file),
            "EnvironmentVariables": environment(),
            "RunAtLoad": True,
            "KeepAlive": True,
            "ThrottleInterval": 10,
            "ExitTimeOut": STOP_SECONDS,
            # What is said before `kb up` opens its log.
            "StandardErrorPath": f"{log_file}.start",
        }
        return plistlib.dumps(agent).decode()

    def install(self, log_file: str) -> None:
        os.makedirs(os.path.dirname(log_file), mode=0o700, exist_ok=True)
        if self.state().active:
            _run("launchctl", "bootout", self._target)
        replaced(self.path, self.text(log_file), private=True)
        _run("launchctl", "bootstrap", f"gui/{os.getuid()}", self.path)

    def remove(self) -> None:
        if self.state().active:
            _run("launchctl", "bootout", self._target)
        os.unlink(self.path)

    def state(self) -> ServiceState:
        if not os.path.exists(self.path):
            return ServiceState(False, False, False, "not installed")
        try:
            told = _run("launchctl", "print", self._target)
        except KBError:
            return ServiceState(True, True, False, "not loaded")
        facts = [line.strip() for line in told.splitlines() if line.strip().startswith(("state =", "pid ="))]
        return ServiceState(True, True, "state = running" in facts, ", ".join(facts))

    def hint(self) -> str:
        return "It runs while you are logged in."

    @property
    def _target(self) -> str:
        return f"gui/{os.getuid()}/{self.name}"


def platform_service() -> Systemd | Launchd:
    return Launchd() if sys.platform == "darwin" else Systemd()


def _systemd_word(text: str) -> str:
    """One word of a unit: in quotes, with what systemd would expand escaped."""
    for special, escaped in (("\\", "\\\\"), ('"', '\\"'), ("%", "%%"), ("\n", "\\n")):
        text = text.replace(special, escaped)
    return f'"{text}"'


def _run(*words: str) -> str:
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=STOP_SECONDS + 30)
    except (OSError, subprocess.TimeoutExpired) as wrong:
        raise Unavailable(f"`{' '.join(words)}` cannot be run: {wrong}.") from wrong
    if done.returncode:
        reason = (done.stderr or done.stdout).strip() or f"exit code {done.returncode}"
        raise Unavailable(f"`{' '.join(words)}` failed: {reason}")
    return done.stdout


def unseen_settings(names: Sequence[str]) -> list[str]:
    """Settings of this shell that a service would not have."""
    return [name for name in names if os.environ.get(name)]
