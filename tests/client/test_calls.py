"""Each call is described once, for every transport."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from kb.client.calls import Call, Calls, FileUpload, multipart
from kb.core.types import Json


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
        (CALLS.links(7), "GET", "/api/v1/documents/7/links", None),
        (CALLS.delete_document(7), "DELETE", "/api/v1/documents/7", None),
        (CALLS.delete_document(7, purge=True), "DELETE", "/api/v1/documents/7?purge=true", None),
        (CALLS.trash(limit=5), "GET", "/api/v1/trash?limit=5", None),
        (CALLS.restore_document(7), "POST", "/api/v1/trash/7/restore", None),
        (CALLS.empty_trash(2), "DELETE", "/api/v1/trash?expected_count=2", None),
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
    assert call.upload == FileUpload(
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
    before, after = multipart(FileUpload("x", 'we"ird\\\r\nname 世.txt', (("title", "Ü"),)), "edge")
    assert before.decode() == (
        '--edge\r\nContent-Disposition: form-data; name="title"\r\n\r\nÜ\r\n'
        '--edge\r\nContent-Disposition: form-data; name="file"; filename="we\\"ird\\\\__name 世.txt"\r\n'
        "Content-Type: application/octet-stream\r\n\r\n"
    )
    assert after == b"\r\n--edge--\r\n"


def test_a_name_that_is_no_text_stays_visible() -> None:
    before, _ = multipart(FileUpload("x", "\udcff.txt", ()), "edge")
    assert rb"\udcff.txt" in before


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
        "folder_id": "{id}",
        "version": 1,
        "confirm": "DELETE ALL",
        "expected_count": 1,
    }
    method: Callable[..., Call] = getattr(CALLS, name)
    wanted = Calls.__dict__[name].__code__
    call = method(**{key: arguments[key] for key in wanted.co_varnames[1 : wanted.co_argcount]})
    routes = openapi_document()["paths"]
    assert call.method.lower() in routes[call.path.replace("%7Bid%7D", "{id}")]
