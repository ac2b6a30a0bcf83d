"""One POST, one answer in JSON, no session: for callers that know HTTP and little of MCP."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio
from mcp.server.connection import Connection
from mcp.server.runner import ServerRunner, modern_error_data, serve_one
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import MCPError, NoBackChannelError
from mcp.shared.message import ServerMessageMetadata
from mcp.shared.transport_context import TransportContext
from mcp_types import RequestId
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive

from kb.core.types import Json
from kb.mcp.sdk import GONE, ContractServer
from kb.mcp.transports.wire import answer_bytes, error_bytes

VERSION = "2025-06-18"  # what the answer keeps to, since nothing was negotiated


@dataclass
class OneAnswer:
    """The SDK's view of such a call: nothing can be sent but the answer."""

    message_metadata: ServerMessageMetadata
    request_id: RequestId | None
    transport: TransportContext = field(default_factory=lambda: TransportContext(kind="plain", can_send_request=False))
    cancel_requested: anyio.Event = field(default_factory=anyio.Event)
    can_send_request: bool = False

    async def send_raw_request(
        self,
        method: str,
        params: Mapping[str, Any] | None,  # noqa: ARG002 - as the SDK calls it
        opts: CallOptions | None = None,  # noqa: ARG002
    ) -> dict[str, Any]:
        raise NoBackChannelError(method)

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        """Do nothing: only the answer can be sent."""

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Do nothing: only the answer can be sent."""


async def plain_answer(server: ContractServer, request: Request, receive: Receive, message: Json) -> Response:
    """The answer to one message. A client that goes away cancels its call."""
    context = OneAnswer(ServerMessageMetadata(request_context=request), message.get("id"))
    connection = Connection.from_envelope(VERSION, None, None)
    if "method" not in message:
        return Response(status_code=202)  # an answer, though nothing was asked
    if "id" not in message:
        await ServerRunner(server, connection, None).on_notify(context, message["method"], message.get("params"))
        return Response(status_code=202)
    body = b""
    async with anyio.create_task_group() as tasks:

        async def watch() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            request.scope[GONE].set()
            tasks.cancel_scope.cancel()

        tasks.start_soon(watch)
        body = await _served(server, context, connection, message)
        tasks.cancel_scope.cancel()
    return Response(body, media_type="application/json")


async def _served(server: ContractServer, context: OneAnswer, connection: Connection, message: Json) -> bytes:
    try:
        result = await serve_one(
            server, context, message["method"], message.get("params"), connection=connection, lifespan_state=None
        )
    except Exception as error:  # noqa: BLE001 - the SDK says what each becomes on the wire
        data = modern_error_data(error)
        return error_bytes(message["id"], MCPError.from_error_data(data))
    return answer_bytes(message["id"], result)
