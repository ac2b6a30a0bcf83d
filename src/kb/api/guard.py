"""What every request passes first: Host and Origin, the key, the size of its body. And what every answer carries."""

import logging
import time
from collections.abc import Mapping, Sequence

from fastapi import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kb import __version__
from kb.api.metrics import Metrics
from kb.api.pages import is_open
from kb.api.responses import error_answer
from kb.core.errors import KBError
from kb.core.settings import Settings
from kb.http.access import Gate
from kb.http.logs import new_request_id, request_id

log = logging.getLogger(__name__)

VERSION = __version__.encode()
MAX_BODY = 8 * 2**20  # a note of 1 MB with every character escaped fits; files have their own limit
UPLOAD_PATH = "/api/v1/jobs"


class Guard:
    def __init__(self, app: ASGIApp, settings: Settings, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics
        self._gate = Gate.of_engine(settings)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        headers = first_of_each(scope["headers"])
        own_id = new_request_id(headers.get("x-request-id", ""))
        request_id.set(own_id)
        status = 500

        async def marked(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                carried = [(b"x-kb-version", VERSION), (b"x-request-id", own_id.encode())]
                message["headers"] = [*message.get("headers", ()), *carried]
            await send(message)

        try:
            self._check(scope["method"], scope["path"], headers)
            await self._app(scope, limited(scope, receive), marked)
        except KBError as refused:
            await error_answer(refused)(scope, receive, marked)
        finally:
            took = time.perf_counter() - started
            log.info("%s %s %d %.1f ms", scope["method"], scope["path"], status, took * 1000)
            self._metrics.answered(scope["method"], status, took)

    def _check(self, method: str, path: str, headers: Mapping[str, str]) -> None:
        self._gate.check_place(headers)
        if not (method == "GET" and is_open(path)):
            self._gate.check_key(headers)


def first_of_each(headers: Sequence[tuple[bytes, bytes]]) -> dict[str, str]:
    """The headers by name; of one that was sent twice, the first counts."""
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(headers)}


def limited(scope: Scope, receive: Receive) -> Receive:
    """Refuse a body as soon as it is too large; an upload is measured where it is written."""
    if scope["path"] == UPLOAD_PATH:
        return receive
    size = 0

    async def receive_some() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > MAX_BODY:
            # Of the framework's own kind, since it would take any other for a body that cannot be read.
            raise HTTPException(413, f"The request's body is larger than {MAX_BODY // 2**20} MB.")
        return message

    return receive_some
