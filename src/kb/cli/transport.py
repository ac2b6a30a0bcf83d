"""The client of the command line: calls over a plain socket.

One HTTP/1.1 exchange per connection, no proxy, no file held in memory. Importing the standard library's `http.client`
(with `email` and `ssl`) would take a third of the time that `kb search` may take. Every failure is raised as an error
of the client.
"""

import json
import socket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from os import fstat, fsync, replace, unlink, urandom
from os import open as os_open
from typing import BinaryIO, NamedTuple

from kb.client.calls import CONNECT_SECONDS, Call, Calls, multipart
from kb.client.endpoint import Endpoint, read_answer
from kb.client.engines import Engines
from kb.core.errors import InvalidRequest, NotFound, StorageFull, Unavailable
from kb.core.types import Json

BLOCK = 2**18
LONGEST_LINE = 2**16


class Payload(NamedTuple):
    """The body of a request: its type, its length, and its bytes in blocks."""

    media_type: str
    length: int
    blocks: Iterable[bytes]


class HttpAnswer(NamedTuple):
    status: int
    headers: dict[str, str]  # names in lower case
    body: bytes


class NotHttpError(Exception):
    """What came back is not an HTTP answer."""


class CutShortError(Exception):
    """The answer ended before it was complete."""


class SocketClient(Calls[Json]):
    """Sends calls with the standard library alone."""

    def __init__(self, engines: Engines) -> None:
        self._engines = engines

    def send(self, call: Call) -> Json:
        attempts = self._engines.attempts(call)
        while True:
            try:
                return _sent(attempts.engine, call)
            except Unavailable as error:
                attempts.failed(error)


def _sent(engine: Endpoint, call: Call) -> Json:
    with _content(call) as content, _connect(engine) as connection:
        connection.settimeout(call.timeout)
        try:
            answer = _exchange(engine, connection, call, content)
        except TimeoutError as late:
            raise engine.silent(call) from late
        except NotHttpError as strange:
            raise engine.foreign("it does not speak HTTP") from strange
        except CutShortError as cut:
            raise engine.broken("it was closed") from cut
        except OSError as failed:
            raise engine.broken(failed.strerror or failed) from failed
    version = answer.headers.get("x-kb-version")
    return read_answer(engine, answer.status, version, answer.body, plain=call.plain)


def _connect(engine: Endpoint) -> socket.socket:
    try:
        connection = socket.create_connection((engine.host, engine.port), timeout=CONNECT_SECONDS)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return _secured(connection, engine.host) if engine.secure else connection
    except TimeoutError as late:
        raise engine.unreachable(f"no connection within {CONNECT_SECONDS} seconds") from late
    except (OSError, UnicodeError) as refused:  # UnicodeError: a host name that cannot be one
        raise engine.unreachable(getattr(refused, "strerror", None) or refused) from refused


def _exchange(engine: Endpoint, connection: socket.socket, call: Call, content: Payload) -> HttpAnswer:
    lines = [f"{call.method} {engine.prefix}{call.target} HTTP/1.1"]
    headers = [
        ("Host", engine.authority),
        ("Connection", "close"),
        *engine.headers,
        *([("Content-Type", content.media_type)] if content.media_type else []),
        ("Content-Length", str(content.length)),
    ]
    lines += [f"{name}: {value}" for name, value in headers]
    # An engine that refuses a file (too large, wrong key) answers before it has read all of it.
    with suppress(ConnectionError):
        connection.sendall("\r\n".join([*lines, "", ""]).encode("ascii"))
        for block in content.blocks:
            connection.sendall(block)
    with connection.makefile("rb") as stream:
        return read_http(stream, call.download)


def _secured(connection: socket.socket, host: str) -> socket.socket:
    import ssl

    try:
        return ssl.create_default_context().wrap_socket(connection, server_hostname=host)
    except BaseException:
        connection.close()
        raise


def read_http(stream: BinaryIO, download: str | None = None) -> HttpAnswer:
    """Read one answer: its final status, headers and whole body. With `download`, the body goes to that file."""
    status = 100
    while status < 200:  # 1xx only announces the answer
        words = _line(stream).split(" ", 2)
        if len(words) < 2 or not words[0].startswith("HTTP/1.") or not words[1].isdecimal():
            raise NotHttpError
        status = int(words[1])
        headers = {}
        while line := _line(stream):
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
    blocks = _body(stream, status, headers)
    if download is None or status >= 400 or "x-kb-version" not in headers:
        return HttpAnswer(status, headers, b"".join(blocks))
    return HttpAnswer(status, headers, json.dumps({"path": download, "bytes": _saved(blocks, download)}).encode())


def _saved(blocks: Iterable[bytes], path: str) -> int:
    """Write to a file that appears under its name once it is complete. Return its size in bytes."""
    part = f"{path}.part"
    size = 0
    with _private(part) as file:
        try:
            for block in blocks:
                with _disk(part):
                    size += file.write(block)
            with _disk(part):
                file.flush()
                fsync(file.fileno())
                replace(part, path)
        except BaseException:
            unlink(part)
            raise
    return size


def _private(path: str) -> BinaryIO:
    with _disk(path):
        return open(path, "wb", opener=lambda name, flags: os_open(name, flags, 0o600))


@contextmanager
def _disk(path: str) -> Iterator[None]:
    """Errors of the disk as such, not as errors of the connection."""
    try:
        yield
    except OSError as wrong:
        raise StorageFull(f"{path} cannot be written: {wrong.strerror}.") from wrong


def _body(stream: BinaryIO, status: int, headers: dict[str, str]) -> Iterator[bytes]:
    if status in (204, 304):
        return
    if headers.get("transfer-encoding", "").lower() == "chunked":
        while size := _size(_line(stream).partition(";")[0], 16):
            yield _exactly(stream, size)
            _line(stream)
    elif "content-length" in headers:
        yield _exactly(stream, _size(headers["content-length"], 10))
    else:
        yield stream.read()


def _line(stream: BinaryIO) -> str:
    line = stream.readline(LONGEST_LINE)
    if not line.endswith(b"\n"):
        raise NotHttpError if line else CutShortError
    return line.decode("latin-1").rstrip("\r\n")


def _size(text: str, base: int) -> int:
    try:
        return int(text, base)
    except ValueError:
        raise NotHttpError from None


def _exactly(stream: BinaryIO, size: int) -> bytes:
    data = stream.read(size)
    if len(data) < size:
        raise CutShortError
    return data


@contextmanager
def _content(call: Call) -> Iterator[Payload]:
    if call.upload:
        boundary = urandom(16).hex()
        before, after = multipart(call.upload, boundary)
        with _opened(call.upload.path) as file:
            size = fstat(file.fileno()).st_size
            length = len(before) + size + len(after)
            blocks = chain([before], _blocks(file, size, call.upload.path), [after])
            yield Payload(f"multipart/form-data; boundary={boundary}", length, blocks)
    elif call.body is not None:
        body = json.dumps(call.body).encode()
        yield Payload("application/json", len(body), [body])
    else:
        yield Payload("", 0, [])


def _opened(path: str) -> BinaryIO:
    try:
        return open(path, "rb")
    except FileNotFoundError as missing:
        raise NotFound(f"There is no file {path}.") from missing
    except OSError as wrong:
        raise InvalidRequest(f"{path} cannot be read: {wrong.strerror}.") from wrong


def _blocks(file: BinaryIO, size: int, path: str) -> Iterator[bytes]:
    """Exactly `size` bytes: the header announced that length."""
    left = size
    while left:
        try:
            block = file.read(min(BLOCK, left))
        except OSError as wrong:
            raise InvalidRequest(f"{path} cannot be read: {wrong.strerror}.") from wrong
        if not block:
            raise InvalidRequest(f"{path} became shorter while it was being sent; add it again.")
        left -= len(block)
        yield block
