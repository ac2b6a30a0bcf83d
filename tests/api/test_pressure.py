"""More than the engine can take at once is refused at once, and what it has taken is not disturbed."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from urllib.parse import urlsplit

from kb.api.app import create_app
from kb.api.follow import MAX_STREAMS
from kb.api.uploads import MAX_UPLOADS
from kb.core.settings import Settings
from kb.engine.assembly import RunningEngine
from kb.http.connections import ConnectionLimits
from kb.http.serve import address, listen, server
from kb.store.backup.archive import MOST
from kb.store.staging import STAGED_FILES
from support import Http, StartEngine, eventually

HEAD = b'--x\r\nContent-Disposition: form-data; name="file"; filename="slow.txt"\r\n\r\n'
END = b"\r\n--x--\r\n"


@contextmanager
def connection(url: str) -> Iterator[socket.socket]:
    address = urlsplit(url)
    with socket.create_connection((address.hostname, address.port), timeout=60) as opened:
        yield opened


def begin_upload(opened: socket.socket, data: bytes, length: int) -> None:
    opened.sendall(
        b"POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=x\r\n"
        + f"Content-Length: {len(HEAD) + length + len(END)}\r\n\r\n".encode()
        + HEAD
        + data
    )


def answer(opened: socket.socket) -> tuple[int, bytes]:
    head, _, body = b"".join(iter(lambda: opened.recv(65536), b"")).partition(b"\r\n\r\n")
    return int(head.split()[1]), body


def gauge(http: Http, name: str) -> float:
    lines = http("GET", "/metrics").body.decode().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(f"{name} "))


def wait_for(http: Http, name: str, value: float) -> None:
    for _ in range(400):
        if gauge(http, name) == value:
            return
    raise AssertionError((name, gauge(http, name)))


def refused(status: int, body: bytes, why: str) -> None:
    error = json.loads(body)["error"]
    assert (status, error["code"], error["retryable"]) == (503, "unavailable", True)
    assert why in error["message"]


def test_uploads_at_once_are_counted_and_one_too_many_is_refused(start_engine: StartEngine) -> None:
    http = Http(start_engine().url)
    with ExitStack() as stack:
        slow = [stack.enter_context(connection(http.url)) for _ in range(MAX_UPLOADS)]
        for number, opened in enumerate(slow):
            begin_upload(opened, b"%08d" % number, 8)
        wait_for(http, "kb_uploads", MAX_UPLOADS)
        reply = http.add_file("fast.txt", b"one too many")
        refused(reply.status, reply.body, f"{MAX_UPLOADS} files are being received")
        assert http("GET", "/health").status == 200
        slow[0].sendall(END)
        wait_for(http, "kb_uploads", MAX_UPLOADS - 1)
        assert http.add_file("fast.txt", b"there is room again").json["status"] == "completed"
    wait_for(http, "kb_uploads", 0)  # who goes away in the middle gives the place back
    assert gauge(http, "kb_staged_bytes") == 0


def test_bytes_on_their_way_in_are_bounded(start_engine: StartEngine) -> None:
    http = Http(start_engine(KB_MAX_FILE_MB="1").url)
    nearly = 2**20 - 1
    with ExitStack() as stack:
        for _ in range(STAGED_FILES):
            begin_upload(stack.enter_context(connection(http.url)), b"x" * nearly, nearly)
        wait_for(http, "kb_uploads", STAGED_FILES)
        wait_for(http, "kb_staged_bytes", STAGED_FILES * nearly)
        opened = stack.enter_context(connection(http.url))
        begin_upload(opened, b"y" * 1000, 1000)
        refused(*answer(opened), f"Files of {STAGED_FILES} MB are being received")
    wait_for(http, "kb_staged_bytes", 0)
    assert http.add_file("small.txt", b"room for everybody").json["status"] == "completed"


def test_event_streams_are_bounded_even_when_they_come_at_once(start_engine: StartEngine) -> None:
    http = Http(start_engine().url)
    text = "\n\n".join(f"Paragraph {number} takes its time to be embedded. " * 8 for number in range(2000))
    job_id = http.add_file("long.txt", text.encode(), wait=0).json["job_id"]
    ask = f"GET /api/v1/jobs/{job_id}/events HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()
    with ExitStack() as stack:
        streams = [stack.enter_context(connection(http.url)) for _ in range(MAX_STREAMS + 20)]
        for opened in streams:
            opened.sendall(ask)
        statuses = [int(opened.recv(65536).split()[1]) for opened in streams]
        assert (statuses.count(200), statuses.count(503)) == (MAX_STREAMS, 20)
        assert gauge(http, "kb_event_streams") == MAX_STREAMS
    wait_for(http, "kb_event_streams", 0)
    http("POST", f"/api/v1/jobs/{job_id}/cancel")
    assert http.ended(job_id)["status"] == "cancelled"


def test_caches_are_shown(start_engine: StartEngine) -> None:
    http = Http(start_engine().url)
    http.add_note("a note with every question that people ask")
    for number in range(5):
        http.search(f"question number {number}")
    assert gauge(http, "kb_cached_queries") == 5
    assert gauge(http, "kb_cached_postings") > 0


def test_readers_that_stall_hold_up_no_other_backup(settings: Settings) -> None:
    limits = ConnectionLimits(stalled_seconds=1, sweep_seconds=0.1)
    with listen("127.0.0.1", 0, "") as listener, RunningEngine(settings) as engine:
        running = server(create_app(engine, settings), limits, lifespan="off")
        thread = threading.Thread(target=running.run, kwargs={"sockets": [listener]})
        thread.start()
        http = Http(address("127.0.0.1", listener))
        try:
            page = b"<html><body><p>little text, many bytes</p><!--" + b"x" * 8 * 2**20 + b"--></body></html>"
            assert http.add_file("page.html", page).json["status"] == "completed"
            with ExitStack() as stack:
                for _ in range(MOST):
                    stalled = stack.enter_context(socket.socket())
                    stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                    stalled.connect(listener.getsockname())
                    stalled.sendall(b"GET /api/v1/backup HTTP/1.1\r\nHost: localhost\r\n\r\n")
                    stalled.recv(1)
                reply = http("GET", "/api/v1/backup")
                refused(reply.status, reply.body, f"{MOST} archives are being made")
                eventually(lambda: b"manifest.json" in http("GET", "/api/v1/backup").body)
            eventually(lambda: not list(settings.data_dir.glob("staging/*")))  # the copies for those that stalled
        finally:
            running.should_exit = True
            thread.join()


def test_a_client_that_goes_away_is_one_line_of_the_log(start_engine: StartEngine) -> None:
    engine = start_engine()
    http = Http(engine.url)
    for kind in (b"multipart/form-data; boundary=x", b"application/json"):
        with connection(http.url) as opened:
            head = b"POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n"
            opened.sendall(head + b"Content-Type: " + kind + b"\r\n\r\n--x\r\n")
    with connection(http.url) as opened:
        opened.sendall(b"POST /api/v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
    eventually(lambda: engine.log.read_text().count(" POST ") == 3)
    log = engine.log.read_text()
    assert log.count(" POST /api/v1/jobs 422 ") == 2
    assert log.count(" POST /api/v1/search 422 ") == 1
    assert "Traceback" not in log
