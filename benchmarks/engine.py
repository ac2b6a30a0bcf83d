"""A real engine on a free port with a data folder of its own, and a client that keeps its connection."""

import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from benchmarks.wire import Wire
from kb.client.calls import Call, Calls
from kb.client.endpoint import Endpoint, read_answer
from kb.core.errors import Unavailable
from kb.core.settings import Settings
from kb.core.types import Json

ADDRESS = re.compile(r"listens on (http://\S+)")
START_SECONDS = 600  # a million chunks take their time to load
CLIENT_THREADS = 8


class Note(NamedTuple):
    text: str
    title: str | None = None
    tags: tuple[str, ...] = ()
    source_path: str | None = None


@dataclass(frozen=True, slots=True)
class Filled:
    """How adding went."""

    notes: int
    chunks: int
    seconds: float  # from the first request until the last note was searchable


class Connection(Calls[Json]):
    """One connection to the engine, kept alive."""

    def __init__(self, url: str) -> None:
        self._endpoint = Endpoint.of(Settings(engine_url=url))
        self._wire = Wire(self._endpoint.host, self._endpoint.port)
        self.took_ms = 0.0  # the last call, on the wire

    def send(self, call: Call) -> Json:
        answer = self._wire.ask(call.method, call.target, call.body, **dict(self._endpoint.headers))
        self.took_ms = answer.took_ms
        return read_answer(self._endpoint, answer.status, answer.header("X-KB-Version"), answer.body)

    def close(self) -> None:
        self._wire.close()


class KbProcess:
    """A command of kb that serves, in a process of its own."""

    def __init__(self, command: str, log: Path, **settings: str) -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("KB_")}
        environment |= {"KB_LOG_LEVEL": "WARNING", **settings}
        with log.open("wb") as stream:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "kb.cli.main", command], stdout=stream, stderr=stream, env=environment
            )
        try:
            self.url = self._address(log)
        except BaseException:
            self.stop()
            raise

    @property
    def pid(self) -> int:
        return self._process.pid

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        self._process.wait(60)

    def _address(self, log: Path) -> str:
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end and self._process.poll() is None:
            if found := ADDRESS.search(log.read_text(encoding="utf-8")):
                return found[1]
            time.sleep(0.05)
        raise RuntimeError(f"it did not start:\n{log.read_text(encoding='utf-8')}")


class EngineProcess(KbProcess):
    """`kb serve`, ready to answer."""

    def __init__(self, data_dir: Path, **settings: str) -> None:
        self.data_dir = data_dir
        own = {"KB_DATA_DIR": str(data_dir), "KB_PORT": "0"} | settings
        super().__init__("serve", data_dir.parent / f"{data_dir.name}.log", **own)
        try:
            self._until_healthy()
        except BaseException:
            self.stop()
            raise

    def connect(self) -> Connection:
        return Connection(self.url)

    def _until_healthy(self) -> None:
        connection = self.connect()
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            if connection.status()["health"]["status"] == "healthy":
                connection.close()
                return
            time.sleep(0.1)
        raise RuntimeError("the engine did not become healthy")


def until_read_ahead(engine: EngineProcess) -> None:
    """Wait until the engine has read words ahead, which it does on the side after its start."""
    while not _has_words_ready(engine):
        time.sleep(0.5)


def _has_words_ready(engine: EngineProcess) -> bool:
    with urllib.request.urlopen(f"{engine.url}/metrics") as answer:
        found = re.search(r"^kb_words_ready (\S+)$", answer.read().decode(), re.MULTILINE)
    if found is None:
        raise RuntimeError("the engine does not say whether it has read words ahead")
    return float(found[1]) > 0


@contextmanager
def running_engine(data_dir: Path, **settings: str) -> Iterator[EngineProcess]:
    engine = EngineProcess(data_dir, **settings)
    try:
        yield engine
    finally:
        engine.stop()


def fill(engine: EngineProcess, notes: Sequence[Note]) -> Filled:
    """Add notes from several clients at once and wait until all can be found."""
    started = time.perf_counter()

    def add(share: Sequence[Note]) -> None:
        connection = engine.connect()
        for note in share:
            _submit(connection, note)
        connection.close()

    with ThreadPoolExecutor(CLIENT_THREADS) as clients:
        list(clients.map(add, [notes[first::CLIENT_THREADS] for first in range(CLIENT_THREADS)]))
    status = _until_idle(engine)
    return Filled(len(notes), int(status["chunks"]), time.perf_counter() - started)


def _submit(connection: Connection, note: Note) -> None:
    while True:
        try:
            connection.add_note(note.text, title=note.title, tags=note.tags, source_path=note.source_path)
            return
        except Unavailable:  # the queue is full: its way of asking for patience
            time.sleep(0.2)


def _until_idle(engine: EngineProcess) -> Json:
    connection = engine.connect()
    while True:
        status = connection.status()
        queue = status["queue"]
        if queue["failed"]:
            raise RuntimeError(f"{queue['failed']} notes could not be added")
        if not queue["queued"] and not queue["running"]:
            connection.close()
            return status
        time.sleep(0.2)
