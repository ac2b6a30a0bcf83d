"""One change to many documents: the number has to be right, and a restart loses nothing."""

import signal
from pathlib import Path
from typing import Any

import pytest

from support import Http, Reply, StartEngine

BULK = "/api/v1/documents/bulk"


def bulk(http: Http, wait: int = 60, **body: Any) -> Reply:
    return http("POST", f"{BULK}?wait={wait}" if wait else BULK, body)


def tags(http: Http, id_: int) -> list[str]:
    return list(http("GET", f"/api/v1/documents/{id_}").json["tags"])


def test_tags_of_many_documents_change_in_one_job(http: Http) -> None:
    ids = [http.add_note(f"kowari {n}", tags=["kowari", f"k{n}"]) for n in range(4)]
    reply = bulk(http, ids=ids[:3], expected_count=3, add_tags=["seen", "kowari"], remove_tags=["k0", "k1"])
    assert (reply.status, reply.json["status"]) == (202, "completed")
    assert [tags(http, id_) for id_ in ids] == [
        ["kowari", "seen"], ["kowari", "seen"], ["kowari", "k2", "seen"], ["kowari", "k3"],
    ]  # fmt: skip
    job = http("GET", f"/api/v1/jobs/{reply.json['job_id']}").json
    assert (job["kind"], job["progress"], job["document_id"], job["error"]) == ("bulk", 1.0, None, None)
    assert {hit["document_id"] for hit in http.search("kowari", tags=["seen"])["results"]} == set(ids[:3])


def test_a_filter_means_what_the_list_shows(http: Http) -> None:
    for n in range(3):
        http.add_note(f"dibbler {n}", tags=["dibbler", "even" if n % 2 == 0 else "odd"])
    file = http.add_file("dibbler.md", b"# A dibbler", [("tags", "dibbler"), ("source_path", "/dibbler.md")])
    shown = http("GET", "/api/v1/documents?view=summary&tag=dibbler&tag=even&doc_type=note").json
    body: dict[str, Any] = {
        "filter": {"tag": ["dibbler", "even"], "doc_type": "note"},
        "expected_count": shown["total"],
    }
    assert bulk(http, **body, add_tags=["dibbler-chosen"]).json["status"] == "completed"
    chosen = http("GET", "/api/v1/documents?tag=dibbler-chosen").json
    assert sorted(d["id"] for d in chosen["documents"]) == sorted(d["id"] for d in shown["documents"])
    path = bulk(http, filter={"source_path": "/dibbler.md"}, expected_count=1, delete=True)
    assert path.json["status"] == "completed"
    assert http("GET", f"/api/v1/documents/{file.json['document_id']}").status == 404
    later: dict[str, Any] = {"filter": {"tag": ["dibbler"], "created_after": "2100-01-01"}, "expected_count": 0}
    assert bulk(http, **later, delete=True).json["status"] == "completed"


def test_deleted_documents_are_gone_from_everything(http: Http) -> None:
    ids = [http.add_note(f"kultarr {n}", tags=["kultarr"]) for n in range(45)]
    uid = http("GET", f"/api/v1/documents/{ids[0]}").json["uid"]
    reply = bulk(http, ids=[uid, *ids[1:], ids[1]], expected_count=45, delete=True)
    assert reply.json["status"] == "completed"
    assert http.search("kultarr", mode="fts")["results"] == []
    assert http("GET", "/api/v1/documents?tag=kultarr").json["total"] == 0


@pytest.mark.parametrize("expected", [0, 1, 3, 1000])
def test_a_wrong_number_changes_nothing(http: Http, expected: int) -> None:
    ids = [http.add_note(f"ningaui {n}", tags=["ningaui"]) for n in range(2)]
    choices: list[dict[str, Any]] = [{"ids": ids}, {"filter": {"tag": ["ningaui"]}}]
    for chosen in choices:
        refused = bulk(http, **chosen, expected_count=expected, delete=True)
        assert (refused.status, refused.json["error"]["code"]) == (409, "conflict")
        assert refused.json["error"]["details"]["count"] == 2
    gone = bulk(http, ids=[*ids, 999_999_999], expected_count=3, delete=True)
    assert gone.status == 409
    assert [tags(http, id_) for id_ in ids] == [["ningaui"], ["ningaui"]]


@pytest.mark.parametrize(
    "wrong",
    [
        {"ids": [1], "expected_count": 1},
        {"expected_count": 1, "delete": True},
        {"ids": [1], "filter": {}, "expected_count": 1, "delete": True},
        {"ids": [1], "delete": True},
        {"ids": [1], "expected_count": 1, "delete": True, "add_tags": ["x"]},
        {"ids": [1], "expected_count": 1, "delete": False},
        {"ids": [1], "expected_count": -1, "delete": True},
        {"ids": [1], "expected_count": "1", "delete": True},
        {"ids": [True], "expected_count": 1, "delete": True},
        {"ids": [0], "expected_count": 1, "delete": True},
        {"ids": 1, "expected_count": 1, "delete": True},
        {"ids": [1], "expected_count": 1, "add_tags": [" "]},
        {"filter": {"tags": ["x"]}, "expected_count": 0, "delete": True},
        {"filter": {"q": "x"}, "expected_count": 0, "delete": True},
        {"filter": {"tag": "x"}, "expected_count": 0, "delete": True},
        {"filter": {"doc_type": "x"}, "expected_count": 0, "delete": True},
        {"filter": {"created_after": "soon"}, "expected_count": 0, "delete": True},
        {"ids": [1], "expected_count": 1, "delete": True, "force": True},
        {"ids": [1] * 100_001, "expected_count": 1, "delete": True},
    ],
)
def test_what_cannot_be_meant_is_refused(http: Http, wrong: dict[str, Any]) -> None:
    refused = http("POST", BULK, wrong)
    assert (refused.status, refused.json["error"]["code"]) == (422, "invalid_request")


def test_what_was_begun_is_completed_after_a_kill(tmp_path: Path, start_engine: StartEngine) -> None:
    engine = start_engine(tmp_path / "data")
    http = Http(engine.url)
    jobs = [http("POST", "/api/v1/jobs", {"text": f"planigale {n}", "tags": ["p"]}).json["job_id"] for n in range(300)]
    for job_id in jobs:
        http.ended(job_id)
    accepted = bulk(http, 0, filter={"tag": ["p"]}, expected_count=300, delete=True).json
    for _ in range(2000):
        if http("GET", "/api/v1/documents?tag=p&limit=1").json["total"] < 300:
            break
    engine.stop(signal.SIGKILL)
    again = Http(start_engine(tmp_path / "data").url)
    ended = again.ended(accepted["job_id"])
    assert (ended["status"], ended["error"]) == ("completed", None)
    assert again("GET", "/api/v1/documents?tag=p").json["total"] == 0
    assert again("GET", "/api/v1/doctor").json["healthy"]


def test_a_cancelled_job_stops_between_batches_and_can_go_on(start_engine: StartEngine) -> None:
    http = Http(start_engine().url)
    for attempt in range(5):  # a fast machine may be done before the request to cancel arrives
        tag = f"antechinus{attempt}"
        texts = [{"text": f"{tag} {n}", "tags": [tag]} for n in range(300)]
        for job_id in [http("POST", "/api/v1/jobs", text).json["job_id"] for text in texts]:
            http.ended(job_id)
        job_id = bulk(http, 0, filter={"tag": [tag]}, expected_count=300, delete=True).json["job_id"]
        for _ in range(2000):
            if http("GET", f"/api/v1/documents?tag={tag}&limit=1").json["total"] < 300:
                break
        http("POST", f"/api/v1/jobs/{job_id}/cancel")
        if http.ended(job_id)["status"] == "cancelled":
            break
    left = http("GET", f"/api/v1/documents?tag={tag}&limit=1").json["total"]
    assert 0 < left < 300
    assert left % 20 == 0
    http("POST", f"/api/v1/jobs/{job_id}/retry")
    assert http.ended(job_id)["status"] == "completed"
    assert http("GET", f"/api/v1/documents?tag={tag}&limit=1").json["total"] == 0
