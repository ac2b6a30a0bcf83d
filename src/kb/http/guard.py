"""What every request to either server passes first, and what every answer carries."""

import logging
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket

from kb import __version__
from kb.core.errors import KBError
from kb.http.access import Gate
from kb.http.logs import request_id

log = logging.getLogger(__name__)

VERSION = __version__.encode()
STARTS = ("http.response.start", "websocket.http.response.start")
UPLOADS = "/uploads/"  # of the MCP server; the rest of the address is a secret

IsOpen = Callable[[Scope], bool]  # whether the request needs no key
Answered = Callable[[str, int, float], None]  # method, status, seconds


@dataclass(frozen=True)
class Guard:
    """An application behind its gate. Each request gets an id and a line in the log, each answer names the version."""

    _app: ASGIApp
    _gate: Gate
    _is_open: IsOpen
    _answered: Answered | None = None
    _engine: bytes = b""  # which of several engines answers
    _closes: Callable[[], bool] = bool  # whether connections are to end with their next answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        # Of a header that was sent twice, the first counts.
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(scope["headers"])}
        own_id = new_request_id(headers.get("x-request-id", ""))
        request_id.set(own_id)
        is_socket = scope["type"] == "websocket"
        method, path = "WEBSOCKET" if is_socket else scope["method"], scope["path"]
        status = 101 if is_socket else 500

        async def marked(message: Message) -> None:
            nonlocal status
            if message["type"] in STARTS:
                status = message["status"]
                carried = [(b"x-kb-version", VERSION), (b"x-request-id", own_id.encode())]
                if self._engine:
                    carried.append((b"x-kb-engine", self._engine))
                if self._closes():
                    carried.append((b"connection", b"close"))
                message["headers"] = [*message.get("headers", ()), *carried]
            await send(message)

        try:
            self._gate.check_place(headers)
            if not self._is_open(scope):
                self._gate.check_key(headers)
            await self._app(scope, receive, marked)
        except KBError as error:
            if is_socket:
                await WebSocket(scope, receive, marked).send_denial_response(refusal(error))
            else:
                await refusal(error)(scope, receive, marked)
        finally:
            took = time.perf_counter() - started
            shown = UPLOADS + "..." if path.startswith(UPLOADS) else path
            log.info("%s %s %d %.1f ms", method, shown, status, took * 1000)
            if self._answered is not None:
                self._answered(method, status, took)


@dataclass(frozen=True)
class BodyLimit:
    """An application that refuses a body as soon as it is too large, but for one path that measures it itself."""

    _app: ASGIApp
    _most: int  # bytes
    _but_for: str

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        size = 0

        async def limited() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > self._most:
                # Of the framework's own kind, since it would take any other for a body that cannot be read.
                raise HTTPException(413, f"The request's body is larger than {self._most // 2**20} MB.")
            return message

        await self._app(scope, receive if scope["path"] == self._but_for else limited, send)


def new_request_id(given: str) -> str:
    """The client's own id if it is short and alphanumeric, else a new one."""
    return given if given.isascii() and given.isalnum() and len(given) <= 64 else uuid.uuid4().hex[:12]


def refusal(error: KBError) -> Response:
    """The answer to a request that failed with this error."""
    headers = {"WWW-Authenticate": "Bearer"} if error.http_status == 401 else None
    return JSONResponse(error.body(), error.http_status, headers)
