"""Limits on what clients send: uploads and streams at a time, and the size of a body."""

from collections.abc import Iterator
from contextlib import contextmanager

from fastapi import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kb.core.errors import Unavailable

MAX_BODY = 8 * 2**20  # a note of 1 MB with every character escaped fits; files have their own limit
UPLOAD_PATH = "/api/v1/jobs"


class Slots:
    """A number of things at a time: one more is refused at once. Used from the event loop only, without a lock."""

    def __init__(self, most: int, refusal: str) -> None:
        self._most = most
        self._refusal = refusal
        self.taken = 0

    @contextmanager
    def held(self) -> Iterator[None]:
        if self.taken >= self._most:
            raise Unavailable(self._refusal)
        self.taken += 1
        try:
            yield
        finally:
            self.taken -= 1


class BodyLimit:
    """An application that refuses a body as soon as it is too large; an upload is measured where it is written."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        size = 0

        async def limited() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > MAX_BODY:
                # Of the framework's own kind, since it would take any other for a body that cannot be read.
                raise HTTPException(413, f"The request's body is larger than {MAX_BODY // 2**20} MB.")
            return message

        await self._app(scope, receive if scope["path"] == UPLOAD_PATH else limited, send)
