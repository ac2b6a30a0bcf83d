"""Calls over a real socket: what arrives, and what becomes of everything that can go wrong on the way."""

import io
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kb.cli.transport import CutShortError, NotHttpError, SocketClient, read_http
from kb.client import calls
from kb.client.engines import Engines
from kb.core.errors import InvalidRequest, KBError, NotFound, StorageFull, TooLarge, Unavailable
from kb.core.settings import Settings

from .conftest import Serve


def at(url: str, api_key: str = "") -> SocketClient:
    return SocketClient(Engines.of(Settings(engine_url=url, api_key=api_key)))


@pytest.fixture
def raw() -> Iterator[Callable[[bytes], str]]:
    """A server that sends these bytes to whoever asks, and closes."""
    listeners: list[socket.socket] = []
    threads = []

    def start(answer: bytes) -> str:
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)

        def run() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(answer)

        thread = threading.Thread(target=run)
        thread.start()
        threads.append(thread)
        return f"http://127.0.0.1:{listener.getsockname()[1]}"

    yield start
    for thread in threads:
        thread.join()
    for listener in listeners:
        listener.close()


def test_a_download_goes_to_a_file_of_its_own(raw: Callable[[bytes], str], tmp_path: Path) -> None:
    head = b"HTTP/1.1 200 OK\r\nX-KB-Version: 3.0.0\r\nTransfer-Encoding: chunked\r\n\r\n"
    target = tmp_path / "backup.tar"
    answer = at(raw(head + b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")).backup(target)
    assert (answer, target.read_bytes()) == ({"path": str(target), "bytes": 5}, b"abcde")
    assert target.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [target]


def test_a_download_that_breaks_off_leaves_what_was_there(raw: Callable[[bytes], str], tmp_path: Path) -> None:
    head = b"HTTP/1.1 200 OK\r\nX-KB-Version: 3.0.0\r\nTransfer-Encoding: chunked\r\n\r\n"
    target = tmp_path / "backup.tar"
    target.write_bytes(b"yesterday's")
    with pytest.raises(Unavailable, match="broke before"):
        at(raw(head + b"3\r\nabc\r\n")).backup(target)
    assert target.read_bytes() == b"yesterday's"
    assert list(tmp_path.iterdir()) == [target]


def test_a_download_that_is_refused_says_why(serve: Serve, tmp_path: Path) -> None:
    stub = serve(b'{"error": {"code": "storage_full", "message": "No room."}}', 507)
    with pytest.raises(StorageFull, match="No room"):
        at(stub.url).export(tmp_path / "export.tar")
    assert list(tmp_path.iterdir()) == []


def test_a_download_that_finds_no_room_says_so(serve: Serve, tmp_path: Path) -> None:
    stub = serve(b"bytes")
    with pytest.raises(StorageFull, match="cannot be written"):
        at(stub.url).backup(tmp_path / "no" / "backup.tar")


def test_a_request_arrives_as_it_was_described(serve: Serve) -> None:
    stub = serve(b'{"answer": 42}')
    assert at(stub.url + "/prefix/", "secret").search("wörter") == {"answer": 42}
    [(method, path, headers, body)] = stub.seen
    assert (method, path) == ("POST", "/prefix/api/v1/search")
    assert headers["authorization"] == "Bearer secret"
    assert headers["content-type"] == "application/json"
    assert headers["host"] == stub.url.removeprefix("http://")
    assert body == b'{"query": "w\\u00f6rter"}'


def test_a_file_is_streamed_whole(serve: Serve, tmp_path: Path) -> None:
    stub = serve(b'{"job_id": "j", "status": "queued"}')
    file = tmp_path / "big.bin"
    content = bytes(range(256)) * 5000  # several blocks
    file.write_bytes(content)
    at(stub.url).add_file(file, title="Big")
    [(_, _, headers, body)] = stub.seen
    boundary = headers["content-type"].partition("boundary=")[2].encode()
    assert body.count(boundary) == 3
    assert b"\r\n\r\n" + content + b"\r\n--" + boundary in body
    assert b'filename="big.bin"' in body


def test_a_missing_file_is_found_out_before_anybody_is_asked(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"nothing\.txt"):
        at("http://127.0.0.1:1").add_file(tmp_path / "nothing.txt")
    with pytest.raises(InvalidRequest, match="cannot be read"):
        at("http://127.0.0.1:1").add_file(tmp_path)


def test_a_file_that_shrinks_on_the_way_is_not_sent_as_if_it_were_whole(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def connect(*given: Any, **more: Any) -> socket.socket:
        file.write_bytes(b"short")
        return connection(*given, **more)

    file = tmp_path / "log.txt"
    file.write_bytes(b"x" * 1000)
    client, connection = at(serve().url), socket.create_connection
    monkeypatch.setattr(socket, "create_connection", connect)
    with pytest.raises(InvalidRequest, match="became shorter"):
        client.add_file(file)


def test_an_engine_that_is_not_there_is_named_with_the_command_that_starts_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(Unavailable, match="unreachable") as raised:
        at(url).status()
    assert url in raised.value.message
    assert "start it with: kb up" in raised.value.message


@pytest.mark.parametrize("host", ["no-such-host.invalid", f"{'x' * 70}.example"])
def test_a_name_that_leads_nowhere_is_unreachable(host: str) -> None:
    with pytest.raises((Unavailable, InvalidRequest), match=host):
        at(f"http://{host}:9").status()


def test_https_is_spoken_when_asked_for(serve: Serve) -> None:
    stub = serve()
    with pytest.raises(Unavailable, match="unreachable"):
        at(stub.url.replace("http:", "https:")).status()
    assert not stub.seen


def test_a_slow_answer_is_given_up_in_the_end(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "ANSWER_SECONDS", 0.2)
    with pytest.raises(Unavailable, match=r"did not answer GET /api/v1/status within 0\.2 s"):
        at(serve(wait=30).url).status()


def test_a_proxy_in_the_environment_is_ignored(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    assert at(serve(b'{"a": 1}').url).status() == {"a": 1}


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b"SSH-2.0-OpenSSH_9.6\r\n", "not a kb engine: it does not speak HTTP"),
        (b"HTTP/1.1 200 OK\r\n\r\nhello", "not a kb engine: it sent HTTP 200"),
        (b"", "broke before the answer was complete"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}", "broke before the answer was complete"),
        (b"HTTP/1.1 200 OK\r\nX-KB-Ver", "not a kb engine"),
        (b'HTTP/1.1 200 OK\r\n\r\n{"version": "2"}', "needs an engine of version 3.0.0 or newer"),
    ],
)
def test_an_answer_that_is_none_is_told_apart(raw: Callable[[bytes], str], answer: bytes, message: str) -> None:
    with pytest.raises(Unavailable, match=message):
        at(raw(answer)).status()


def test_a_refusal_that_comes_before_the_file_was_read_is_still_heard(
    raw: Callable[[bytes], str], tmp_path: Path
) -> None:
    body = b'{"error": {"code": "file_too_large", "message": "Too large."}}'
    head = f"HTTP/1.1 413 Too Large\r\nX-KB-Version: 3.0.0\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    file = tmp_path / "huge.bin"
    with file.open("wb") as huge:
        huge.truncate(200 * 2**20)
    with pytest.raises(KBError) as raised:
        at(raw(head + body)).add_file(file)
    assert isinstance(raised.value, TooLarge | Unavailable)  # a reset may overtake the answer, but is no success


@pytest.mark.parametrize(
    "answer",
    [
        b'HTTP/1.1 200 OK\r\ncontent-length: 7\r\nX-KB-Version:3.0.0\r\n\r\n{"a":1}and more',
        b'HTTP/1.0 200 OK\r\nX-KB-Version: 3.0.0\r\n\r\n{"a":1}',
        b"HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\nx-kb-version: 3.0.0\r\n\r\n"
        b'3;x=y\r\n{"a\r\n4\r\n":1}\r\n0\r\n\r\n',
        b'HTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\nX-KB-Version: 3.0.0\n\n{"a":1}',
    ],
)
def test_a_body_is_read_however_it_is_framed(answer: bytes) -> None:
    read = read_http(io.BytesIO(answer))
    assert (read.status, read.headers["x-kb-version"], read.body) == (200, "3.0.0", b'{"a":1}')


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (b"HTTP/1.1 abc\r\n\r\n", NotHttpError),
        (b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n", NotHttpError),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", NotHttpError),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", CutShortError),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n", CutShortError),
        (b"HTTP/1.1 200 OK\r\n" + b"A: " + b"x" * 70_000, NotHttpError),
    ],
)
def test_a_frame_that_is_wrong_is_refused(answer: bytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        read_http(io.BytesIO(answer))


def test_an_answer_without_a_body_is_whole() -> None:
    assert read_http(io.BytesIO(b"HTTP/1.1 204 No Content\r\nX: y\r\n\r\n")).body == b""
