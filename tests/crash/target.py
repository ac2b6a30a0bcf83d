"""The engine that is killed, and a client that bears it."""

import http.client
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
from pathlib import Path
from typing import Any

from support import Http, Reply

START_SECONDS = 60
TRACEBACK = re.compile(r"^Traceback.*?^\S*(?:Error|Exception)\b[^\n]*", re.MULTILINE | re.DOTALL)


class Target:
    """`kb serve` on one data folder and one port, however often it is killed."""

    def __init__(self, folder: Path) -> None:
        self.data_dir = folder / "data"
        self.kills = 0
        self._folder = folder
        self._starts = 0
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self.http = Http(f"http://127.0.0.1:{self.port}")
        self.start()

    def start(self) -> None:
        """Returns before it listens: a kill may also hit an engine that is starting."""
        self._starts += 1
        environment = {name: value for name, value in os.environ.items() if not name.startswith("KB_")}
        environment |= {"KB_DATA_DIR": str(self.data_dir), "KB_PORT": str(self.port), "KB_LOG_LEVEL": "WARNING"}
        with (self._folder / f"engine-{self._starts}.log").open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "kb.cli.main", "serve"], stdout=log, stderr=log, env=environment
            )

    def kill(self) -> None:
        """No warning, no time to finish anything."""
        if self._process.poll() is None:
            self._process.kill()
            self.kills += 1
        self._process.wait()

    def stop(self) -> int:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        return self._process.wait(60)

    def until_ready(self) -> None:
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            if self._process.poll() is not None:
                break
            try:
                if self.http("GET", "/api/v1/status").json["health"]["status"] == "healthy":
                    return
            except OSError:
                pass
            time.sleep(0.05)
        raise AssertionError("the engine did not come back:\n" + self._last_log())

    def tracebacks(self) -> list[str]:
        """What an engine logged as an unexpected failure, over all its lives."""
        logs = sorted(self._folder.glob("engine-*.log"))
        return [found for log in logs for found in TRACEBACK.findall(log.read_text(errors="replace"))]

    def _last_log(self) -> str:
        return (self._folder / f"engine-{self._starts}.log").read_text(errors="replace")[-3000:]


class Client:
    """Asks until there is an answer. `unanswered` counts requests of which nobody knows whether they happened."""

    def __init__(self, http: Http, stop: threading.Event) -> None:
        self._http = http
        self._stop = stop
        self.unanswered = 0

    def once(self, method: str, path: str, body: Any = None, **given: Any) -> Reply | None:
        """The answer; None when the connection broke or the engine asked for patience."""
        try:
            reply = self._http(method, path, body, **given)
        except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
            refused = isinstance(getattr(error, "reason", None), ConnectionRefusedError)
            self.unanswered += not refused
            self._stop.wait(0.05)
            return None
        if reply.status == 503:
            self._stop.wait(0.1)
            return None
        return reply

    def until_answered(self, method: str, path: str, body: Any = None, **given: Any) -> Reply:
        while not self._stop.is_set():
            if reply := self.once(method, path, body, **given):
                return reply
        raise AssertionError("the run was stopped before this was answered")


class Killer:
    """Kills when the work has come to certain points, and a random moment later."""

    def __init__(self, target: Target, seed: int, kills: int) -> None:
        self._target = target
        self._chance = random.Random(f"{seed} killer")
        during = kills - kills // 5  # the others hit an engine that works off its queue
        self.points = sorted(self._chance.random() * 0.95 for _ in range(during))
        self.later = kills - during

    def strike(self) -> None:
        time.sleep(self._chance.random() * 0.3)
        self._target.kill()
        self._target.start()
        if self._chance.random() < 0.6:
            self._target.until_ready()
        else:
            time.sleep(self._chance.random() * 2)
