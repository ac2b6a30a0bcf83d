"""Adding notes and files: waiting, identity, duplicates, formats, hostile uploads."""

import json
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from support import Http, StartEngine, eventually

MULTIPART = "multipart/form-data; boundary=b"


def test_without_wait_the_answer_is_a_job_to_follow(http: Http) -> None:
    reply = http("POST", "/api/v1/jobs", {"text": "a note that nobody waits for"})
    assert reply.status == 202
    assert reply.json["status"] == "queued"
    job = http("GET", f"/api/v1/jobs/{reply.json['job_id']}").json
    assert job["kind"] == "note"
    assert set(job) == {
        "id", "kind", "status", "progress", "current_step", "completed_steps", "total_steps", "filename", "document_id",
        "uid", "chunks_created", "error", "attempts", "created_at", "started_at", "finished_at", "elapsed_seconds",
        "estimated_remaining_seconds",
    }  # fmt: skip


def test_with_wait_the_answer_has_the_document(http: Http) -> None:
    reply = http("POST", "/api/v1/jobs?wait=60", {"text": "a note that somebody waits for"})
    assert (reply.status, reply.json["status"]) == (202, "completed")
    job = http("GET", f"/api/v1/jobs/{reply.json['job_id']}").json
    assert (job["status"], job["progress"], job["document_id"]) == ("completed", 1.0, reply.json["document_id"])
    assert job["chunks_created"] == 1


def test_a_completed_job_has_done_all_of_its_steps(http: Http) -> None:
    note = {"text": "a note whose steps are counted"}
    long = "\n\n".join(f"Paragraph {n} of a long file. " + f"word{n} " * 150 for n in range(60)).encode()
    answers = [
        http("POST", "/api/v1/jobs?wait=60", note).json,
        http("POST", "/api/v1/jobs?wait=60", note).json,  # known, so answered at once
        http.add_file("long.txt", long).json,
    ]
    for answer in answers:
        job = http("GET", f"/api/v1/jobs/{answer['job_id']}").json
        assert (job["status"], job["progress"]) == ("completed", 1.0)
        assert job["completed_steps"] == job["total_steps"] >= 1


def test_the_same_note_again_is_the_same_document(http: Http) -> None:
    first = http.add_note("the same note twice", tags=["twice"])
    again = http("POST", "/api/v1/jobs?wait=60", {"text": "the same note twice", "tags": ["twice"]}).json
    assert (again["document_id"], again["duplicate_of"], again["status"]) == (first, first, "completed")


def test_other_tags_make_another_note(http: Http) -> None:
    assert http.add_note("a memory", tags=["agent:a"]) != http.add_note("a memory", tags=["agent:b"])


def test_the_same_bytes_again_add_tags_and_missing_metadata(http: Http) -> None:
    data = b"the same bytes, uploaded twice"
    first = http.add_file("one.txt", data, [("tags", "x"), ("metadata", '{"author": "Ann"}')]).json
    again = http.add_file(
        "two.txt", data, [("tags", '["y", "x"]'), ("metadata", '{"author": "Bob", "year": 2020}')]
    ).json
    assert again["duplicate_of"] == again["document_id"] == first["document_id"]
    document = http("GET", f"/api/v1/documents/{first['document_id']}").json
    assert document["tags"] == ["x", "y"]
    assert document["metadata"] == {"author": "Ann", "year": 2020}
    assert (document["version"], document["filename"]) == (1, "one.txt")
    assert document["updated_at"] is not None


def test_a_title_that_was_missing_is_filled_in_and_searchable(http: Http) -> None:
    data = b"some words without a title of their own"
    first = http.add_file("untitled-thing.txt", data, [("tags", "before")]).json["document_id"]
    again = http.add_file("x.txt", data, [("title", "Xylophone manual"), ("tags", "after")]).json
    assert again["duplicate_of"] == first
    assert [hit["document_id"] for hit in http.search("xylophone", mode="fts")["results"]] == [first]
    document = http("GET", f"/api/v1/documents/{first}").json
    assert (document["title"], document["version"]) == ("Xylophone manual", 1)
    assert document["tags"] == ["before", "after"]


def test_new_content_at_a_known_path_updates_the_document_in_place(http: Http) -> None:
    path = [("source_path", "/tmp/in-place.md")]
    first = http.add_file(
        "in-place.md", b"# Old\n\nThe old okapi", [*path, ("tags", "old"), ("metadata", '{"a": 1}')]
    ).json
    second = http.add_file("in-place.md", b"# New\n\nThe new ocelot", [*path, ("tags", "new")]).json
    assert second["document_id"] == first["document_id"]
    assert "duplicate_of" not in second
    document = http("GET", f"/api/v1/documents/{first['document_id']}").json
    assert (document["version"], document["title"], document["tags"], document["metadata"]) == (
        2,
        "New",
        ["old", "new"],
        {"a": 1},
    )
    assert http.search("okapi", mode="fts")["results"] == []
    assert [hit["document_id"] for hit in http.search("ocelot", mode="fts")["results"]] == [first["document_id"]]


def test_the_same_content_at_another_path_is_another_document(http: Http) -> None:
    one = http.add_file("a.txt", b"in two places", [("source_path", "/tmp/a.txt")]).json["document_id"]
    two = http.add_file("b.txt", b"in two places", [("source_path", "/tmp/b.txt")]).json["document_id"]
    assert one != two


@pytest.mark.parametrize(
    ("filename", "data", "doc_type", "media_type"),
    [
        ("guide.md", b"# Guide\n\ntext", "markdown", "text/markdown"),
        ("notes.txt", b"plain", "text", "text/plain"),
        ("no-extension", b"plain too", "text", "text/plain"),
        ("data.csv", b"a,b\n1,2", "text", "text/csv"),
        ("data.json", b'{"a": 1}', "text", "application/json"),
        ("main.py", b"def main(): pass", "code", "text/plain"),
        ("script", b"#!/bin/sh\necho hi", "code", "text/plain"),
        ("Makefile", b"all:\n\techo", "code", "text/plain"),
        ("old.txt", "Grüße aus Köln".encode("latin-1"), "text", "text/plain"),
        ("wide.txt", "Grüße aus Köln zwei".encode("utf-16"), "text", "text/plain"),
        ("bom.txt", b"\xef\xbb\xbfwith a mark", "text", "text/plain"),
    ],
)
def test_types_are_recognised(http: Http, filename: str, data: bytes, doc_type: str, media_type: str) -> None:
    reply = http.add_file(filename, data).json
    document = http("GET", f"/api/v1/documents/{reply['document_id']}").json
    assert (document["doc_type"], document["media_type"], document["filename"]) == (doc_type, media_type, filename)
    assert document["size_bytes"] == len(data)
    reasons = {
        "old.txt": "read as Windows-1252",
        "wide.txt": "read as UTF-16",
        "data.csv": "2 columns, named by the first row, separated by commas",
        "data.json": "1 values with their paths",
    }
    assert document["ledger"] == [{"part": "text", "state": "ok", "reason": reasons.get(filename)}]


def test_old_encodings_come_out_as_text(http: Http) -> None:
    id_ = http.add_file("köln.txt", "Straße nach Köln-Ehrenfeld".encode("latin-1")).json["document_id"]
    assert http("GET", f"/api/v1/documents/{id_}").json["chunks"][0]["text"] == "Straße nach Köln-Ehrenfeld"


@pytest.mark.parametrize("data", [b"7z\xbc\xaf....", b"\xd0\xcf\x11\xe0....", b"Rar!....", b"\x00\x01\x02binary"])
def test_what_is_not_supported_is_refused_with_the_list(http: Http, data: bytes) -> None:
    refused = http.add_file("thing.md", data)
    assert (refused.status, refused.json["error"]["code"]) == (415, "unsupported_format")
    assert "Supported: PDF, DOCX" in refused.json["error"]["message"]


def test_zero_bytes_are_refused(http: Http) -> None:
    refused = http.add_file("empty.txt", b"")
    assert (refused.status, refused.json["error"]["code"]) == (422, "invalid_request")


def test_white_space_only_ends_as_a_failed_job(http: Http) -> None:
    reply = http.add_file("blank.txt", b" \n\n\t ").json
    assert reply["status"] == "failed"
    assert http("GET", f"/api/v1/jobs/{reply['job_id']}").json["error"]["code"] == "no_text"


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\\\Users\\\\a.txt", "a.txt"),
        ("/abs/olute.txt", "olute.txt"),
        ("..", "upload"),
    ],
)
def test_path_like_names_are_only_names(http: Http, given: str, stored: str) -> None:
    reply = http.add_file(given, f"content of {given}".encode()).json
    assert http("GET", f"/api/v1/documents/{reply['document_id']}").json["filename"] == stored


@pytest.mark.parametrize(
    ("raw", "content_type", "problem"),
    [
        (b"{", "application/json", "JSON"),
        (b'{"text": "x", "txet": "y"}', "application/json", "txet"),
        (b'{"text": 5}', "application/json", "text"),
        (b'{"text": "\\ud800"}', "application/json", "not valid"),
        (b'{"text": "\xff"}', "application/json", "not valid"),
        (b'{"text": "x", "tags": ["a\\nb"]}', "application/json", "tags.0"),
        (b"text", "text/plain", "Content-Type"),
        (b"", "multipart/form-data", "boundary"),
        (b"--b\r\n", MULTIPART, "ends too early"),
        (b"--b--\r\n", MULTIPART, "No file"),
        (b'--b\r\nContent-Disposition: form-data; name="evil"\r\n\r\nx\r\n--b--\r\n', MULTIPART, "evil"),
        (b"complete nonsense", MULTIPART, "cannot be read"),
    ],
)
def test_a_request_that_cannot_be_understood_says_what_is_wrong(
    http: Http, raw: bytes, content_type: str, problem: str
) -> None:
    refused = http("POST", "/api/v1/jobs", raw=raw, Content_Type=content_type)
    assert (refused.status, refused.json["error"]["code"]) == (422, "invalid_request")
    assert problem in refused.json["error"]["message"]


@pytest.mark.parametrize("wait", ["-1", "301", "nan", "x"])
def test_wait_has_bounds(http: Http, wait: str) -> None:
    assert http("POST", f"/api/v1/jobs?wait={wait}", {"text": "x"}).status == 422


def test_jobs_are_listed_newest_first_and_by_status(http: Http) -> None:
    http.add_note("one more job for the list")
    jobs = http("GET", "/api/v1/jobs?limit=5").json
    assert jobs["total"] >= len(jobs["jobs"])
    stamps = [job["created_at"] for job in jobs["jobs"]]
    assert stamps == sorted(stamps, reverse=True)
    failed = http("GET", "/api/v1/jobs?status=failed").json["jobs"]
    assert all(job["status"] == "failed" for job in failed)
    assert http("GET", "/api/v1/jobs?status=nope").status == 422
    assert http("GET", "/api/v1/jobs/nope").status == 404


def test_a_failed_job_can_be_retried_and_a_finished_one_cannot(http: Http) -> None:
    failed = http.add_file("blank-again.txt", b"\n\n \n").json["job_id"]
    again = http("POST", f"/api/v1/jobs/{failed}/retry")
    assert (again.status, again.json["status"], again.json["error"]) == (200, "queued", None)
    done = http("POST", "/api/v1/jobs?wait=60", {"text": "a job that is done"}).json["job_id"]
    for action in ("retry", "cancel"):
        refused = http("POST", f"/api/v1/jobs/{done}/{action}")
        assert (refused.status, refused.json["error"]["code"]) == (409, "conflict")


def test_a_cancelled_job_leaves_nothing_and_can_be_retried(start_engine: StartEngine) -> None:
    own = Http(start_engine().url)
    text = "\n\n".join(f"The cancelled capybara number {n} went swimming in the river." for n in range(3000)).encode()
    job_id = own.add_file("long.txt", text, wait=0).json["job_id"]
    assert own("POST", f"/api/v1/jobs/{job_id}/cancel").status == 200
    assert own.ended(job_id)["status"] == "cancelled"
    status = own("GET", "/api/v1/status").json
    assert (status["documents"]["total"], status["chunks"]) == (0, 0)
    assert own.search("capybara")["results"] == []
    assert own("POST", f"/api/v1/jobs/{job_id}/retry").json["status"] == "queued"


def test_events_follow_a_job_to_its_end(http: Http) -> None:
    text = "\n\n".join(f"Event paragraph {n} is long enough to be counted as one. " * 4 for n in range(60)).encode()
    job_id = http.add_file("events.txt", text, wait=0).json["job_id"]
    stream = http("GET", f"/api/v1/jobs/{job_id}/events")
    assert stream.headers["content-type"].startswith("text/event-stream")
    events = [block.split("\n") for block in stream.body.decode().strip().split("\n\n")]
    kinds = [lines[0] for lines in events]
    assert kinds[-1] == "event: end"
    assert set(kinds[:-1]) <= {"event: progress"}
    jobs = [json.loads(lines[1].removeprefix("data: ")) for lines in events]
    assert [job["progress"] for job in jobs] == sorted(job["progress"] for job in jobs)
    assert (jobs[-1]["status"], jobs[-1]["progress"]) == ("completed", 1.0)
    assert http("GET", "/api/v1/jobs/nope/events").status == 404


def test_the_same_file_from_ten_clients_at_once_is_one_document(http: Http) -> None:
    data = b"ten clients send this at the very same moment"
    with ThreadPoolExecutor(10) as clients:
        replies = list(
            clients.map(lambda n: http.add_file(f"{n}.txt", data, [("tags", f"client-{n}")]).json, range(10))
        )
    (document_id,) = {reply["document_id"] for reply in replies}
    document = http("GET", f"/api/v1/documents/{document_id}").json
    assert sorted(document["tags"]) == sorted(f"client-{n}" for n in range(10))
    assert len(http.search("ten clients very same moment", mode="fts", tags=["client-3"])["results"]) == 1


def test_ten_writers_of_one_path_leave_the_last_accepted_content(http: Http) -> None:
    def put(number: int) -> str:
        text = f"content number {number} at a contested path"
        reply = http("POST", "/api/v1/jobs", {"text": text, "source_path": "contested/path.md"}).json
        return str(reply["job_id"])

    with ThreadPoolExecutor(10) as writers:
        job_ids = list(writers.map(put, range(10)))
    jobs = [http.ended(job_id) for job_id in job_ids]
    assert {job["status"] for job in jobs} == {"completed"}
    (document_id,) = {job["document_id"] for job in jobs}
    listed = http("GET", "/api/v1/documents?source_path=contested/path.md").json
    assert listed["total"] == 1
    newest_first = [job["id"] for job in http("GET", "/api/v1/jobs?limit=1000").json["jobs"]]
    last = min(job_ids, key=newest_first.index)
    wanted = f"content number {job_ids.index(last)} at a contested path"
    assert http("GET", f"/api/v1/documents/{document_id}").json["text"] == wanted


def test_a_retried_job_counts_as_the_latest(start_engine: StartEngine) -> None:
    own = Http(start_engine().url)
    text = "\n\n".join(f"Version one of the manatee file, paragraph {n}." for n in range(2000)).encode()
    path = [("source_path", "/manatee.txt")]
    job_id = own.add_file("manatee.txt", text, path, wait=0).json["job_id"]
    own("POST", f"/api/v1/jobs/{job_id}/cancel")
    assert own.ended(job_id)["status"] == "cancelled"
    second = own.add_file("manatee.txt", b"Version two of the manatee file.", path).json["document_id"]
    own("POST", f"/api/v1/jobs/{job_id}/retry")
    assert own.ended(job_id)["status"] == "completed"
    document = own("GET", f"/api/v1/documents/{second}").json
    assert (document["version"], document["chunks"][0]["text"][:11]) == (2, "Version one")


def test_a_waiting_update_still_names_its_document(http: Http) -> None:
    note = http.add_note("named at once", source_path="named/at-once.md")
    update = {"text": "named again " * 3000, "source_path": "named/at-once.md"}
    assert http("POST", "/api/v1/jobs?wait=0.01", update).json["document_id"] == note


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_metadata_that_is_no_json_is_refused(http: Http, number: str) -> None:
    metadata = json.dumps({"x": float(number)})  # Python writes them, though they are no JSON
    assert number in metadata
    body = f'{{"text": "a note with odd numbers", "metadata": {metadata}}}'
    reply = http("POST", "/api/v1/jobs", raw=body.encode(), Content_Type="application/json")
    assert (reply.status, reply.json["error"]["code"]) == (422, "invalid_request")
    reply = http.add_file("odd.txt", b"odd numbers", [("metadata", metadata)])
    assert (reply.status, reply.json["error"]["code"]) == (422, "invalid_request")


def test_a_job_that_cuts_an_endless_line_can_be_cancelled(http: Http) -> None:
    job_id = http.add_file("endless.txt", b".,;:!?-()/" * 800_000, wait=0).json["job_id"]
    eventually(lambda: http.job(job_id)["status"] != "queued")
    time.sleep(1)  # cutting alone takes ten seconds
    asked = time.monotonic()
    assert http("POST", f"/api/v1/jobs/{job_id}/cancel").status == 200
    assert http.ended(job_id)["status"] == "cancelled"
    assert time.monotonic() - asked < 5  # a tenth of a second, on a machine with nothing else to do
