"""How a request is read from its connection: uvicorn's fast parser, bounded, and refusing in the one error shape.

The parser itself takes headers, trailers and addresses of any size; here a connection on which bytes keep coming that
never become a request or a part of its body is closed. How long that may take, `Connections` decides.
"""

import asyncio
import json
import sys
from functools import partial
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from kb import __version__
from kb.core.errors import InvalidRequest, KBError, MethodNotAllowed
from kb.http.connections import Connections, Stage

MAX_HEAD = 64 * 2**10  # bytes; one block that is read from the socket may come on top
# Requests that wait on a connection for the answer to the one before. Clients of kb wait for each answer; without a
# limit, one block of 256 KB becomes 7,000 requests in memory.
MAX_PIPELINED = 16


class HttpConnection(HttpToolsProtocol):
    """One connection that speaks HTTP."""

    def __init__(self, connections: Connections, **given: Any) -> None:
        super().__init__(**given)
        self._connections = connections
        self.received = 0
        self.drains = 0
        self._digested = 0  # of the bytes received, those up to the last that completed anything
        self._in_body = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._connections.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.closed(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self.received += len(data)
        super().data_received(data)
        if self.received - self._digested > MAX_HEAD and not self.transport.is_closing():
            self.refuse(InvalidRequest(f"The head of the request is larger than {MAX_HEAD // 2**10} KB."))

    def on_header(self, name: bytes, value: bytes) -> None:
        """White space around a value is no part of it (RFC 9110, 5.5); the parser leaves what follows it."""
        super().on_header(name, value.strip(b" \t"))

    def on_headers_complete(self) -> None:
        if len(self.pipeline) >= MAX_PIPELINED:  # raised through the parser, which stops reading
            raise InvalidRequest(f"{MAX_PIPELINED} requests on this connection wait for an answer already.")
        self._digested = self.received
        self._in_body = True
        self._connections.busy(self)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._digested = self.received
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._digested = self.received
        self._in_body = False
        super().on_message_complete()
        if self.cycle is not None and self.cycle.response_complete:
            self._connections.idle(self)

    def on_response_complete(self) -> None:
        pipelined = bool(self.pipeline)
        super().on_response_complete()
        if not pipelined:
            self._connections.idle(self)

    def resume_writing(self) -> None:
        self.drains += 1
        super().resume_writing()

    def handle_websocket_upgrade(self) -> None:
        """Hand the transport to a protocol of its own, which takes this one's place."""
        self._connections.closed(self)
        assert self.ws_protocol_class is not None  # else uvicorn takes no upgrade
        self.ws_protocol_class = partial(self.ws_protocol_class, self._connections)  # type: ignore[assignment, call-arg]
        super().handle_websocket_upgrade()

    def stage(self) -> Stage | None:
        if self.transport.get_write_buffer_size():
            return "answer"
        if self.transport.is_closing():
            return None
        if self._in_body:
            waits = self.flow.read_paused or self.cycle.waiting_for_100_continue
            return None if waits else "body"
        return "request" if self.cycle is None or self.cycle.response_complete else None

    def send_400_response(self, msg: str) -> None:
        """What uvicorn does when the parser gives up."""
        error = sys.exception()
        if error is not None and isinstance(error.__context__, KBError):
            self.refuse(error.__context__)
        elif isinstance(error, httptools.HttpParserInvalidMethodError):
            self.refuse(MethodNotAllowed("There is no such method in HTTP."))
        else:
            self.refuse(InvalidRequest(f"{msg} The routes are listed at /docs."))

    def refuse(self, error: KBError) -> None:
        """Answer the present request with this error, if nothing was sent yet, and close the connection."""
        answered = self.cycle is not None and self.cycle.response_started
        if answered and (self._in_body or not self.cycle.response_complete):
            self.transport.abort()
            return
        body = json.dumps(error.body()).encode()
        head = (
            f"content-type: application/json\r\ncontent-length: {len(body)}\r\nx-kb-version: {__version__}\r\n"
            "connection: close\r\n\r\n"
        )
        self.transport.write(STATUS_LINE[error.http_status] + head.encode() + body)
        self.transport.close()
