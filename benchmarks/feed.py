"""A bulk import that runs for as long as it is wanted: notes, and documents of many pages, through REST.

There is always something in the queue, and never much: two connections send notes in blocks and wait for the last one
of each, a third sends one document after the other. Bodies are made beforehand, so that sending costs little.
"""

import http.client
import json
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from benchmarks import texts
from benchmarks.engine import EngineProcess
from kb.client.endpoint import Endpoint
from kb.core.settings import Settings

BLOCK = 32  # notes that one connection sends before it waits for them
DOCUMENTS = 4
WAIT_SECONDS = 60
BOUNDARY = "feed-boundary"


class Message(NamedTuple):
    """A request whose body is ready."""

    target: str
    content_type: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Fed:
    """How far an import came."""

    passages: int  # written, published already or not
    seconds: float

    @property
    def rate(self) -> float:
        return self.passages / self.seconds if self.seconds else 0.0


class Sender:
    """One connection, kept open."""

    def __init__(self, url: str) -> None:
        self._endpoint = Endpoint.of(Settings(engine_url=url))
        self._http = http.client.HTTPConnection(self._endpoint.host, self._endpoint.port, timeout=120)
        self._http.connect()

    def send(self, message: Message) -> tuple[int, bytes]:
        headers = dict(self._endpoint.headers) | {"Content-Type": message.content_type}
        self._http.request("POST", message.target, message.body, headers)
        answer = self._http.getresponse()
        return answer.status, answer.read()

    def close(self) -> None:
        self._http.close()


class Feed:
    """What is left of the material; each import goes on where the last one stopped."""

    def __init__(self, notes: Sequence[str], documents: Sequence[tuple[str, bytes]]) -> None:
        self._notes = iter(notes)
        self._documents = _endless(documents)
        self._taking = threading.Lock()

    def run(self, engine: EngineProcess, stop: threading.Event) -> Fed:
        """Import until told to stop. Counted is what was written by then; the rest still ends."""
        senders = [
            threading.Thread(target=target, args=(engine.url, stop))
            for target in (self._send_notes, self._send_notes, self._send_documents)
        ]
        before, started = _passages(engine), time.perf_counter()
        for sender in senders:
            sender.start()
        stop.wait()
        fed = Fed(_passages(engine) - before, time.perf_counter() - started)
        for sender in senders:
            sender.join()
        return fed

    def _send_notes(self, url: str, stop: threading.Event) -> None:
        sender = Sender(url)
        while not stop.is_set():
            with self._taking:
                block = [next(self._notes) for _ in range(BLOCK)]
            for number, text in enumerate(block, 1):
                target = f"/api/v1/jobs?wait={WAIT_SECONDS}" if number == BLOCK else "/api/v1/jobs"
                _accepted(sender.send(Message(target, "application/json", json.dumps({"text": text}).encode())))
        sender.close()

    def _send_documents(self, url: str, stop: threading.Event) -> None:
        while not stop.is_set():
            sender = Sender(url)
            name, data = next(self._documents)
            body = (
                f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'.encode()
                + data
                + f"\r\n--{BOUNDARY}--\r\n".encode()
            )
            target = f"/api/v1/jobs?wait={WAIT_SECONDS}"
            _accepted(sender.send(Message(target, f"multipart/form-data; boundary={BOUNDARY}", body)))
            sender.close()


def documents() -> list[tuple[str, bytes]]:
    """Reports of 5 to 31 pages where the evaluation sets are, otherwise long texts made of notes."""
    reports = sorted((texts.data_dir() / "financebench").glob("*.pdf"), key=lambda path: path.stat().st_size)
    if reports:
        return [(path.name, path.read_bytes()) for path in reports[:DOCUMENTS]]
    made = texts.notes(100 * DOCUMENTS)
    return [(f"{at}.txt", "\n\n".join(made[at::DOCUMENTS]).encode()) for at in range(DOCUMENTS)]


def _endless(documents: Sequence[tuple[str, bytes]]) -> Iterator[tuple[str, bytes]]:
    """Each again and again, each time a little different: the same bytes would be the same document."""
    number = 0
    while True:
        for name, data in documents:
            number += 1
            yield f"{number}-{name}", data + f"\n% {number}\n".encode()


def _accepted(answer: tuple[int, bytes]) -> None:
    status, body = answer
    if status != http.client.ACCEPTED or b'"failed"' in body:
        raise RuntimeError(f"the import was refused: {status} {body[:300]!r}")


def _passages(engine: EngineProcess) -> int:
    """Straight from the file: a document's passages are in it long before they are published."""
    connection = sqlite3.connect(f"file:{Path(engine.data_dir / 'kb.db')}?mode=ro", uri=True)
    try:
        return int(connection.execute("SELECT count(*) FROM chunks").fetchone()[0])
    finally:
        connection.close()
