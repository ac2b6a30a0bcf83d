"""What the command line's tests share: the real command in a process of its own, on a pipe or on a terminal."""

import json
import os
import pty
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

COMMAND = [sys.executable, "-m", "kb.cli.main"]


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass(frozen=True)
class Kb:
    """Runs `kb` against one engine, in a folder of its own."""

    url: str
    folder: Path
    environment: dict[str, str] = field(default_factory=dict)

    def __call__(self, *words: str, stdin: bytes | str = b"", **environment: str) -> Ran:
        done = subprocess.run(
            [*COMMAND, *words],
            input=stdin.encode() if isinstance(stdin, str) else stdin,
            env=self._environment(environment),
            cwd=self.folder,
            capture_output=True,
            check=False,
            timeout=120,
        )
        return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())

    def begin(self, *words: str) -> "subprocess.Popen[str]":
        """The same without waiting for its end; an interrupt reaches it as it would from a terminal."""
        return subprocess.Popen(
            [*COMMAND, *words],
            cwd=self.folder,
            env=self._environment({}),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=heed_interrupts,
        )

    def on_terminal(self, *words: str, typed: str = "", **environment: str) -> Ran:
        """The same with a terminal for all three streams; what is on the screen comes as `out`."""
        master, slave = pty.openpty()
        if typed:
            os.write(master, typed.encode())
        process = subprocess.Popen(
            [*COMMAND, *words],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=self._environment({"TERM": "xterm", "COLUMNS": "60", **environment}),
            cwd=self.folder,
        )
        os.close(slave)
        shown = b""
        while True:
            try:
                block = os.read(master, 65536)
            except OSError:  # Linux's way to say that the other side is closed
                break
            if not block:
                break
            shown += block
        os.close(master)
        return Ran(process.wait(60), shown.decode().replace("\r\n", "\n"), "")

    def _environment(self, given: dict[str, str]) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("KB_")}
        return {**kept, "KB_ENGINE_URL": self.url, **self.environment, **given}


def heed_interrupts() -> None:
    """A shell starts what it runs in the background deaf to interrupts; a person at a terminal is not deaf."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.fixture
def kb(engine_url: str, tmp_path: Path) -> Kb:
    return Kb(engine_url, tmp_path)


@pytest.fixture
def tag() -> str:
    """A tag that only this test uses: the engine is shared."""
    return f"tag-{uuid.uuid4().hex[:12]}"


@dataclass
class Stub:
    """A server for what a real engine cannot show; remembers what it was sent."""

    url: str
    seen: list[tuple[str, str, dict[str, str], bytes]]


Serve = Callable[..., Stub]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Start a server that gives one fixed answer to everything."""
    running = []

    def start(body: bytes = b"{}", status: int = 200, version: str | None = "3.0.0", wait: float = 0) -> Stub:
        seen: list[tuple[str, str, dict[str, str], bytes]] = []
        stop = threading.Event()

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                sent = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                seen.append((self.command, self.path, {k.lower(): v for k, v in self.headers.items()}, sent))
                stop.wait(wait)
                self.send_response(status)
                if version is not None:
                    self.send_header("X-KB-Version", version)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_PATCH = do_DELETE = answer  # noqa: N815

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        running.append((server, thread, stop))
        return Stub(f"http://127.0.0.1:{server.server_port}", seen)

    yield start
    for server, thread, stop in running:
        stop.set()
        server.shutdown()
        thread.join()
        server.server_close()
