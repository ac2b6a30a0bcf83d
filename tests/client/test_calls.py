"""Each call is described once, the engine's address is understood, and an answer means one thing."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from kb.client.calls import Call, Calls, Engine, Upload, multipart, read_answer
from kb.core.errors import InvalidRequest, KBError, NotFound, Unavailable, every_error
from kb.core.settings import Settings
from kb.core.values import Json


class Described(Calls[Call]):
    """Carries nothing: the answer is the call itself."""

    def send(self, call: Call) -> Call:
        return call


CALLS = Described()


@pytest.mark.parametrize(
    ("call", "method", "target", "body"),
    [
        (CALLS.search("where"), "POST", "/api/v1/search", {"query": "where"}),
        (
            CALLS.search("q", top=3, tags=["a", "b"], doc_type="pdf", mode="fts", min_score=0.0, explain=True),
            "POST",
            "/api/v1/search",
            {
                "query": "q",
                "top": 3,
                "tags": ["a", "b"],
                "doc_type": "pdf",
                "mode": "fts",
                "min_score": 0.0,
                "explain": True,
            },
        ),
        (CALLS.add_note("text"), "POST", "/api/v1/jobs", {"text": "text"}),
        (
            CALLS.add_note("text", title="T", tags=[], metadata={"a": 1}, wait=60),
            "POST",
            "/api/v1/jobs?wait=60",
            {"text": "text", "title": "T", "tags": [], "metadata": {"a": 1}},
        ),
        (CALLS.job("j/../x"), "GET", "/api/v1/jobs/j%2F..%2Fx", None),
        (CALLS.jobs(status="failed", limit=5), "GET", "/api/v1/jobs?status=failed&limit=5", None),
        (CALLS.cancel_job("j"), "POST", "/api/v1/jobs/j/cancel", None),
        (CALLS.retry_job("j"), "POST", "/api/v1/jobs/j/retry", None),
        (CALLS.documents(), "GET", "/api/v1/documents", None),
        (
            CALLS.documents(source_path="/a b&c", tags=["x", "ü"], sort="size", order="asc", offset=10),
            "GET",
            "/api/v1/documents?source_path=%2Fa+b%26c&sort=size&order=asc&offset=10&tag=x&tag=%C3%BC",
            None,
        ),
        (CALLS.document(7), "GET", "/api/v1/documents/7", None),
        (
            CALLS.document("u", first_chunk=0, max_chunks=2),
            "GET",
            "/api/v1/documents/u?first_chunk=0&max_chunks=2",
            None,
        ),
        (CALLS.delete_document(7), "DELETE", "/api/v1/documents/7", None),
        (CALLS.edit_tags(7, add=["a"]), "POST", "/api/v1/documents/7/tags", {"add": ["a"], "remove": []}),
        (CALLS.tags(), "GET", "/api/v1/tags", None),
        (
            CALLS.update_note(7, "new", expected_version=2),
            "PATCH",
            "/api/v1/notes/7",
            {"text": "new", "expected_version": 2},
        ),
        (CALLS.note_versions(7), "GET", "/api/v1/notes/7/versions", None),
        (CALLS.restore_note(7, 1), "POST", "/api/v1/notes/7/restore", {"version": 1}),
        (
            CALLS.duplicates(min_similarity=0.5, limit=3),
            "GET",
            "/api/v1/duplicates?min_similarity=0.5&limit=3",
            None,
        ),
        (CALLS.backup("a.tar"), "GET", "/api/v1/backup", None),
        (CALLS.export("a.tar"), "GET", "/api/v1/export", None),
        (CALLS.doctor(), "GET", "/api/v1/doctor", None),
        (CALLS.doctor(fix=True), "POST", "/api/v1/doctor", None),
        (CALLS.status(), "GET", "/api/v1/status", None),
        (CALLS.health(), "GET", "/health", None),
    ],
)
def test_a_call_is_the_documented_request(call: Call, method: str, target: str, body: Json | None) -> None:
    assert (call.method, call.target, call.body, call.upload) == (method, target, body, None)


def test_a_file_is_a_form_with_its_fields(tmp_path: Path) -> None:
    call = CALLS.add_file(
        tmp_path / "a.pdf", tags=["x"], source_path="/a.pdf", metadata={"k": 1}, force_ocr=True, wait=5
    )
    assert call.target == "/api/v1/jobs?wait=5"
    assert call.upload == Upload(
        str(tmp_path / "a.pdf"),
        "a.pdf",
        (("source_path", "/a.pdf"), ("metadata", '{"k": 1}'), ("tags", '["x"]'), ("force_ocr", "true")),
    )


def test_an_answer_that_the_engine_holds_back_may_take_that_much_longer() -> None:
    assert CALLS.add_note("x", wait=100).timeout == CALLS.status().timeout + 100


def test_an_asynchronous_client_needs_one_method() -> None:
    class Later(Calls[Awaitable[Json]]):
        async def send(self, call: Call) -> Json:
            await asyncio.sleep(0)
            return {"target": call.target}

    async def ask() -> Json:
        return await Later().job("j")

    assert asyncio.run(ask()) == {"target": "/api/v1/jobs/j"}


def test_the_frame_of_a_form_holds_its_fields_and_any_file_name() -> None:
    before, after = multipart(Upload("x", 'we"ird\\\r\nname 世.txt', (("title", "Ü"),)), "edge")
    assert before.decode() == (
        '--edge\r\nContent-Disposition: form-data; name="title"\r\n\r\nÜ\r\n'
        '--edge\r\nContent-Disposition: form-data; name="file"; filename="we\\"ird\\\\__name 世.txt"\r\n'
        "Content-Type: application/octet-stream\r\n\r\n"
    )
    assert after == b"\r\n--edge--\r\n"


def test_a_name_that_is_no_text_stays_visible() -> None:
    before, _ = multipart(Upload("x", "\udcff.txt", ()), "edge")
    assert rb"\udcff.txt" in before


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
    engine = Engine.of(Settings(engine_url=url))
    assert (engine.host, engine.port, engine.authority, engine.prefix, engine.secure) == (
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
        Engine.of(Settings(engine_url=url))


def test_a_password_in_the_address_is_refused_and_not_repeated() -> None:
    with pytest.raises(InvalidRequest) as refused:
        Engine.of(Settings(engine_url="http://me:hunter2@host"))
    assert "KB_API_KEY" in refused.value.message
    assert "hunter2" not in refused.value.message


def test_the_key_is_sent_as_a_bearer_token_and_only_when_there_is_one() -> None:
    assert ("Authorization", "Bearer secret") in Engine.of(Settings(api_key="secret")).headers
    assert "Authorization" not in dict(Engine.of(Settings()).headers)


@pytest.mark.parametrize("key", ["two words", "line\nbreak", "schlüssel"])
def test_a_key_that_no_header_can_carry_is_refused(key: str) -> None:
    with pytest.raises(InvalidRequest, match="KB_API_KEY"):
        Engine.of(Settings(api_key=key))


ENGINE = Engine.of(Settings(engine_url="http://127.0.0.1:8000/kb"))


@pytest.mark.parametrize("version", ["3.0.0", "3.0.1rc1", "3.10.0", "4.0.0", "10.0"])
def test_an_engine_of_this_version_or_newer_is_accepted(version: str) -> None:
    assert read_answer(ENGINE, 200, version, b'{"a": 1}') == {"a": 1}


@pytest.mark.parametrize("version", [None, "2.9.9", "2.10", "0.1", "unknown"])
@pytest.mark.parametrize("status", [200, 404])
def test_an_older_engine_is_refused_whatever_it_says(version: str | None, status: int) -> None:
    with pytest.raises(Unavailable, match=r"3\.0\.0 or newer.*http://127\.0\.0\.1:8000/kb"):
        read_answer(ENGINE, status, version, b'{"a": 1}')


@pytest.mark.parametrize(("status", "body"), [(200, b"<html>"), (502, b""), (200, b'["a"]'), (301, b"moved")])
def test_what_is_not_kb_is_called_so(status: int, body: bytes) -> None:
    with pytest.raises(Unavailable, match=f"not a kb engine: it sent HTTP {status}"):
        read_answer(ENGINE, status, None, body)


@pytest.mark.parametrize("kind", every_error())
def test_an_error_body_becomes_the_error(kind: type[KBError]) -> None:
    sent = kind("It went wrong.", field="text")
    with pytest.raises(KBError) as raised:
        read_answer(ENGINE, kind.http_status, "3.0.0", json.dumps(sent.body()).encode())
    assert type(raised.value) is kind
    assert raised.value.body() == sent.body()


@pytest.mark.parametrize(("status", "body"), [(500, b"{}"), (500, b"oops"), (200, b"[]"), (404, b'{"error": "x"}')])
def test_a_broken_answer_of_an_engine_is_an_error(status: int, body: bytes) -> None:
    with pytest.raises(KBError, match=f"HTTP {status}"):
        read_answer(ENGINE, status, "3.0.0", body)


def test_text_is_handed_on_as_it_is() -> None:
    assert read_answer(ENGINE, 200, "3.0.0", "[1] Käse".encode(), plain=True) == {"text": "[1] Käse"}
    with pytest.raises(NotFound):
        read_answer(ENGINE, 404, "3.0.0", json.dumps(NotFound("gone").body()).encode(), plain=True)


@pytest.mark.parametrize(
    "name",
    [name for name in vars(Calls) if not name.startswith("_") and name != "send"],
)
def test_every_call_names_a_route_that_the_engine_has(name: str) -> None:
    from kb.api.app import openapi_document

    arguments: dict[str, Any] = {
        "query": "q",
        "text": "t",
        "path": "a.txt",
        "job_id": "{id}",
        "document_id": "{id}",
        "version": 1,
        "confirm": "DELETE ALL",
    }
    method: Callable[..., Call] = getattr(CALLS, name)
    wanted = Calls.__dict__[name].__code__
    call = method(**{key: arguments[key] for key in wanted.co_varnames[1 : wanted.co_argcount]})
    routes = openapi_document()["paths"]
    assert call.method.lower() in routes[call.path.replace("%7Bid%7D", "{id}")]


def test_not_found_is_what_a_missing_document_raises() -> None:
    with pytest.raises(NotFound):
        read_answer(ENGINE, 404, "3.0.0", json.dumps(NotFound("gone").body()).encode())
