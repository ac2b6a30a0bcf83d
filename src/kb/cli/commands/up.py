"""`kb up`: engine and MCP server together, each in a process of its own, until one of them or a person ends it."""

import argparse
import os
import sys
from typing import TYPE_CHECKING

from kb.cli.options import Commands, command
from kb.core.endpoint import reached

if TYPE_CHECKING:
    from subprocess import Popen

    from kb.core.settings import Settings

EXAMPLES = """
kb up
KB_DATA_DIR=~/kb-work KB_PORT=8100 KB_MCP_PORT=3100 kb up
"""
PATIENCE_SECONDS = 30  # for a process that was asked to stop
LOOK_SECONDS = 0.2
STOPPED_ALONE = 1


def register(commands: Commands) -> None:
    command(commands, "up", run, EXAMPLES, json=False)


def run(_args: argparse.Namespace) -> int:
    """Run both until one ends, then stop the other; neither is restarted. Return the exit code."""
    import signal
    import threading

    from kb.core.settings import read

    settings = read()
    asked = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: asked.set())
    environment = os.environ | addresses(settings)
    processes = {"engine": start("serve", environment), "MCP server": start("mcp", environment)}
    try:
        while not asked.wait(LOOK_SECONDS):
            for name, process in processes.items():
                if process.poll() is not None:
                    print(f"kb: the {name} ended ({ending(process)}), so everything stops.", file=sys.stderr)
                    return process.returncode if process.returncode > 0 else STOPPED_ALONE
        return 0
    finally:
        stop(processes)


def addresses(settings: "Settings") -> dict[str, str]:
    """Settings of both processes: the MCP server uses the engine that is started with it."""
    port = settings.port or free_port(settings.host)
    return {"KB_PORT": str(port), "KB_ENGINE_URL": reached(settings.host, port)}


def free_port(host: str) -> int:
    """A port that is free now: both processes must know it before the engine listens."""
    import socket

    with socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        return int(probe.getsockname()[1])


def start(name: str, environment: dict[str, str]) -> "Popen[bytes]":
    import subprocess

    # -P: no module is imported from the current folder.
    return subprocess.Popen([sys.executable, "-P", "-m", "kb.cli.main", name], env=environment)


def stop(processes: "dict[str, Popen[bytes]]") -> None:
    import subprocess

    # The MCP server first, so that no call of an agent finds the engine gone.
    for process in reversed(processes.values()):
        if process.poll() is None:
            process.terminate()
    for name, process in processes.items():
        try:
            process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            print(f"kb: the {name} did not stop within {PATIENCE_SECONDS} s and is ended.", file=sys.stderr)
            process.kill()
            process.wait()


def ending(process: "Popen[bytes]") -> str:
    code = process.returncode
    return f"exit code {code}" if code >= 0 else f"signal {-code}"
