"""The engine's address is understood, and an answer means one thing."""

import json

import pytest

from kb.client.endpoint import Endpoint, read_answer
from kb.core.errors import InvalidRequest, KBError, NotFound, Unavailable, every_error
from kb.core.settings import Settings


@pytest.mark.parametrize(
    ("url", "host", "port", "authority", "prefix", "secure"),
    [
        ("http://127.0.0.1:8000", "127.0.0.1", 8000, "127.0.0.1:8000", "", False),
        ("http://localhost/", "localhost", 80, "localhost", "", False),
        ("https://kb.example/engine/", "kb.example", 443, "kb.example", "/engine", True),
        ("http://[::1]:8000/a b", "::1", 8000, "[::1]:8000", "/a%20b", False),
        ("http://bücher.example:1", "xn--bcher-kva.example", 1, "xn--bcher-kva.example:1", "", False),
    ],
)
def test_an_address_is_understood(url: str, host: str, port: int, authority: str, prefix: str, secure: bool) -> None:
    endpoint = Endpoint.of(Settings(engine_url=url))
    assert (endpoint.host, endpoint.port, endpoint.authority, endpoint.prefix, endpoint.secure) == (
        host,
        port,
        authority,
        prefix,
        secure,
    )


@pytest.mark.parametrize(
    "url", ["127.0.0.1:8000", "ftp://host", "http://", "http://host:port", "http://host/?a=1", "http://[::1"]
)
def test_an_address_that_cannot_work_is_refused_by_name(url: str) -> None:
    with pytest.raises(InvalidRequest, match="KB_ENGINE_URL"):
        Endpoint.of(Settings(engine_url=url))


def test_a_password_in_the_address_is_refused_and_not_repeated() -> None:
    with pytest.raises(InvalidRequest) as refused:
        Endpoint.of(Settings(engine_url="http://me:hunter2@host"))
    assert "KB_API_KEY" in refused.value.message
    assert "hunter2" not in refused.value.message


def test_the_key_is_sent_as_a_bearer_token_and_only_when_there_is_one() -> None:
    assert ("Authorization", "Bearer secret") in Endpoint.of(Settings(api_key="secret")).headers
    assert "Authorization" not in dict(Endpoint.of(Settings()).headers)


@pytest.mark.parametrize("key", ["two words", "line\nbreak", "schlüssel"])
def test_a_key_that_no_header_can_carry_is_refused(key: str) -> None:
    with pytest.raises(InvalidRequest, match="KB_API_KEY"):
        Endpoint.of(Settings(api_key=key))


ENDPOINT = Endpoint.of(Settings(engine_url="http://127.0.0.1:8000/kb"))


@pytest.mark.parametrize("version", ["3.0.0", "3.0.1rc1", "3.10.0", "4.0.0", "10.0"])
def test_an_engine_of_this_version_or_newer_is_accepted(version: str) -> None:
    assert read_answer(ENDPOINT, 200, version, b'{"a": 1}') == {"a": 1}


@pytest.mark.parametrize("version", [None, "2.9.9", "2.10", "0.1", "unknown"])
@pytest.mark.parametrize("status", [200, 404])
def test_an_older_engine_is_refused_whatever_it_says(version: str | None, status: int) -> None:
    with pytest.raises(Unavailable, match=r"3\.0\.0 or newer.*http://127\.0\.0\.1:8000/kb"):
        read_answer(ENDPOINT, status, version, b'{"a": 1}')


@pytest.mark.parametrize(("status", "body"), [(200, b"<html>"), (500, b""), (200, b'["a"]'), (301, b"moved")])
def test_what_is_not_kb_is_called_so(status: int, body: bytes) -> None:
    with pytest.raises(Unavailable, match=f"not a kb engine: it sent HTTP {status}"):
        read_answer(ENDPOINT, status, None, body)


@pytest.mark.parametrize("kind", every_error())
def test_an_error_body_becomes_the_error(kind: type[KBError]) -> None:
    sent = kind("It went wrong.", field="text")
    with pytest.raises(KBError) as raised:
        read_answer(ENDPOINT, kind.http_status, "3.0.0", json.dumps(sent.body()).encode())
    assert type(raised.value) is kind
    assert raised.value.body() == sent.body()


@pytest.mark.parametrize(("status", "body"), [(500, b"{}"), (500, b"oops"), (200, b"[]"), (404, b'{"error": "x"}')])
def test_a_broken_answer_of_an_engine_is_an_error(status: int, body: bytes) -> None:
    with pytest.raises(KBError, match=f"HTTP {status}"):
        read_answer(ENDPOINT, status, "3.0.0", body)


def test_text_is_handed_on_as_it_is() -> None:
    assert read_answer(ENDPOINT, 200, "3.0.0", "[1] Käse".encode(), plain=True) == {"text": "[1] Käse"}
    with pytest.raises(NotFound):
        read_answer(ENDPOINT, 404, "3.0.0", json.dumps(NotFound("gone").body()).encode(), plain=True)


def test_not_found_is_what_a_missing_document_raises() -> None:
    with pytest.raises(NotFound):
        read_answer(ENDPOINT, 404, "3.0.0", json.dumps(NotFound("gone").body()).encode())


@pytest.mark.parametrize(("status", "in_doubt"), [(502, True), (503, False), (504, True)])
def test_the_answer_of_a_load_balancer_says_whether_the_request_may_have_happened(status: int, in_doubt: bool) -> None:
    with pytest.raises(Unavailable, match=f"HTTP {status} from a proxy") as told:
        read_answer(ENDPOINT, status, None, b"<html>No server is available")
    assert told.value.details.get("in_doubt", False) is in_doubt
