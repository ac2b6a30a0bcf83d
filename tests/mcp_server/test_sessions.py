"""There is always room for a new agent: the session that was unused the longest makes it, never one at work."""

import json
import socket
import time
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

import anyio
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from kb.core.errors import Unavailable
from kb.mcp.transports.sessions import Sessions
from mcp_server.conftest import StartMcp
from mcp_server.test_transport import ACCEPT, PING, call, initialize
from support import Http

pytestmark = pytest.mark.anyio


def opened(http: Http) -> Http:
    reply = http("POST", "/mcp", initialize(), Accept=ACCEPT)
    assert reply.status == 200, reply.body
    return Http(http.url, http.headers | {"Mcp-Session-Id": reply.headers["mcp-session-id"], "Accept": ACCEPT})


@pytest.mark.parametrize("key", ["", "secret"])
def test_the_least_recently_used_session_ends_for_a_new_one(start_mcp: StartMcp, key: str) -> None:
    server = start_mcp(KB_MCP_MAX_SESSIONS="2", KB_MCP_API_KEY=key)
    http = Http(server.url, {"Authorization": f"Bearer {key}"} if key else {})
    first, second = opened(http), opened(http)
    assert first("POST", "/mcp", PING).status == 200
    third = opened(http)
    assert [session("POST", "/mcp", PING).status for session in (first, second, third)] == [200, 404, 200]
    assert http("POST", "/mcp", PING).status == 200, "a plain call needs none, and ends none"
    assert [session("POST", "/mcp", PING).status for session in (first, third)] == [200, 200]
    log = server.log.read_text()
    assert log.count("session ended for a new one: contract kb keeps 2 (KB_MCP_MAX_SESSIONS)") == 1
    assert second.headers["Mcp-Session-Id"] not in log, "an id is as good as a key"


def test_a_session_that_its_client_ended_makes_room(start_mcp: StartMcp) -> None:
    http = Http(start_mcp(KB_MCP_MAX_SESSIONS="2").url)
    first, second = opened(http), opened(http)
    assert second("DELETE", "/mcp").status == 200
    third = opened(http)
    assert [session("POST", "/mcp", PING).status for session in (first, second, third)] == [200, 404, 200]


def test_an_open_stream_does_not_keep_others_out(start_mcp: StartMcp) -> None:
    http = Http(start_mcp(KB_MCP_MAX_SESSIONS="1").url)
    session_id = opened(http).headers["Mcp-Session-Id"]
    place = urlsplit(http.url)
    with socket.create_connection((place.hostname, place.port), timeout=20) as stream:
        head = f"GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: {ACCEPT}\r\nMcp-Session-Id: {session_id}\r\n\r\n"
        stream.sendall(head.encode())
        assert stream.recv(65536).startswith(b"HTTP/1.1 200")
        assert opened(http)("POST", "/mcp", PING).status == 200
        while stream.recv(65536):
            pass  # until it has ended


async def test_websockets_are_sessions_too(start_mcp: StartMcp) -> None:
    server = start_mcp(KB_MCP_MAX_SESSIONS="2")
    place = server.url.replace("http", "ws") + "/mcp"
    async with connect(place) as first, connect(place) as second:
        await second.send(json.dumps(PING))
        await second.recv()
        await first.send(json.dumps(call("kb_status")))
        assert json.loads(await first.recv())["id"] == 7
        async with connect(place) as third:
            with pytest.raises(ConnectionClosed) as ended:
                await second.recv()
            assert ended.value.rcvd is not None
            assert (ended.value.rcvd.code, "unused the longest" in ended.value.rcvd.reason) == (1013, True)
            for living in (first, third):
                await living.send(json.dumps(PING))
                assert json.loads(await living.recv())["result"] == {}
    session = await anyio.to_thread.run_sync(opened, Http(server.url))
    assert session("POST", "/mcp", PING).status == 200


class Ended:
    def __init__(self) -> None:
        self.names: list[str] = []

    def __call__(self, name: str) -> Callable[[], Awaitable[None]]:
        async def end() -> None:
            self.names.append(name)

        return end


async def test_a_session_at_work_is_never_ended() -> None:
    ended = Ended()
    sessions = Sessions("kb", limit=2)
    first, second = await sessions.open(ended("first")), await sessions.open(ended("second"))
    sessions.begin(first, "call")
    sessions.begin(second, "call")
    with pytest.raises(Unavailable, match="2 sessions have a call in progress"):
        await sessions.open(ended("third"))
    sessions.done(second, "call")
    await sessions.open(ended("third"))
    assert ended.names == ["second"]


async def test_a_session_that_is_not_used_any_more_ends() -> None:
    ended = Ended()
    sessions = Sessions("kb", limit=10, idle_seconds=0.05)
    await sessions.open(ended("unused"))
    calling, streaming = await sessions.open(ended("calling")), await sessions.open(ended("streaming"))
    sessions.begin(calling, "call")
    streaming.streams = 1
    await sessions.expire()
    assert ended.names == []
    time.sleep(0.06)
    await sessions.expire()
    assert ended.names == ["unused"]
    sessions.done(calling, "call")
    time.sleep(0.06)
    await sessions.expire()
    assert ended.names == ["unused", "calling"]
