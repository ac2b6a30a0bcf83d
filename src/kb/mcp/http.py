"""Streamable HTTP: the SDK's transport, with what it leaves to us before it.

The body is read here once, so that what is no message gets the error it deserves and a POST without a session gets a
plain answer. Everything else goes to the SDK's session manager, stateful and with server-sent events: the mode in which
progress and cancellation work for clients of every revision.
"""

from contextlib import suppress

import anyio
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_REQUEST
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from kb.mcp.failures import wire_error
from kb.mcp.plain import plain_answer
from kb.mcp.protocol import GONE, ContractServer
from kb.mcp.wire import MAX_MESSAGE, error_bytes, parsed, too_large
from kb.nouns import Json


class StreamableHttp:
    """An ASGI application: one contract over HTTP."""

    def __init__(self, server: ContractServer, max_sessions: int) -> None:
        self._server = server
        self.sessions = StreamableHTTPSessionManager(
            server, max_sessions=max_sessions, max_request_body_size=MAX_MESSAGE
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        receive = watched(scope, receive)
        if scope["method"] != "POST":
            await self.sessions.handle_request(scope, receive, send)
            return
        headers = Headers(scope=scope)
        try:
            body = await read_body(headers, receive)
            message = parsed(body)
        except Refused as refused:
            await refused.answer(scope, receive, send)
        except MCPError as wrong:
            await Refused(400, wrong).answer(scope, receive, send)
        else:
            if is_plain(headers, message):
                answer = await plain_answer(self._server, Request(scope, receive), receive, message)
                await answer(scope, receive, send)
            else:
                with suppress(anyio.ClosedResourceError):  # the client ended the session while it was still sending
                    await self.sessions.handle_request(scope, replayed(body, receive), send)


class Refused(Exception):
    """A body that holds no message for anybody."""

    def __init__(self, status: int, error: MCPError) -> None:
        super().__init__(error.message)
        self.answer = Response(error_bytes(None, error), status, media_type="application/json")


def is_plain(headers: Headers, message: Json) -> bool:
    """Whether the caller knows nothing of sessions: it has none, and neither opens one nor names a revision."""
    if "mcp-session-id" in headers or "mcp-protocol-version" in headers:
        return False
    takes_events = any(kind in headers.get("accept", "") for kind in ("text/event-stream", "text/*", "*/*"))
    return message.get("method") != "initialize" or not takes_events


def watched(scope: Scope, receive: Receive) -> Receive:
    """Take note of the moment at which the client is gone: what it waits for is not wanted any more."""
    gone = scope[GONE] = anyio.Event()

    async def receive_and_watch() -> Message:
        message = await receive()
        if message["type"] == "http.disconnect":
            gone.set()
        return message

    return receive_and_watch


async def read_body(headers: Headers, receive: Receive) -> bytes:
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":  # any other kind can be sent by a page without asking
        raise Refused(415, wire_error(INVALID_REQUEST, "Content-Type must be application/json."))
    body = bytearray()
    more = True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > MAX_MESSAGE:
            raise Refused(413, too_large())
    return bytes(body)


def replayed(body: bytes, receive: Receive) -> Receive:
    """The body once more, then whatever comes after it."""
    waiting = [body]

    async def receive_again() -> Message:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        return await receive()

    return receive_again
