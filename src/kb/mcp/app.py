"""The MCP server as one ASGI application, put together here and nowhere else."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

import anyio
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.types import Scope

from kb import __version__
from kb.client.engines import Engines
from kb.core.errors import KBError, MethodNotAllowed, NotFound
from kb.core.settings import Settings
from kb.http.access import Gate
from kb.http.guard import UPLOADS, Guard, refusal
from kb.mcp.contracts.contract import Contract
from kb.mcp.contracts.kb import Kb
from kb.mcp.contracts.kb_v3 import KbV3
from kb.mcp.contracts.knowledge import Knowledge
from kb.mcp.engine_client import Client
from kb.mcp.sdk import ContractServer
from kb.mcp.transports.http import StreamableHttp
from kb.mcp.transports.sessions import Sessions
from kb.mcp.transports.websocket import Sockets
from kb.mcp.uploads.receiving import receive
from kb.mcp.uploads.staging import Uploads

CONTRACTS: dict[str, type[Contract]] = {contract.name: contract for contract in (Kb, Knowledge, KbV3)}
SWEEP_SECONDS = 15


def create_app(settings: Settings) -> Guard:
    client = Client(Engines.of(settings))
    uploads = Uploads(settings.mcp_upload_seconds)
    served: list[StreamableHttp] = []
    every_session: list[Sessions] = []
    routes: list[BaseRoute] = [
        Route("/health", partial(health, settings)),
        Route(UPLOADS + "{token}", partial(receive, uploads), methods=["PUT"]),
    ]
    for number, name in enumerate(settings.mcp_contracts):
        server = ContractServer(CONTRACTS[name](client, uploads, settings))
        sessions = Sessions(name, settings.mcp_max_sessions)
        http = StreamableHttp(server, sessions)
        sockets = Sockets(server, sessions)
        served.append(http)
        every_session.append(sessions)
        for path in (f"/mcp/{name}", *(["/mcp"] if number == 0 else [])):
            routes += [Route(path, http), WebSocketRoute(path, sockets.serve)]

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            stack.callback(uploads.close)
            stack.push_async_callback(client.close)
            for http in served:
                await stack.enter_async_context(http.manager.run())
            tasks = await stack.enter_async_context(anyio.create_task_group())
            tasks.start_soon(sweep, uploads, every_session)
            yield
            tasks.cancel_scope.cancel()

    handlers = {HTTPException: http_failure, KBError: kb_failure}
    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers=handlers)
    return Guard(app, Gate.of_mcp(settings), is_open)


def is_open(scope: Scope) -> bool:
    """Whether a request needs no key: an upload address is a secret itself."""
    path: str = scope["path"]
    return path == "/health" or path.startswith(UPLOADS)


async def health(settings: Settings, _request: Request) -> Response:
    """Whether the server is alive. Needs no key, and says nothing of the engine."""
    return JSONResponse({"status": "ok", "version": __version__, "contracts": list(settings.mcp_contracts)})


async def sweep(uploads: Uploads, every_session: Sequence[Sessions]) -> None:
    """Drop uploads and sessions that are not used any more, also while there are no calls."""
    while True:
        await anyio.sleep(min(SWEEP_SECONDS, uploads.idle_seconds))
        uploads.expire()
        for sessions in every_session:
            await sessions.expire()


async def http_failure(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        return refusal(MethodNotAllowed(f"{request.method} is not served here."))
    return refusal(NotFound("There is nothing here. Contracts are at /mcp and /mcp/<name>."))


async def kb_failure(_request: Request, error: Exception) -> Response:
    assert isinstance(error, KBError)
    return refusal(error)
