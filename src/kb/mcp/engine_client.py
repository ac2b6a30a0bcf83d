"""The client that the MCP server uses: calls carried by `httpx2`, over connections that are kept open."""

import json
import socket
import sys
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from os import fstat
from secrets import token_hex
from typing import Any, BinaryIO

import anyio
import httpx2

from kb.client.calls import CONNECT_SECONDS, Call, Calls, FileUpload, multipart
from kb.client.endpoint import Endpoint, read_answer
from kb.client.engines import Engines
from kb.core.errors import InvalidRequest, Unavailable
from kb.core.types import Json

BLOCK = 2**18
CONNECTIONS = 64
# A connection that the engine closes while it is idle would fail the next call: let go of it before the engine's 5 s.
KEEP_SECONDS = 4
# A machine that vanishes acknowledges nothing: ask the next engine after so long, not when the answer is overdue.
VANISHED_MS = 10_000
SOCKET_OPTIONS = [(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, VANISHED_MS)] if sys.platform == "linux" else []
# The agent for which calls are made, as it named itself; the engine's page shows which agents have called.
calling_agent: ContextVar[str] = ContextVar("calling_agent", default="")


class Client(Calls[Awaitable[Json]]):
    """Carries calls without holding a thread; whatever goes wrong comes out as one of the client's errors."""

    def __init__(self, engines: Engines) -> None:
        self._engines = engines
        self.url = engines.url
        # The transport alone: what a client of httpx2 adds (redirects, cookies, proxies) is not wanted here, and costs
        # a third of what a call does.
        self._http = httpx2.AsyncHTTPTransport(
            trust_env=False,
            limits=httpx2.Limits(max_connections=CONNECTIONS, keepalive_expiry=KEEP_SECONDS),
            socket_options=SOCKET_OPTIONS,
        )

    async def close(self) -> None:
        await self._http.aclose()

    async def send(self, call: Call) -> Json:
        if call.download is not None:
            raise NotImplementedError("nothing in the MCP server saves files")
        attempts = self._engines.attempts(call)
        while True:
            try:
                return await self._sent(attempts.engine, call)
            except Unavailable as error:
                attempts.failed(error)

    async def _sent(self, engine: Endpoint, call: Call) -> Json:
        async with _content(call) as (headers, content):
            answer, body = await self._exchange(engine, call, headers, content)
        version = answer.headers.get("x-kb-version")
        return read_answer(engine, answer.status_code, version, body, plain=call.plain)

    async def _exchange(
        self, engine: Endpoint, call: Call, headers: dict[str, str], content: Any
    ) -> tuple[httpx2.Response, bytes]:
        timeout = httpx2.Timeout(call.timeout, connect=CONNECT_SECONDS).as_dict()
        sent = dict(engine.headers) | headers
        if agent := calling_agent.get():
            sent["X-KB-Agent"] = agent
        request = httpx2.Request(
            call.method, engine.base + call.target, headers=sent, content=content, extensions={"timeout": timeout}
        )
        try:
            answer = await self._http.handle_async_request(request)
            try:
                return answer, await answer.aread()
            finally:
                await answer.aclose()
        except httpx2.ConnectTimeout as late:
            raise engine.unreachable(f"no connection within {CONNECT_SECONDS} seconds") from late
        except httpx2.ConnectError as refused:
            raise engine.unreachable(_reason(refused)) from refused
        except httpx2.TimeoutException as late:
            raise engine.silent(call) from late
        except httpx2.RemoteProtocolError as strange:
            raise engine.broken(_reason(strange)) from strange
        except httpx2.TransportError as failed:
            raise engine.broken(_reason(failed)) from failed


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__


@asynccontextmanager
async def _content(call: Call) -> AsyncIterator[tuple[dict[str, str], Any]]:
    """The headers and bytes of the body; a file stays open while it is sent."""
    if call.upload is not None:
        boundary = token_hex(16)
        before, after = multipart(call.upload, boundary)
        with open(call.upload.path, "rb") as file:
            size = fstat(file.fileno()).st_size
            headers = {
                "Content-Type": f"multipart/form-data; boundary={boundary}",
                "Content-Length": str(len(before) + size + len(after)),
            }
            yield headers, _framed(before, file, size, after, call.upload)
    elif call.body is not None:
        yield {"Content-Type": "application/json"}, json.dumps(call.body).encode()
    else:
        yield {}, None


async def _framed(before: bytes, file: BinaryIO, size: int, after: bytes, upload: FileUpload) -> AsyncIterator[bytes]:
    """Exactly as many bytes as were announced."""
    yield before
    while size:
        block = await anyio.to_thread.run_sync(file.read, min(BLOCK, size))
        if not block:
            raise InvalidRequest(f"{upload.filename} became shorter while it was being sent; add it again.")
        size -= len(block)
        yield block
    yield after
