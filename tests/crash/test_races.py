"""Requests that cross each other while the queue is busy: the last one accepted wins, and no file is taken away."""

from pathlib import Path

import pytest

from support import Http, StartEngine

LONG = "\n\n".join(f"Paragraph {number} keeps the worker busy with walruses and ledgers." * 4 for number in range(200))


@pytest.fixture
def http(start_engine: StartEngine) -> Http:
    return Http(start_engine().url)


def keep_busy(http: Http) -> str:
    """A job ahead of all others; its id."""
    http.add_note("the model is loaded")
    return str(http.add_file("long.txt", LONG.encode(), wait=0).json["job_id"])


def test_going_back_to_an_old_content_wins_over_a_newer_one_that_still_waits(http: Http) -> None:
    at = {"source_path": "/race/note.md"}
    id_ = http.add_note("the first content", **at)
    keep_busy(http)
    second = http("POST", "/api/v1/jobs", {"text": "the second content", **at}).json["job_id"]
    again = http("POST", "/api/v1/jobs", {"text": "the first content", **at}).json["job_id"]
    assert [http.ended(job)["status"] for job in (second, again)] == ["completed", "completed"]
    assert http("GET", f"/api/v1/documents/{id_}").json["text"] == "the first content"


def test_deleting_a_document_leaves_the_file_to_a_job_that_needs_it(http: Http) -> None:
    data = b"bytes that two paths share"
    first = http.add_file("a.txt", data, [("source_path", "/race/a.txt")]).json["document_id"]
    keep_busy(http)
    job_id = http.add_file("b.txt", data, [("source_path", "/race/b.txt")], wait=0).json["job_id"]
    assert http("DELETE", f"/api/v1/documents/{first}").status == 200
    job = http.ended(job_id)
    assert job["status"] == "completed", job
    assert http("GET", f"/api/v1/documents/{job['document_id']}/original").body == data


def test_a_replaced_original_is_gone_at_once(http: Http, tmp_path: Path) -> None:
    at = [("source_path", "/race/replaced.txt")]
    http.add_file("replaced.txt", b"the old bytes", at)
    http.add_file("replaced.txt", b"the new bytes", at)
    files = list((tmp_path / "data" / "originals").glob("*/*"))
    assert [file.read_bytes() for file in files] == [b"the new bytes"]
