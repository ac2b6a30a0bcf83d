"""One stream of events about all jobs and documents."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from support import Http, StartEngine

SECONDS = 40


class Stream:
    """An open stream, read line by line."""

    def __init__(self, url: str, **headers: str) -> None:
        place = urlsplit(url)
        self._socket = socket.create_connection((place.hostname or "", place.port or 0), timeout=30)
        sent = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        self._socket.sendall(f"GET /api/v1/events HTTP/1.1\r\nHost: {place.netloc}\r\n{sent}\r\n".encode())
        self._lines = self._socket.makefile("rb")
        self.status = int(self._lines.readline().split()[1])
        self.headers = self._head()
        self.last_id = ""

    def _head(self) -> dict[str, str]:
        head = {}
        while line := self._lines.readline().strip():
            name, _, value = line.decode().partition(":")
            head[name.lower()] = value.strip()
        return head

    def events(self) -> Iterator[tuple[str, Any]]:
        """Kind and data of each event, as they come."""
        kind, until = "", time.monotonic() + SECONDS
        for raw in self._lines:
            assert time.monotonic() < until, "nothing but signs of life"
            name, _, value = raw.decode().rstrip("\r\n").partition(": ")
            if name == "id":
                self.last_id = value
            elif name == "event":
                kind = value
            elif name == "data":
                yield kind, json.loads(value)

    def until(self, kind: str, action: str) -> list[tuple[str, Any]]:
        """Every event up to the first of this kind."""
        seen = []
        for event in self.events():
            seen.append(event)
            if (event[0], event[1]["action"]) == (kind, action):
                return seen
        raise AssertionError(seen)

    def close(self) -> None:
        self._lines.close()
        self._socket.close()


@contextmanager
def followed(url: str, **headers: str) -> Iterator[Stream]:
    stream = Stream(url, **headers)
    try:
        yield stream
    finally:
        stream.close()


def test_jobs_and_documents_are_followed_from_beginning_to_end(start_engine: StartEngine) -> None:
    http = Http(start_engine().url)
    with followed(http.url) as stream:
        assert (stream.status, stream.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
        accepted = http("POST", "/api/v1/jobs?wait=60", {"text": "a wobbegong to follow"}).json
        job, document = accepted["job_id"], accepted["document_id"]
        assert [
            (kind, data["action"]) for kind, data in stream.until("job", "completed") if data["id"] in (job, document)
        ] == [("job", "queued"), ("job", "running"), ("document", "added"), ("job", "completed")]
        http("POST", f"/api/v1/documents/{document}/tags", {"add": ["followed"]})
        assert stream.until("document", "tags") == [("document", {"id": document, "action": "tags"})]
        http("PATCH", f"/api/v1/notes/{document}", {"text": "a wobbegong that was followed"})
        assert stream.until("document", "updated")[-1] == ("document", {"id": document, "action": "updated"})
        http("DELETE", f"/api/v1/documents/{document}")
        assert stream.until("document", "deleted") == [("document", {"id": document, "action": "deleted"})]
        refused = http.add_file("broken.pdf", b"%PDF-1.4 nothing").json
        assert ("job", {"id": refused["job_id"], "action": "failed"}) in stream.until("job", "failed")
        http("DELETE", "/api/v1/documents?confirm=DELETE%20ALL")
        assert stream.until("reset", "reset")


def test_what_an_event_tells_can_be_found(http: Http) -> None:
    with followed(http.url) as stream:
        http("POST", "/api/v1/jobs", {"text": "a hammerhead that is searchable when it is told"})
        (_, told) = stream.until("document", "added")[-1]
        found = http.search("hammerhead searchable told", mode="fts")["results"]
        assert told["id"] in [hit["document_id"] for hit in found]


def test_a_broken_connection_is_told_whether_it_missed_anything(start_engine: StartEngine) -> None:
    http = Http(start_engine().url)
    with followed(http.url) as stream:
        http.add_note("an epaulette that was seen")
        stream.until("job", "completed")
        seen = stream.last_id
    with followed(http.url, Last_Event_ID=seen) as again:
        http.add_note("an epaulette that follows")
        assert next(again.events())[0] == "job"
    with followed(http.url, Last_Event_ID=seen) as late:
        assert next(late.events()) == ("reset", {"id": None, "action": "reset"})
    with followed(http.url, Last_Event_ID="of-another-run") as other:
        assert next(other.events())[0] == "reset"


def test_streams_are_few_and_hold_no_thread(start_engine: StartEngine) -> None:
    engine = start_engine()
    http = Http(engine.url)
    streams = [Stream(http.url) for _ in range(100)]
    try:
        assert {stream.status for stream in streams} == {200}
        refused = http("GET", "/api/v1/events")
        assert (refused.status, refused.json["error"]["code"]) == (503, "unavailable")
        started = time.monotonic()
        assert http("GET", "/api/v1/documents").status == 200
        assert time.monotonic() - started < 5
        http.add_note("a megamouth for a hundred readers")
        assert all(stream.until("document", "added") for stream in streams)
    finally:
        for stream in streams:
            stream.close()
    for _ in range(100):
        if "kb_event_streams 0.0" in http("GET", "/metrics").body.decode():
            break
        time.sleep(0.1)
    else:
        raise AssertionError("streams whose clients are gone still hold their place")


def test_events_need_the_key(start_engine: StartEngine) -> None:
    http = Http(start_engine(KB_API_KEY="wobbegong").url)
    assert http("GET", "/api/v1/events").status == 401
    with followed(http.url, Authorization="Bearer wobbegong") as stream:
        assert stream.status == 200


def test_every_writer_is_told_once(start_engine: StartEngine) -> None:
    http = Http(start_engine().url)
    with followed(http.url) as stream:
        ids: list[int] = []
        threads = [
            threading.Thread(target=lambda n=n: ids.append(http.add_note(f"goblin shark number {n}")))
            for n in range(20)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        told: list[int] = []
        for kind, data in stream.events():
            if kind == "document":
                told.append(data["id"])
            if len(told) == len(threads):
                break
        assert sorted(told) == sorted(ids)


def test_a_stream_does_not_keep_the_engine_from_stopping(start_engine: StartEngine) -> None:
    engine = start_engine()
    Http(engine.url).add_note("a sawshark to wait for")
    with followed(engine.url) as stream:
        assert stream.status == 200
        started = time.monotonic()
        assert engine.stop() == 0
        assert time.monotonic() - started < 4.5
        assert "Traceback" not in engine.log.read_text()
