"""What every request to the MCP server passes first, and how a refusal looks."""

import logging
import time

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket

from kb import __version__
from kb.core.errors import KBError
from kb.http.access import Gate
from kb.http.logs import new_request_id, request_id

log = logging.getLogger(__name__)

UPLOADS = "/uploads/"  # the address itself is the secret


def refusal(error: KBError) -> Response:
    headers = {"WWW-Authenticate": "Bearer"} if error.http_status == 401 else None
    return JSONResponse(error.body(), error.http_status, headers)


class Guard:
    def __init__(self, app: ASGIApp, gate: Gate) -> None:
        self._app = app
        self._gate = gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        headers = Headers(scope=scope)
        request_id.set(new_request_id(headers.get("x-request-id", "")))
        status = 101 if scope["type"] == "websocket" else 500

        async def marked(message: Message) -> None:
            nonlocal status
            if message["type"] in ("http.response.start", "websocket.http.response.start"):
                status = message["status"]
                MutableHeaders(scope=message)["X-KB-Version"] = __version__
            await send(message)

        try:
            self._check(scope["path"], headers)
            await self._app(scope, receive, marked)
        except KBError as refused:
            if scope["type"] == "websocket":
                await WebSocket(scope, receive, marked).send_denial_response(refusal(refused))
            else:
                await refusal(refused)(scope, receive, marked)
        finally:
            took = (time.perf_counter() - started) * 1000
            path = UPLOADS + "..." if scope["path"].startswith(UPLOADS) else scope["path"]
            log.info("%s %s %d %.1f ms", scope.get("method", "WEBSOCKET"), path, status, took)

    def _check(self, path: str, headers: Headers) -> None:
        self._gate.check_place(headers)
        if path != "/health" and not path.startswith(UPLOADS):
            self._gate.check_key(headers)
