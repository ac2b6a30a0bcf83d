"""What is not a request is refused in the one error shape, and none of it is collected without end."""

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

import pytest

from kb import __version__
from kb.http.protocol import MAX_HEAD, MAX_PIPELINED
from support import Http

REQUEST = b"GET /health HTTP/1.1\r\nHost: localhost\r\n"
CHUNKED = b"POST /api/v1/search HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
BLOCK = 2**18  # the most that is read from a socket at once


@contextmanager
def connected(http: Http) -> Iterator[socket.socket]:
    address = urlsplit(http.url)
    with socket.create_connection((address.hostname, address.port), timeout=30) as opened:
        yield opened


def sent(http: Http, data: bytes) -> tuple[int, dict[str, str], Any]:
    """Status, headers and body of the answer; the other side hangs up after it."""
    with connected(http) as opened:
        opened.sendall(data)
        head, _, body = b"".join(iter(lambda: opened.recv(65536), b"")).partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    return int(first.split()[1]), dict(line.split(": ", 1) for line in lines), json.loads(body)


@pytest.mark.parametrize(
    ("data", "status", "code"),
    [
        (b"this is not HTTP\r\n\r\n", 405, "method_not_allowed"),
        (b"GET /health HTTP/x\r\n\r\n", 422, "invalid_request"),
        (b"GET /h\xffealth HTTP/1.1\r\nHost: localhost\r\n\r\n", 422, "invalid_request"),
        (b"GET /health HTTP/1.1\r\nno colon\r\n\r\n", 422, "invalid_request"),
        (b"NONSENSE /health HTTP/1.1\r\nHost: localhost\r\n\r\n", 405, "method_not_allowed"),
    ],
)
def test_what_cannot_be_read_is_refused_in_the_one_error_shape(http: Http, data: bytes, status: int, code: str) -> None:
    actual, headers, body = sent(http, data)
    assert (actual, body["error"]["code"]) == (status, code)
    assert set(body["error"]) == {"code", "message", "retryable", "details"}
    assert headers["x-kb-version"] == __version__


def test_white_space_around_a_value_is_no_part_of_it(http: Http) -> None:
    request = b"GET /health HTTP/1.1\r\nHost: \t localhost \t \r\nConnection:  close  \r\n\r\n"
    assert sent(http, request)[0] == 200


@pytest.mark.parametrize(
    "begin",
    [b"GET /", REQUEST + b"X-Long: ", CHUNKED + b"Connection: close\r\n\r\n0\r\nX-Trailer: "],
    ids=["address", "header", "trailer"],
)
def test_a_head_without_end_is_not_collected(http: Http, begin: bytes) -> None:
    with connected(http) as opened:
        opened.sendall(begin)
        with pytest.raises(OSError):  # noqa: PT011 - hung up on, in whichever way
            for _ in range(100):
                opened.sendall(b"x" * (MAX_HEAD + BLOCK))
    assert http("GET", "/health").status == 200


def test_many_headers_without_end_are_not_collected(http: Http) -> None:
    with connected(http) as opened:
        opened.sendall(REQUEST)
        with pytest.raises(OSError):  # noqa: PT011 - hung up on, in whichever way
            for _ in range(100):
                opened.sendall(b"X-Many: 1\r\n" * (MAX_HEAD + BLOCK))


def test_a_large_head_and_a_larger_body_are_read(http: Http) -> None:
    body = json.dumps({"query": "x" * 2000, "tags": ["y" * 200] * 100}).encode() + b" " * MAX_HEAD * 4
    answer = http("POST", "/api/v1/search", raw=body, Content_Type="application/json", X_Large="z" * (MAX_HEAD - 2**10))
    assert answer.status == 200


def test_more_requests_ahead_than_a_client_needs_are_not_collected(http: Http) -> None:
    ask = REQUEST + b"\r\n"
    with connected(http) as opened:
        opened.sendall(ask * MAX_PIPELINED)
        answered = b""
        while answered.count(b"HTTP/1.1 200") < MAX_PIPELINED:
            answered += opened.recv(65536)
    with connected(http) as opened:
        with suppress(OSError):
            opened.sendall(ask * 5000)
        received = b""
        with suppress(OSError):
            received = b"".join(iter(lambda: opened.recv(65536), b""))
        assert received.count(b"HTTP/1.1 200") <= MAX_PIPELINED + 1
