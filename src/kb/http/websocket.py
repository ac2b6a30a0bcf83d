"""A connection that became a WebSocket. Only the MCP server imports it: the engine takes none and lacks the library."""

import asyncio
from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from kb.core.errors import KBError
from kb.http.connections import Connections, Stage


class SocketConnection(WebSocketsSansIOProtocol):
    """One connection that became a WebSocket. Pings end it when the client is gone or does not read."""

    cycle = None
    received = 0

    def __init__(self, connections: Connections, **given: Any) -> None:
        super().__init__(**given)
        self._connections = connections
        self.drains = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._connections.opened(self)
        self._connections.busy(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.closed(self)
        super().connection_lost(exc)

    async def send(self, message: Any) -> None:
        await super().send(message)
        if self.close_sent:  # what is left is the client's farewell, and a new connection does not wait for it
            self._connections.idle(self)

    def resume_writing(self) -> None:
        self.drains += 1
        super().resume_writing()

    def stage(self) -> Stage | None:
        return "answer" if self.transport.get_write_buffer_size() else None

    def refuse(self, error: KBError) -> None:  # noqa: ARG002 - a frame cannot carry it
        self.transport.abort()
