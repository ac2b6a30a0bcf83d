"""Streamable HTTP: the SDK's transport, with what it leaves to us before it.

The body is read here once: a body that is no message is refused with the right error, and a POST without a session
gets a plain answer. Everything else goes to the SDK's session manager, stateful and with server-sent events: in this
mode, progress and cancellation work for clients of every revision.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial

import anyio
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_REQUEST
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from kb.core.errors import Unavailable
from kb.core.types import Json
from kb.mcp.errors import wire_error
from kb.mcp.sdk import GONE, ContractServer
from kb.mcp.transports.plain import plain_answer
from kb.mcp.transports.sessions import Session, Sessions
from kb.mcp.transports.wire import MAX_MESSAGE, error_bytes, parsed, too_large

SESSION_ID = "mcp-session-id"


class StreamableHttp:
    """An ASGI application: one contract over HTTP."""

    def __init__(self, server: ContractServer, sessions: Sessions) -> None:
        self._server = server
        self._sessions = sessions
        self._by_id: dict[str, Session] = {}
        # How many sessions there are and when they end is decided here, for WebSockets too.
        self.manager = StreamableHTTPSessionManager(
            server, max_sessions=None, session_idle_timeout=None, max_request_body_size=MAX_MESSAGE
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        receive = watched(scope, receive)
        headers = Headers(scope=scope)
        if scope["method"] != "POST":
            with self._in_use(headers, call=scope["method"] != "GET"):
                await self._serve(scope, receive, send)
            return
        try:
            body = await read_body(headers, receive)
            message = parsed(body)
        except HttpRefusal as refused:
            await refused.answer(scope, receive, send)
        except MCPError as wrong:
            await HttpRefusal(400, wrong).answer(scope, receive, send)
        else:
            if is_plain(headers, message):
                answer = await plain_answer(self._server, Request(scope, receive), receive, message)
                await answer(scope, receive, send)
            elif message.get("method") == "initialize" and SESSION_ID not in headers:
                await self._open(scope, replayed(body, receive), send)
            else:
                with self._in_use(headers, call=True):
                    await self._serve(scope, replayed(body, receive), send)

    async def _open(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Open a session through the SDK; it counts if the SDK accepts it."""
        begun = ""

        async def end() -> None:
            await self._end(begun)

        async def note_id(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start" and message["status"] < 400:
                begun = Headers(raw=message["headers"]).get(SESSION_ID, "")
                if begun:
                    self._by_id[begun] = session
            await send(message)

        try:
            session = await self._sessions.open(end)
        except Unavailable as full:
            await HttpRefusal(503, wire_error(INTERNAL_ERROR, full.message)).answer(scope, receive, send)
            return
        self._sessions.begin(session, "initialize")
        try:
            await self._serve(scope, receive, note_id)
        finally:
            self._sessions.done(session, "initialize")
            if not begun:
                self._sessions.close(session)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        with suppress(anyio.ClosedResourceError):  # the client ended the session while it was still sending
            await self.manager.handle_request(scope, receive, partial(self._forget_if_gone, scope, send))

    async def _forget_if_gone(self, scope: Scope, send: Send, message: Message) -> None:
        """Pass the answer on. If it says that the session has ended or is unknown, the session's place becomes free."""
        if message["type"] == "http.response.start" and (message["status"] == 404 or scope["method"] == "DELETE"):
            session = self._by_id.pop(Headers(scope=scope).get(SESSION_ID, ""), None)
            if session is not None:
                self._sessions.close(session)
        await send(message)

    @contextmanager
    def _in_use(self, headers: Headers, *, call: bool) -> Iterator[None]:
        """Mark the named session as having a call in progress, or a stream open."""
        session = self._by_id.get(headers.get(SESSION_ID, ""))
        if session is None:
            yield
            return
        token = object()
        session.streams += not call
        if call:
            self._sessions.begin(session, token)
        try:
            yield
        finally:
            session.streams -= not call
            if call:
                self._sessions.done(session, token)

    async def _end(self, session_id: str) -> None:
        """End a session in the way its client would."""
        self._by_id.pop(session_id, None)
        scope = {
            "type": "http",
            "method": "DELETE",
            "path": "/",
            "query_string": b"",
            "headers": [(SESSION_ID.encode(), session_id.encode())],
        }

        async def nothing() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def ignore(_: Message) -> None:
            pass

        await self.manager.handle_request(scope, nothing, ignore)


class HttpRefusal(Exception):
    """An HTTP answer to a request that reaches no session."""

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
    """The same `receive`, which sets the scope's event when the client disconnects."""
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
        raise HttpRefusal(415, wire_error(INVALID_REQUEST, "Content-Type must be application/json."))
    body = bytearray()
    more = True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > MAX_MESSAGE:
            raise HttpRefusal(413, too_large())
    return bytes(body)


def replayed(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives the body again, then what comes after it."""
    waiting = [body]

    async def receive_again() -> Message:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        return await receive()

    return receive_again
