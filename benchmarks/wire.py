"""HTTP over one connection that stays open, in as few steps as it takes.

It measures the server, not the client: the standard library's client spends half a millisecond on a call
just after an embedding, most of it on the answer's headers. Of those only the length counts here. And an answer tells
how long it took from the first byte that was sent to the last that came, without reading what it says.
"""

import json
import re
import socket
import time
from typing import Any, NamedTuple

LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)\r\n", re.IGNORECASE)
HEAD_END = b"\r\n\r\n"
READ = 2**20


class Answer(NamedTuple):
    status: int
    head: bytes
    body: bytes
    took_ms: float  # from the first byte sent to the last received

    def header(self, name: str) -> str | None:
        found = re.search(rf"\r\n{name}: *([^\r]*)\r\n".encode(), self.head, re.IGNORECASE)
        return found[1].decode() if found else None


class Wire:
    def __init__(self, host: str, port: int) -> None:
        self._address = (host, port)
        self._socket: socket.socket | None = None

    def ask(self, method: str, target: str, body: Any = None, **headers: str) -> Answer:
        """`body` is sent as JSON. Who was idle for long may find the connection closed: then over a new one."""
        content = b"" if body is None else json.dumps(body).encode()
        lines = {"Host": f"{self._address[0]}:{self._address[1]}", "Content-Length": str(len(content)), **headers}
        if body is not None:
            lines["Content-Type"] = "application/json"
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        request = f"{method} {target} HTTP/1.1\r\n{head}\r\n".encode() + content
        try:
            return self._exchange(request)
        except ConnectionError:
            self.close()
            return self._exchange(request)

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _exchange(self, request: bytes) -> Answer:
        if self._socket is None:
            self._socket = socket.create_connection(self._address, timeout=300)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        started = time.perf_counter()
        self._socket.sendall(request)
        came = self._more()
        while HEAD_END not in came:
            came += self._more()
        head, _, body = came.partition(HEAD_END)
        head += b"\r\n"
        length = LENGTH.search(head)
        if length is None:
            raise RuntimeError(f"an answer without its length: {head!r}")
        while len(body) < int(length[1]):
            body += self._more()
        took = (time.perf_counter() - started) * 1000
        return Answer(int(head.split(b" ", 2)[1]), head, body, took)

    def _more(self) -> bytes:
        assert self._socket is not None
        some = self._socket.recv(READ)
        if not some:
            raise ConnectionResetError("the server closed the connection")
        return some
