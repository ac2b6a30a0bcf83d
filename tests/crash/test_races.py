"""Requests that cross each other while the queue is busy: the last one accepted wins, and no file is taken away."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kb.engine.assembly import small_concurrency
from support import EngineProcess, Http, eventually

LONG = "\n\n".join(f"Paragraph {number} keeps the worker busy with walruses and ledgers." * 4 for number in range(80))


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("races") / "data"


@pytest.fixture(scope="module")
def http(data_dir: Path) -> Iterator[Http]:
    """One engine for all: what a test adds has paths of its own."""
    engine = EngineProcess(data_dir)
    yield Http(engine.url)
    assert engine.stop() == 0, engine.log.read_text()


def keep_busy(http: Http, with_what: str) -> None:
    """Jobs ahead of all others, as many as run at once."""
    for number in range(small_concurrency()):
        http.add_file("long.txt", LONG.replace("walrus", f"{with_what} {number}").encode(), wait=0)


def test_going_back_to_an_old_content_wins_over_a_newer_one_that_still_waits(http: Http) -> None:
    at = {"source_path": "/race/note.md"}
    id_ = http.add_note("the first content", **at)
    keep_busy(http, "newt")
    second = http("POST", "/api/v1/jobs", {"text": "the second content", **at}).json["job_id"]
    again = http("POST", "/api/v1/jobs", {"text": "the first content", **at}).json["job_id"]
    assert [http.ended(job)["status"] for job in (second, again)] == ["completed", "completed"]
    assert http("GET", f"/api/v1/documents/{id_}").json["text"] == "the first content"


def test_an_edit_while_the_new_content_of_its_path_waits_is_not_replaced(http: Http) -> None:
    at = {"source_path": "/race/edited.md"}
    id_ = http.add_note("the text that the path brought", **at)
    keep_busy(http, "vole")
    job_id = http("POST", "/api/v1/jobs", {"text": "the newer text of the path", **at}).json["job_id"]
    assert http("PATCH", f"/api/v1/notes/{id_}", {"text": "the text that was edited in kb"}).status == 200
    job = http.ended(job_id)
    assert (job["status"], job["error"]["code"]) == ("failed", "conflict")
    assert "edited in kb" in job["error"]["message"]
    texts = [version["text"] for version in http("GET", f"/api/v1/notes/{id_}/versions").json["versions"]]
    assert texts == ["the text that was edited in kb", "the text that the path brought"]


def test_purging_a_document_leaves_the_file_to_a_job_that_needs_it(http: Http) -> None:
    data = b"bytes that two paths share"
    first = http.add_file("a.txt", data, [("source_path", "/race/a.txt")]).json["document_id"]
    keep_busy(http, "ibex")
    job_id = http.add_file("b.txt", data, [("source_path", "/race/b.txt")], wait=0).json["job_id"]
    assert http("DELETE", f"/api/v1/documents/{first}?purge=true").status == 200
    job = http.ended(job_id)
    assert job["status"] == "completed", job
    assert http("GET", f"/api/v1/documents/{job['document_id']}/original").body == data


def test_a_replaced_original_is_gone_at_once(http: Http, data_dir: Path) -> None:
    at = [("source_path", "/race/replaced.txt")]
    http.add_file("replaced.txt", b"the old bytes", at)
    http.add_file("replaced.txt", b"the new bytes", at)
    held = [file.read_bytes() for file in (data_dir / "originals").glob("*/*")]
    assert b"the new bytes" in held
    assert b"the old bytes" not in held


def test_deleting_a_document_while_its_new_content_is_prepared_loses_nothing_that_was_accepted(http: Http) -> None:
    at = [("source_path", "/race/growing.txt")]
    data = 3 * LONG.replace("walrus", "okapi").encode()
    first = http.add_file("growing.txt", b"short at first", at).json["document_id"]
    job_id = http.add_file("growing.txt", data, at, wait=0).json["job_id"]
    eventually(lambda: http.job(job_id)["completed_steps"] > 0)
    assert http("DELETE", f"/api/v1/documents/{first}").status == 200
    job = http.ended(job_id)
    assert (job["status"], job["error"]) == ("completed", None)
    assert http("GET", f"/api/v1/documents/{job['document_id']}/original").body == data
    assert http("GET", "/api/v1/documents?source_path=/race/growing.txt").json["total"] == 1


def test_a_file_that_was_overtaken_while_it_waited_is_not_kept(http: Http, data_dir: Path) -> None:
    at = [("source_path", "/race/overtaken.txt")]
    http.add_file("overtaken.txt", b"the first bytes", at)
    keep_busy(http, "stoat")
    jobs = [
        http.add_file("overtaken.txt", data, at, wait=0).json["job_id"] for data in (b"overtaken", b"the first bytes")
    ]
    assert [http.ended(job)["status"] for job in jobs] == ["completed", "completed"]
    held = [file.read_bytes() for file in (data_dir / "originals").glob("*/*")]
    assert b"the first bytes" in held
    assert b"overtaken" not in held


def test_clearing_all_while_a_job_runs_cancels_it(http: Http) -> None:
    job_id = http.add_file("cleared.txt", 3 * LONG.replace("walrus", "gecko").encode(), wait=0).json["job_id"]
    eventually(lambda: http.job(job_id)["completed_steps"] > 0)
    assert http("DELETE", "/api/v1/documents?confirm=DELETE%20ALL").status == 200
    assert http.ended(job_id)["status"] == "cancelled"
    assert http("GET", "/api/v1/documents").json["total"] == 0
