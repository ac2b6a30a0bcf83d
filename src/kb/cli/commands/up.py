"""`kb up`: engine and MCP server together, each in a process of its own, until one of them or a person ends it.

With `--detach` another `kb up` does that without a terminal, and this one returns when both servers answer.
"""

import argparse
import os
import sys
from typing import TYPE_CHECKING

from kb.cli.options import Commands, command
from kb.core.endpoint import reached

if TYPE_CHECKING:
    from subprocess import Popen
    from threading import Event

    from kb.cli.background.running import Running
    from kb.core.settings import Settings

EXAMPLES = """
kb up
kb up --detach
KB_DATA_DIR=~/kb-work KB_PORT=8100 KB_MCP_PORT=3100 kb up
"""
PATIENCE_SECONDS = 30  # for a process that was asked to stop
LOOK_SECONDS = 0.2
STOPPED_ALONE = 1


def register(commands: Commands) -> None:
    parser = command(commands, "up", run, EXAMPLES, json=False)
    parser.add_argument("--detach", action="store_true", help="go on without this terminal; see kb logs and kb down")
    parser.add_argument(
        "--log", metavar="FILE", help="append what both say to FILE, which stays below 5 MB, and show nothing"
    )


def run(args: argparse.Namespace) -> int:
    from kb.cli.background import running
    from kb.core.settings import read

    settings = read()
    if args.detach:
        from kb.cli.background.detach import detach

        return detach(settings)
    with running.claimed(settings.data_dir):
        return supervise(settings, args.log)


def supervise(settings: "Settings", log_file: str | None) -> int:
    """Run both until one ends, then stop the other; neither is restarted. Return the exit code."""
    from kb.cli.background import log, running

    environment = addresses(settings)
    asked = _heed_signals()
    output = None
    if log_file:
        output = log.opened(log_file)
        os.dup2(output, sys.stderr.fileno())  # what the supervisor says, too
    processes = {
        "engine": start("serve", os.environ | environment, output),
        "MCP server": start("mcp", os.environ | environment, output),
    }
    try:
        running.write(settings.data_dir, _told(processes, environment, settings))
        while not asked.wait(LOOK_SECONDS):
            for name, process in processes.items():
                if process.poll() is not None:
                    print(f"kb: the {name} ended ({ending(process)}), so everything stops.", file=sys.stderr)
                    return process.returncode if process.returncode > 0 else STOPPED_ALONE
            if log_file:
                log.bound(log_file)
        return 0
    finally:
        stop(processes)
        running.remove(settings.data_dir)


def _heed_signals() -> "Event":
    import signal
    import threading

    asked = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: asked.set())
    return asked


def _told(processes: "dict[str, Popen[bytes]]", environment: dict[str, str], settings: "Settings") -> "Running":
    from kb.cli.background import running

    return running.Running(
        os.environ.get(running.STARTED_BY, "terminal"),
        running.process(os.getpid()),
        [running.process(process.pid) for process in processes.values()],
        environment["KB_ENGINE_URL"],
        reached(settings.mcp_host, int(environment["KB_MCP_PORT"])),
    )


def addresses(settings: "Settings") -> dict[str, str]:
    """Settings of both processes: the MCP server uses the engine that is started with it."""
    port = settings.port or free_port(settings.host)
    mcp_port = settings.mcp_port or free_port(settings.mcp_host)
    return {
        "KB_PORT": str(port),
        "KB_ENGINE_URL": reached(settings.host, port),
        "KB_MCP_PORT": str(mcp_port),
    }


def free_port(host: str) -> int:
    """A port that is free now: both processes must know it before the engine listens."""
    import socket

    with socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        return int(probe.getsockname()[1])


def start(name: str, environment: dict[str, str], output: int | None = None) -> "Popen[bytes]":
    """Start a command of kb; what it says goes to the descriptor, or else where this process writes."""
    import subprocess

    # -P: no module is imported from the current folder.
    words = [sys.executable, "-P", "-m", "kb.cli.main", name]
    return subprocess.Popen(words, env=environment, stdout=output, stderr=output)


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
