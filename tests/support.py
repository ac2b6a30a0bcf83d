"""Real servers in processes of their own, a plain HTTP client for them; and what the threads of this one did."""

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from kb.core.settings import Settings
from kb.index import terms
from kb.store.open import Store, open_store

Value = TypeVar("Value")

TEST_DATABASE_URL = "TEST_DATABASE_URL"  # of the PostgreSQL server that engines of tests use; unset: SQLite
ADDRESS = re.compile(rb"listens on (http://\S+)")


@dataclass
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Http:
    """A plain HTTP client for one engine."""

    url: str
    headers: dict[str, str] = field(default_factory=dict)

    def __call__(self, method: str, path: str, body: Any = None, *, raw: bytes | None = None, **headers: str) -> Reply:
        data = raw if body is None else json.dumps(body).encode()
        sent = {"Content-Type": "application/json"} if body is not None else {}
        sent |= self.headers | {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(self.url + path, data, sent, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return Reply(answer.status, dict(answer.headers), answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return Reply(error.code, dict(error.headers), error.read())

    def add_note(self, text: str, **given: Any) -> int:
        """Add a note and wait until it can be found; its id."""
        reply = self("POST", "/api/v1/jobs?wait=60", {"text": text, **given})
        assert reply.json.get("status") == "completed", reply.body
        return int(reply.json["document_id"])

    def add_file(self, filename: str, data: bytes, fields: list[tuple[str, str]] = [], wait: int = 60) -> Reply:  # noqa: B006
        boundary = "boundary-of-the-test"
        parts = [
            f'--{boundary}\r\nContent-Disposition: form-data; name="{k}"\r\n\r\n{v}\r\n'.encode() for k, v in fields
        ]
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{filename}"\r\n\r\n'.encode()
        raw = b"".join(parts) + head + data + f"\r\n--{boundary}--\r\n".encode()
        kind = f"multipart/form-data; boundary={boundary}"
        return self("POST", f"/api/v1/jobs?wait={wait}", raw=raw, Content_Type=kind)

    def ended(self, job_id: str) -> Any:
        """The job once it has ended."""
        return eventually(lambda: (job := self.job(job_id))["finished_at"] and job)

    def job(self, job_id: str) -> Any:
        return self("GET", f"/api/v1/jobs/{job_id}").json

    def search(self, query: str, **given: Any) -> Any:
        reply = self("POST", "/api/v1/search", {"query": query, **given})
        assert reply.status == 200, reply.body
        return reply.json


def eventually(condition: Callable[[], Value], seconds: float = 60) -> Value:
    """The first true value of a condition; a test fails if none comes in time."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"not within {seconds:g} seconds"
        time.sleep(0.02)
    return value


class KbProcess:
    """A command of kb that serves, in a process of its own. `program` starts the interpreter."""

    program: tuple[str, ...] = ()

    def __init__(self, command: str, log: Path, arguments: Sequence[str] = (), **settings: str) -> None:
        self.log = log
        environment = {name: value for name, value in os.environ.items() if not name.startswith("KB_")} | settings
        with self.log.open("wb") as stream:
            self.process = subprocess.Popen(
                [*self.program, sys.executable, "-m", "kb.cli.main", command, *arguments],
                stdout=stream,
                stderr=stream,
                env=environment,
            )
        self.url = self._address()

    def _address(self) -> str:
        for _ in range(600):
            if found := ADDRESS.search(self.log.read_bytes()):
                return found[1].decode()
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        raise AssertionError(f"it did not start:\n{self.log.read_text()}")

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        """The exit code, also of one that was stopped before."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        return self.process.wait(30)


def database_of(data_dir: Path) -> dict[str, str]:
    """Settings of the database that belongs to a data folder: none, or a schema of the tests' PostgreSQL server."""
    url = os.environ.get(TEST_DATABASE_URL)
    name = f"t{hashlib.sha256(str(data_dir).encode()).hexdigest()[:20]}"
    return {"KB_DATABASE_URL": url, "KB_NAME": name} if url else {}


def settings_of(data_dir: Path) -> Settings:
    """What an engine with this data folder is started with, within the test's own process."""
    database = database_of(data_dir)
    return Settings(
        data_dir=data_dir, port=0, database_url=database.get("KB_DATABASE_URL", ""), name=database.get("KB_NAME", "kb")
    )


@contextmanager
def stored(data_dir: Path) -> Iterator[Store]:
    """The store of an engine that is not running, or of none yet."""
    data_dir.mkdir(mode=0o700, exist_ok=True)
    store = open_store(settings_of(data_dir), terms.index_terms)
    store.migrate()
    try:
        yield store
    finally:
        store.database.close()


class EngineProcess(KbProcess):
    """`kb serve`."""

    def __init__(self, data_dir: Path, arguments: Sequence[str] = (), **settings: str) -> None:
        log = data_dir.parent / f"{data_dir.name}.log"
        own = {"KB_DATA_DIR": str(data_dir), "KB_PORT": "0"} | database_of(data_dir)
        super().__init__("serve", log, arguments, **own | settings)


StartEngine = Callable[..., EngineProcess]  # settings by name; the test's own data folder unless another is given


def ticks() -> dict[str, tuple[int, int]]:
    """Processor time, in hundredths of a second, and priority of each thread of this process."""
    found = {}
    for thread in Path("/proc/self/task").iterdir():
        fields = (thread / "stat").read_text().rpartition(")")[2].split()
        found[thread.name] = (int(fields[11]) + int(fields[12]), int(fields[16]))
    return found
