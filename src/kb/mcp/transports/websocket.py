"""The same messages over a WebSocket, one to a frame. A client that skips the handshake is served too."""

from contextlib import suppress
from dataclasses import dataclass

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.connection import Connection
from mcp.server.runner import serve_connection, serve_dual_era_loop
from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp.shared.transport_context import TransportContext
from mcp_types import (
    INVALID_REQUEST,
    PROTOCOL_VERSION_META_KEY,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError
from starlette.websockets import WebSocket, WebSocketDisconnect

from kb.core.errors import Unavailable
from kb.mcp.errors import wire_error
from kb.mcp.sdk import GONE, ContractServer
from kb.mcp.transports.sessions import Session, Sessions
from kb.mcp.transports.wire import error_bytes, parsed

TRY_LATER = 1013
SUBPROTOCOL = "mcp"

Incoming = SessionMessage | Exception


@dataclass(frozen=True)
class Sockets:
    """Every WebSocket of one contract; each is a session."""

    _server: ContractServer
    _sessions: Sessions

    async def serve(self, socket: WebSocket) -> None:
        offered = socket.scope.get("subprotocols", [])
        await socket.accept(SUBPROTOCOL if SUBPROTOCOL in offered else None)
        with anyio.CancelScope() as scope:

            async def end() -> None:
                scope.cancel()

            try:
                session = await self._sessions.open(end)
            except Unavailable as full:
                await socket.close(TRY_LATER, full.message)
                return
            session.streams = 1
            socket.scope[GONE] = anyio.Event()
            try:
                await self._converse(socket, session)
            finally:
                self._sessions.close(session)
        if scope.cancelled_caught:
            with suppress(WebSocketDisconnect, RuntimeError):
                await socket.close(TRY_LATER, "Ended for a new session, since it was unused the longest")

    async def _converse(self, socket: WebSocket, session: Session) -> None:
        first = await self._next(socket)
        if first is None:
            return
        to_server, from_client = anyio.create_memory_object_stream[Incoming](0)
        to_client, from_server = anyio.create_memory_object_stream[SessionMessage](0)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._answer, socket, session, from_server)
            tasks.start_soon(self._serve, first, from_client, to_client)
            message: SessionMessage | None = first
            with suppress(anyio.BrokenResourceError):
                while message is not None:
                    self._note_call(session, message)
                    await to_server.send(message)
                    message = await self._next(socket)
            tasks.cancel_scope.cancel()  # the client is gone, so its calls end

    async def _next(self, socket: WebSocket) -> SessionMessage | None:
        """The next message; what is none is answered at once. None at the end."""
        with suppress(WebSocketDisconnect, KeyError, RuntimeError):  # KeyError: a frame of bytes
            while True:
                text = await socket.receive_text()
                try:
                    message = jsonrpc_message_adapter.validate_python(parsed(text), by_name=False)
                    return SessionMessage(message, ServerMessageMetadata(request_context=socket))
                except MCPError as wrong:
                    error = wrong
                except ValidationError:
                    error = wire_error(INVALID_REQUEST, "This is not a JSON-RPC message.")
                await socket.send_text(error_bytes(None, error).decode())
        return None

    def _note_call(self, session: Session, received: SessionMessage) -> None:
        """A request begins a call; cancelling it ends it, since it may then have no answer."""
        message = received.message
        if isinstance(message, JSONRPCRequest):
            self._sessions.begin(session, str(message.id))
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            self._sessions.done(session, str((message.params or {}).get("requestId")))

    async def _answer(
        self, socket: WebSocket, session: Session, from_server: MemoryObjectReceiveStream[SessionMessage]
    ) -> None:
        async for sent in from_server:
            if isinstance(sent.message, JSONRPCResponse | JSONRPCError):
                self._sessions.done(session, str(sent.message.id))
            with suppress(WebSocketDisconnect, RuntimeError):
                await socket.send_text(sent.message.model_dump_json(by_alias=True, exclude_unset=True))

    async def _serve(
        self,
        first: SessionMessage,
        from_client: MemoryObjectReceiveStream[Incoming],
        to_client: MemoryObjectSendStream[SessionMessage],
    ) -> None:
        meta = (getattr(first.message, "params", None) or {}).get("_meta")
        if isinstance(meta, dict) and PROTOCOL_VERSION_META_KEY in meta:
            await serve_dual_era_loop(self._server, from_client, to_client, lifespan_state=None)
            return
        dispatcher: JSONRPCDispatcher[TransportContext] = JSONRPCDispatcher(
            from_client, to_client, inline_methods=frozenset({"initialize"})
        )
        connection = Connection.for_loop(dispatcher)
        connection.initialized.set()
        await serve_connection(self._server, dispatcher, connection=connection, lifespan_state=None)
