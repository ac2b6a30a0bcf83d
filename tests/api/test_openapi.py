"""The OpenAPI document is true: whatever is sent, every answer is one that the document describes, and never a 500.

`KB_FUZZ_EXAMPLES` sets how many requests each route gets in each mode; `make fuzz` raises it. The stream of events of a
job is left out: it lasts as long as the job; `test_jobs.py` follows it.
"""

import json
import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from kb.api.app import openapi_document
from kb.core.errors import every_error
from made import pdf
from support import EngineProcess, Http

EXAMPLES = int(os.environ.get("KB_FUZZ_EXAMPLES", "5"))
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
KINDS = [
    "application/json",
    "application/json; charset=utf-16",
    "multipart/form-data; boundary=b",
    "multipart/form-data; boundary=",
    "multipart/form-data; boundary=" + "b" * 300,
    "application/x-www-form-urlencoded",
    "text/plain",
    "",
    ";",
    "\xff",
]
MULTIPART = (
    b'--b\r\nContent-Disposition: form-data; name="tags"\r\n\r\n["red"]\r\n'
    b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\nContent-Type: text/plain\r\n\r\n'
    b"some text\r\n--b--\r\n"
)
ALL_CODES = {(cls.code, cls.http_status, cls.retryable) for cls in every_error()}

schema = schemathesis.openapi.from_dict(openapi_document())
operations = {
    operation.label: operation
    for result in schema.get_all_operations()
    if isinstance(result, Ok) and not (operation := result.ok()).path.endswith("/events")
}
relaxed = settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    derandomize="KB_FUZZ_EXAMPLES" not in os.environ,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)


class Sent:
    """How many requests there were."""

    count = 0


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Http]:
    """An engine of its own: some of the requests delete everything."""
    process = EngineProcess(tmp_path_factory.mktemp("openapi") / "data")
    yield Http(process.url)
    assert process.stop() == 0, process.log.read_text()
    assert "Traceback" not in process.log.read_text()
    sys.stdout.write(f"\n{Sent.count} requests to {len(operations)} operations\n")


def modes() -> Iterator[Any]:
    """Each operation with what it allows, and, when it takes anything, with what it does not."""
    for label, operation in operations.items():
        about = operation.definition.raw
        takes = about.get("parameters") or about.get("requestBody")
        for mode in [GenerationMode.POSITIVE, GenerationMode.NEGATIVE] if takes else [GenerationMode.POSITIVE]:
            yield pytest.param(label, mode, id=f"{label} {mode.value}")


def known_ids(http: Http) -> list[str]:
    """Ids that exist now, so that not every answer is 404: of notes, of files, of jobs."""
    documents = http("GET", "/api/v1/documents?limit=20").json["documents"]
    if len(documents) < 4:
        http.add_note("A note for strangers to work on")
        http.add_note("Another one", tags=["red"], source_path="/openapi/note.md")
        http.add_file("file.md", b"# A file\n\nfor strangers")
        http.add_file("file.pdf", pdf(["A page for strangers to look at"]))
        return known_ids(http)
    jobs = http("GET", "/api/v1/jobs?limit=5").json["jobs"]
    return [*(str(document["id"]) for document in documents), documents[0]["uid"], *(job["id"] for job in jobs)]


def check_error(status: int, body: bytes) -> None:
    """The one error shape, with a code that belongs to the status."""
    error = json.loads(body)["error"]
    assert set(error) == {"code", "message", "retryable", "details"}, error
    assert (error["code"], status, error["retryable"]) in ALL_CODES, error
    assert error["message"], error


@pytest.mark.parametrize(("label", "mode"), list(modes()))
def test_every_answer_is_as_documented(engine: Http, label: str, mode: GenerationMode) -> None:
    operation = operations[label]
    ids = known_ids(engine)

    @relaxed
    @given(case=operation.as_strategy(generation_mode=mode), real=st.sampled_from([None, *ids]), lot=st.integers(0, 19))
    def send(case: Any, real: str | None, lot: int) -> None:
        if "id" in (case.path_parameters or {}) and real is not None:
            case.path_parameters |= {"id": real}
        if label == "DELETE /api/v1/documents" and lot == 0:
            case.query = {"confirm": "DELETE ALL"}
        Sent.count += 1
        answer = case.call(base_url=engine.url, timeout=60)
        case.validate_response(answer, checks=CHECKS)
        assert "x-kb-version" in answer.headers
        if answer.status_code >= 400:
            check_error(answer.status_code, answer.content)

    send()


@pytest.mark.parametrize("label", list(operations))
def test_every_route_says_that_it_may_refuse(label: str) -> None:
    """A foreign host name is refused everywhere, a missing key everywhere but at `/health`."""
    documented = operations[label].definition.raw["responses"]
    assert {"401", "403"} - set(documented) <= ({"401"} if label == "GET /health" else set())


WRITING = [("POST", "/api/v1/jobs"), ("POST", "/api/v1/search"), ("PATCH", "/api/v1/notes/1"),
           ("POST", "/api/v1/documents/1/tags"), ("POST", "/api/v1/notes/1/restore")]  # fmt: skip


@pytest.mark.parametrize(("method", "path"), WRITING)
def test_any_bytes_under_any_content_type_get_an_answer(engine: Http, method: str, path: str) -> None:
    valid = st.sampled_from([MULTIPART, b'{"text": "x"}', b'{"query": "x"}', b"{}", b"[" * 5000, b'{"version": 1e999}'])
    bodies = st.one_of(
        st.binary(max_size=200), valid, st.builds(mutated, valid, st.integers(0, 400), st.binary(max_size=3))
    )

    @relaxed
    @given(body=bodies, kind=st.sampled_from(KINDS))
    def send(body: bytes, kind: str) -> None:
        Sent.count += 1
        answer = engine(method, path, raw=body, Content_Type=kind)
        assert answer.status < 500, answer.body
        if answer.status >= 400:
            check_error(answer.status, answer.body)

    send()


def mutated(data: bytes, at: int, instead: bytes) -> bytes:
    at %= max(len(data), 1)
    return data[:at] + instead + data[at + 1 :]


@pytest.mark.parametrize(
    "target",
    [
        "/api/v1/documents?source_path=%00",
        "/api/v1/documents?tag=%00&tag=%ff",
        "/api/v1/documents?tag=%ED%A0%80",
        "/api/v1/documents?limit=99999999999999999999999999",
        "/api/v1/documents?offset=9223372036854775808",
        "/api/v1/documents?offset=9223372036854775807",
        "/api/v1/documents?limit=1e3",
        "/api/v1/documents?limit=%D9%A1",
        "/api/v1/documents?&&==&=",
        "/api/v1/documents/%00",
        "/api/v1/documents/99999999999999999999999999",
        "/api/v1/documents/-1",
        "/api/v1/documents/1%2F..%2F2",
        "/api/v1/documents/1?first_chunk=9223372036854775807&max_chunks=9223372036854775807",
        "/api/v1/documents/1/text?start=9223372036854775807&end=0",
        "/api/v1/documents/%ff/original",
        "/api/v1/jobs/%00",
        "/api/v1/jobs?status=%00",
        "/api/v1/notes/%F0%9F%92%A9/versions",
        "/api/v1/no-such-route",
        "/api/v1",
        "//",
        "/api/v1/documents/" + "9" * 5000,
    ],
)
@pytest.mark.parametrize("method", ["GET", "PUT", "OPTIONS", "NONSENSE"])
def test_strange_addresses_get_a_plain_answer(engine: Http, method: str, target: str) -> None:
    answer = engine(method, target)
    assert answer.status < 500, answer.body
    if answer.status >= 400:
        check_error(answer.status, answer.body)


def test_the_document_says_which_routes_need_the_key() -> None:
    document = openapi_document()
    assert document["components"]["securitySchemes"]["key"]["scheme"] == "bearer"
    unlocked = {
        path for path, methods in document["paths"].items() for about in methods.values() if not about.get("security")
    }
    assert unlocked == {"/health"}
