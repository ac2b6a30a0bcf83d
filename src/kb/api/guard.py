"""What every request passes first: Host and Origin, the key, the size of its body. And what every answer carries.

A page on the web can reach localhost, so a local engine is not a safe one: a foreign Host (DNS rebinding), a foreign
Origin and a cross-site request are refused, with a key or without.
"""

import hmac
import logging
import time
from urllib.parse import urlsplit

from fastapi import HTTPException
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kb import __version__
from kb.api.answers import error_answer
from kb.api.metrics import Metrics
from kb.errors import Forbidden, KBError, Unauthorized
from kb.logs import new_request_id, request_id
from kb.settings import LOOPBACK, Settings

log = logging.getLogger(__name__)

OPEN_PATHS = ("/health", "/")  # no data, no key; the page itself asks for one
MAX_BODY = 8 * 2**20  # a note of 1 MB with every character escaped fits; files have their own limit
UPLOAD_PATH = "/api/v1/jobs"


class Guard:
    def __init__(self, app: ASGIApp, settings: Settings, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics
        self._key = settings.api_key.encode()
        self._hosts = {*LOOPBACK, settings.host.lower(), *settings.allowed_hosts} - {"0.0.0.0", "::"}  # noqa: S104

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        headers = Headers(scope=scope)
        own_id = new_request_id(headers.get("x-request-id", ""))
        request_id.set(own_id)
        status = 500

        async def marked(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                answer = MutableHeaders(scope=message)
                answer["X-KB-Version"] = __version__
                answer["X-Request-Id"] = own_id
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

    def _check(self, method: str, path: str, headers: Headers) -> None:
        self._check_host(headers.get("host", ""))
        self._check_origin(headers)
        if self._key and not (method == "GET" and path in OPEN_PATHS):
            scheme, _, key = headers.get("authorization", "").partition(" ")
            if scheme.lower() != "bearer" or not hmac.compare_digest(key.strip().encode("latin-1"), self._key):
                raise Unauthorized("This engine needs its key. Send it as `Authorization: Bearer KEY` (KB_API_KEY).")

    def _check_host(self, host: str) -> None:
        name = host_name(host)
        if name not in self._hosts:
            raise Forbidden(
                f"This engine does not answer to the host name {name[:100]!r}. Use localhost, or allow the name with "
                "KB_ALLOWED_HOSTS."
            )

    def _check_origin(self, headers: Headers) -> None:
        if headers.get("sec-fetch-site") == "cross-site":
            raise Forbidden("Requests from other web sites are refused.")
        origin = headers.get("origin")
        if origin is not None and host_name(origin.partition("://")[2]) not in self._hosts:
            raise Forbidden(f"Requests from {origin[:100]!r} are refused. Allow its host name with KB_ALLOWED_HOSTS.")


def host_name(host: str) -> str:
    """The name in `name:port`, also for `[::1]:8000`."""
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""


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
