"""POST /search, where every tenth of a millisecond counts.

The framework describes the route, and `Direct` answers it: on its own way through dependencies, contexts and its pool
of threads the framework would spend longer than a search takes (docs/decisions/009).
"""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

from fastapi import APIRouter, Response
from fastapi.exceptions import RequestValidationError
from starlette.types import ASGIApp, Receive, Scope, Send

from kb.api import errors as failures
from kb.api.dependencies import EngineOf, errors
from kb.api.responses import Answer
from kb.api.schemas import SearchBody
from kb.core.errors import InvalidRequest
from kb.core.values import SearchAnswer
from kb.engine.engine import Engine

router = APIRouter(tags=["search"])

THREADS = 16  # each has a connection to the database with a cache of its own


@router.post("/search", response_model=SearchAnswer, responses=errors())
def search(engine: EngineOf, body: SearchBody) -> Response:
    """Find passages by meaning and by keywords. An empty answer says why in `notice`."""
    return Answer(engine.search(body.request()))


class Direct:
    """Answers searches as the route does, errors included, and passes everything else on."""

    def __init__(self, app: ASGIApp, path: str, engine: Engine) -> None:
        self._app = app
        self._path = path
        self._engine = engine
        self._search = failures.sealed(self._answer)
        self._threads = ThreadPoolExecutor(THREADS, "search")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        ours = scope["type"] == "http" and scope["path"] == self._path and scope["method"] == "POST"
        await (self._search if ours else self._app)(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            body = SearchBody.model_validate(await read_json(scope, receive))
            # In the caller's context, so that what the search logs names its request.
            run, loop = copy_context().run, asyncio.get_running_loop()
            answer = await loop.run_in_executor(self._threads, run, search, self._engine, body)
        except failures.KNOWN as error:
            answer = await failures.answer_to(error, scope)
        await answer(scope, receive, send)


async def read_json(scope: Scope, receive: Receive) -> Any:
    """The body, by the framework's rules: what is not called JSON is not read as such."""
    named = next((value for name, value in scope["headers"] if name == b"content-type"), b"")
    kind = named.partition(b";")[0].strip().lower()
    if kind != b"application/json" and not (kind.startswith(b"application/") and kind.endswith(b"+json")):
        raise InvalidRequest("The body must be JSON. Send it with `Content-Type: application/json`.")
    body, more = bytearray(), True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise InvalidRequest("The body ends too early. Send it again.")
        body += message.get("body", b"")
        more = message.get("more_body", False)
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as wrong:
        raise RequestValidationError([{"type": "json_invalid", "loc": (), "msg": "JSON decode error"}]) from wrong
