"""How a request is read from its connection: uvicorn's fast parser, bounded, and refusing in the one error shape.

The parser itself takes headers, trailers and addresses of any size; here a connection on which bytes keep coming that
never become a request or a part of its body is closed.
"""

import json
import sys

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from kb import __version__
from kb.errors import InvalidRequest, KBError, MethodNotAllowed

MAX_HEAD = 64 * 2**10  # bytes; one block that is read from the socket may come on top


class Protocol(HttpToolsProtocol):
    """One connection."""

    _undigested = 0  # bytes since the last that completed anything

    def data_received(self, data: bytes) -> None:
        self._undigested += len(data)
        super().data_received(data)
        if self._undigested > MAX_HEAD and not self.transport.is_closing():
            self._refuse(InvalidRequest(f"The head of the request is larger than {MAX_HEAD // 2**10} KB."))

    def on_headers_complete(self) -> None:
        self._undigested = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._undigested = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._undigested = 0
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """What uvicorn does when the parser gives up."""
        if isinstance(sys.exception(), httptools.HttpParserInvalidMethodError):
            self._refuse(MethodNotAllowed("There is no such method in HTTP."))
        else:
            self._refuse(InvalidRequest(f"{msg} The routes are listed at /docs."))

    def _refuse(self, error: KBError) -> None:
        body = json.dumps(error.body()).encode()
        head = (
            f"content-type: application/json\r\ncontent-length: {len(body)}\r\nx-kb-version: {__version__}\r\n"
            "connection: close\r\n\r\n"
        )
        self.transport.write(STATUS_LINE[error.http_status] + head.encode() + body)
        self.transport.close()
