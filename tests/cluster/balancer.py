"""HAProxy with the configuration that kb ships, before the engines."""

import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from crash.target import Target
from support import Http

CONFIGURATION = Path(__file__).parents[2] / "containers" / "haproxy.cfg"
SLOTS = 3  # engines that the configuration has


class Balancer:
    def __init__(self, engines: Sequence[Target], port: int, log: Path) -> None:
        self.http = Http(f"http://127.0.0.1:{port}")
        addresses = [engine.http.url.removeprefix("http://") for engine in engines]
        addresses += ["127.0.0.1:9"] * (SLOTS - len(addresses))  # where nothing answers
        environment = {**os.environ, "BIND": f"127.0.0.1:{port}"}
        environment |= {f"ENGINE_{number}": address for number, address in enumerate(addresses, 1)}
        with log.open("wb") as stream:
            self._process = subprocess.Popen(
                ["haproxy", "-db", "-f", CONFIGURATION], stdout=stream, stderr=stream, env=environment
            )

    def until_ready(self, seconds: float = 30) -> None:
        """Until some engine answers through it."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                if self.http("GET", "/health").status == 200:
                    return
            except OSError:
                pass
            time.sleep(0.05)
        raise AssertionError("no engine answers behind the load balancer")

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
