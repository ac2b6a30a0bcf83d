"""POST /search. The framework would spend longer on its way to it than some searches take (docs/decisions/009)."""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute

from kb.api.dependencies import Answer, EngineOf, errors
from kb.api.schemas import SearchBody, content_type
from kb.core.errors import InvalidRequest
from kb.core.searches import SearchAnswer

THREADS = 16  # each has a connection to the database with a cache of its own


def search_threads() -> ThreadPoolExecutor:
    """Threads that stay. Those of the framework end after ten idle seconds, and a new one opens a connection first."""
    return ThreadPoolExecutor(THREADS, "search")


class SearchRoute(APIRoute):
    """A route of the framework that reads its body itself, as nothing else has to be resolved."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        return self._answer

    async def _answer(self, request: Request) -> Response:
        kind = content_type(request)
        if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
            raise InvalidRequest("The body must be JSON. Send it with `Content-Type: application/json`.")
        body = SearchBody.model_validate_json(await request.body())
        state, loop = request.app.state, asyncio.get_running_loop()
        in_context = copy_context().run  # what the search logs names its request
        return await loop.run_in_executor(state.search_threads, in_context, search, state.engine, body)


router = APIRouter(tags=["search"], route_class=SearchRoute)


@router.post("/search", response_model=SearchAnswer, responses=errors())
def search(engine: EngineOf, body: SearchBody) -> Response:
    """Find passages by meaning and by keywords. An empty answer says why in `notice`."""
    return Answer(engine.search(body.request()))
