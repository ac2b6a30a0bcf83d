"""No client can keep others out: idle, slow and stalled connections end, and a full server makes room."""

import asyncio
import json
import logging
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect
from websockets.sync.client import connect

from kb.http import connections
from kb.http.connections import ConnectionLimits
from kb.http.logs import Throttle
from kb.http.serve import address, listen, server
from kb.http.websocket import SocketConnection
from support import eventually

pytestmark = pytest.mark.slow

# As short as a busy machine allows; what is not tried is far away.
PATIENT = ConnectionLimits(request_seconds=60, stalled_seconds=60, crowded_seconds=60, sweep_seconds=0.05)
GET = b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n"
POST = b"POST /body HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"


class Application:
    """Answers of every kind, and what became of them."""

    def __init__(self) -> None:
        self.release = threading.Event()  # for requests that are held
        self.held = 0
        self.ended = 0  # large answers, arrived or not
        self.app = Starlette(
            routes=[
                Route("/fast", self.fast),
                Route("/hold", self.hold),
                Route("/body", self.body, methods=["POST"]),
                Route("/early", self.early, methods=["POST"]),
                Route("/large", self.large),
                WebSocketRoute("/echo", self.echo),
                WebSocketRoute("/farewell", self.farewell),
            ]
        )

    async def fast(self, _: Request) -> Response:
        return PlainTextResponse("ok")

    async def hold(self, _: Request) -> Response:
        self.held += 1
        while not self.release.is_set():
            await asyncio.sleep(0.01)
        return PlainTextResponse("at last")

    async def body(self, request: Request) -> Response:
        return PlainTextResponse(str(len(await request.body())))

    async def early(self, _: Request) -> Response:
        return PlainTextResponse("no", 401)

    async def large(self, _: Request) -> Response:
        return StreamingResponse(self.blocks())

    async def blocks(self) -> AsyncIterator[bytes]:
        try:
            for _ in range(64):
                yield bytes(2**18)
        finally:
            self.ended += 1

    async def farewell(self, socket: WebSocket) -> None:
        await socket.accept()
        await socket.close()

    async def echo(self, socket: WebSocket) -> None:
        await socket.accept()
        with suppress(WebSocketDisconnect):
            while True:
                await socket.send_text(await socket.receive_text())


@dataclass
class Served:
    """The application behind a real port."""

    url: str
    app: Application

    @contextmanager
    def connected(self, data: bytes = b"", receive_buffer: int | None = None) -> Iterator[socket.socket]:
        with socket.socket() as opened:
            if receive_buffer:
                opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
            opened.settimeout(20)
            host, port = self.url.removeprefix("http://").split(":")
            opened.connect((host, int(port)))
            opened.sendall(data)
            yield opened

    def status(self, path: bytes = b"/fast") -> int:
        with self.connected(GET % path) as opened:
            return status(opened)


def status(opened: socket.socket) -> int:
    return int(opened.recv(65536).split()[1])


def gone(opened: socket.socket) -> bool:
    try:
        return opened.recv(1) == b""
    except ConnectionError:
        return True


def still_open(opened: socket.socket) -> bool:
    opened.setblocking(False)
    try:
        return opened.recv(1) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        opened.settimeout(20)


def drips_until_gone(opened: socket.socket) -> bool:
    for _ in range(200):
        try:
            opened.sendall(b"x")
        except OSError:
            return True
        time.sleep(0.05)
    return False


@contextmanager
def serving(limits: ConnectionLimits) -> Iterator[Served]:
    with listen("127.0.0.1", 0, "") as listener:
        app = Application()
        running = server(app.app, limits, lifespan="off", websocket=SocketConnection)
        thread = threading.Thread(target=running.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield Served(address("127.0.0.1", listener), app)
        finally:
            app.release.set()
            running.should_exit = True
            thread.join()


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """What the connections have logged."""
    monkeypatch.setattr(connections.log, "filters", [Throttle()])
    caplog.set_level(logging.INFO, "kb.http.connections")
    return lambda: [record.getMessage() for record in caplog.records if record.name == "kb.http.connections"]


def test_idle_connections_lock_nobody_out(lines: Callable[[], list[str]]) -> None:
    with serving(replace(PATIENT, connections=10)) as served, ExitStack() as stack:
        idle = [stack.enter_context(served.connected()) for _ in range(50)]
        assert [served.status() for _ in range(5)] == [200] * 5
        assert all(gone(opened) for opened in idle[:40]), "the longest idle go first"
        assert still_open(idle[-1])
    told = [line for line in lines() if "idle the longest" in line]
    assert len(told) == 10, "an attack does not fill the log"
    assert re.fullmatch(r"connection from 127.0.0.1:\d+ ended: all 10 are taken, and .* \([\d.]+ s\)", told[0])
    assert told[-1].endswith("(more like this are not logged for 60 s)")


def test_a_request_in_progress_is_never_ended_for_another_one(lines: Callable[[], list[str]]) -> None:
    with serving(replace(PATIENT, connections=3)) as served, ExitStack() as stack:
        held = [stack.enter_context(served.connected(GET % b"/hold")) for _ in range(3)]
        eventually(lambda: served.app.held == 3)
        with served.connected() as refused:
            head, _, answer = refused.recv(65536).partition(b"\r\n\r\n")
            error = json.loads(answer)["error"]
            assert (int(head.split()[1]), error["code"], error["retryable"]) == (503, "unavailable", True)
            assert gone(refused)
        assert [line for line in lines() if "refused: 3 connections have a request in progress" in line]
        served.app.release.set()
        assert [status(opened) for opened in held] == [200] * 3
        assert served.status() == 200, "an answered one gives way"


def test_a_connection_without_a_request_ends(lines: Callable[[], list[str]]) -> None:
    with (
        serving(replace(PATIENT, request_seconds=0.5)) as served,
        served.connected() as silent,
        served.connected(b"GET /fast HTTP/1.1\r\nHost: lo") as half,
    ):
        assert status(half) == 503
        assert gone(silent)
    assert [line.split("ended: ")[1] for line in sorted(lines(), key=len)] == [
        "no request within 0.5 s",
        "no whole request head within 0.5 s",
    ]


def test_a_head_that_comes_byte_by_byte_ends() -> None:
    with serving(replace(PATIENT, request_seconds=0.5)) as served, served.connected(b"GET /fast") as opened:
        assert drips_until_gone(opened)


def test_a_second_head_has_as_long_as_the_first() -> None:
    with serving(replace(PATIENT, request_seconds=1)) as served, served.connected() as opened:
        for _ in range(15):
            opened.sendall(GET % b"/fast")
            assert status(opened) == 200
            time.sleep(0.1)
        opened.sendall(b"GET /fast HTTP/1.1\r\nHost: lo")
        assert status(opened) == 503


@pytest.mark.parametrize(("path", "answers"), [(b"/body", [503]), (b"/early", [401])])
def test_a_body_that_stalls_ends(lines: Callable[[], list[str]], path: bytes, answers: list[int]) -> None:
    with (
        serving(replace(PATIENT, stalled_seconds=0.5)) as served,
        served.connected((POST % 10).replace(b"/body", path) + b"12") as opened,
    ):
        assert [status(opened)] == answers
        assert gone(opened)
    (line,) = lines()
    assert "ended: its request arrives too slowly (0 bytes in " in line


def test_a_slow_body_that_keeps_coming_is_welcome() -> None:
    limits = replace(PATIENT, stalled_seconds=1, stalled_bytes=5)
    with serving(limits) as served, served.connected(POST % 60) as opened:
        for _ in range(60):
            opened.sendall(b"x")
            time.sleep(0.05)
        assert opened.recv(65536).endswith(b"60")


def test_a_body_below_the_least_speed_ends() -> None:
    limits = replace(PATIENT, stalled_seconds=1, stalled_bytes=1000)
    with serving(limits) as served, served.connected(POST % 1000) as opened:
        assert drips_until_gone(opened)


def test_an_answer_that_is_not_read_ends(lines: Callable[[], list[str]]) -> None:
    with (
        serving(replace(PATIENT, stalled_seconds=0.5)) as served,
        served.connected(GET % b"/large", receive_buffer=4096),
    ):
        eventually(lambda: served.app.ended == 1)
    (line,) = lines()
    assert "ended: it reads its answer too slowly" in line


def test_an_answer_that_is_read_slowly_arrives() -> None:
    limits = replace(PATIENT, stalled_seconds=1, stalled_bytes=2**12)
    with serving(limits) as served, served.connected(GET % b"/large", receive_buffer=2**16) as opened:
        began, size = time.monotonic(), 0
        while size < 64 * 2**18:
            slowly = time.monotonic() - began < 4
            piece = opened.recv(2**14 if slowly else 2**20)
            assert piece, f"the connection ended after {size} bytes"
            size += len(piece)
            time.sleep(0.1 if slowly else 0)


def test_stalled_ones_give_way_sooner_when_the_server_is_full() -> None:
    limits = replace(PATIENT, connections=3, crowded_seconds=0.5)
    with serving(limits) as served, ExitStack() as stack:
        for _ in range(3):
            opened = stack.enter_context(served.connected(GET % b"/large", receive_buffer=4096))
            opened.recv(1)
        assert served.status() == 503
        eventually(lambda: served.status() == 200)
        assert served.app.ended > 0


def test_a_websocket_takes_a_place_and_gives_it_back() -> None:
    with serving(replace(PATIENT, connections=2)) as served:
        url = served.url.replace("http", "ws") + "/echo"
        with connect(url) as first, connect(url) as second:
            for opened in (first, second):
                opened.send("still there")
                assert opened.recv() == "still there"
            assert served.status() == 503
        eventually(lambda: served.status() == 200)
        for _ in range(5):
            with connect(url):
                assert served.status() == 200


def test_a_websocket_that_does_not_say_farewell_keeps_no_place() -> None:
    handshake = b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: "
    ask = (GET % b"/farewell").removesuffix(b"\r\n") + handshake + b"dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    with serving(replace(PATIENT, connections=2)) as served, ExitStack() as stack:
        for _ in range(5):
            assert status(stack.enter_context(served.connected(ask))) == 101
        eventually(lambda: served.status() == 200)


@pytest.mark.parametrize(("soft", "hard", "expected"), [(256, 4096, 1000), (256, 256, 64), (1024, 1024, 256)])
def test_connections_leave_files_for_everything_else(soft: int, hard: int, expected: int) -> None:
    program = (
        f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))\n"
        "from kb.http.connections import ConnectionLimits; from kb.http.serve import affordable\n"
        "print(affordable(ConnectionLimits()).connections, resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    connections, files = map(int, done.stdout.split())
    assert connections == expected
    assert connections * 2 <= files <= hard
    assert ("raise its limit" in done.stderr) == (expected < 1000)


def test_a_throttle_says_what_it_left_out() -> None:
    throttle = Throttle(most=2, seconds=60)

    def record(at: float, **about: Any) -> logging.LogRecord:
        made = logging.LogRecord("kb", logging.WARNING, "", 0, "from %s", ("here",), None)
        made.__dict__.update(created=at, **about)
        return made

    records = [record(at) for at in (0, 1, 2, 3, 70)]
    assert [throttle.filter(one) for one in records] == [True, True, False, False, True]
    assert [one.getMessage() for one in (records[0], records[1], records[4])] == [
        "from here",
        "from here (more like this are not logged for 60 s)",
        "from here (2 more like this were not logged)",
    ]
