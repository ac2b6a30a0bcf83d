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
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kb.core.settings import Settings
from postgres import PostgresServer
from support import Http, Reply

START_SECONDS = 180
TRACEBACK = re.compile(r"^Traceback.*?^\S*(?:Error|Exception)\b[^\n]*", re.MULTILINE | re.DOTALL)


class Target:
    """`kb serve` on one data folder and one port, however often it is killed."""

    def __init__(
        self, folder: Path, database_url: str = "", host: str = "127.0.0.1", program: Sequence[str] = ()
    ) -> None:
        """`program` starts the interpreter, perhaps on another machine, where the engine listens on `host`."""
        self.settings = Settings(data_dir=folder / "data", database_url=database_url, name="crash")
        self.kills = 0
        self._folder = folder
        self._starts = 0
        self._host = host
        self._program = program
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self.http = Http(f"http://{host}:{self.port}")
        self.start()

    def start(self) -> None:
        """Returns before it listens: a kill may also hit an engine that is starting."""
        self._starts += 1
        environment = {name: value for name, value in os.environ.items() if not name.startswith("KB_")}
        environment |= {"KB_DATA_DIR": str(self.settings.data_dir), "KB_PORT": str(self.port)}
        environment |= {"KB_DATABASE_URL": self.settings.database_url, "KB_NAME": self.settings.name}
        environment |= {"KB_LOG_LEVEL": "WARNING", "KB_HOST": self._host, "KB_ALLOWED_HOSTS": self._host}
        with (self._folder / f"engine-{self._starts}.log").open("wb") as log:
            self._process = subprocess.Popen(
                [*self._program, sys.executable, "-m", "kb.cli.main", "serve"], stdout=log, stderr=log, env=environment
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
        if reply.status in (502, 503, 504):  # 502 and 504 come from a load balancer whose engine went away
            self.unanswered += reply.status != 503 or b'"in_doubt":true' in reply.body.replace(b" ", b"")
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

    def __init__(
        self, target: Target, seed: int, kills: int, server: PostgresServer | None = None, outages: int = 0
    ) -> None:
        self._target = target
        self._server = server
        self.outages = 0  # of the database server so far
        self._chance = random.Random(f"{seed} killer")
        during = kills - kills // 5  # the others hit an engine that works off its queue
        self._targets = ["engine"] * during + ["server"] * outages
        self._chance.shuffle(self._targets)
        self.points = sorted(self._chance.random() * 0.95 for _ in self._targets)
        self.later = kills - during

    def strike(self) -> None:
        time.sleep(self._chance.random() * 0.3)
        if self._server is not None and self._targets and self._targets.pop() == "server":
            self._server.kill()
            time.sleep(self._chance.random() * 2)
            self._server.start()
            self.outages += 1
            return
        self._target.kill()
        self._target.start()
        if self._chance.random() < 0.6:
            self._target.until_ready()
        else:
            time.sleep(self._chance.random() * 2)
