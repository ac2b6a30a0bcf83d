"""Lists that a page shows: summaries, words of titles, states of parts; and the ledger page by page."""

from typing import Any
from urllib.parse import urlencode

import pytest

from made import pptx, shape
from support import Http

SUMMARY = {
    "id", "uid", "title", "filename", "source_path", "doc_type", "media_type", "size_bytes", "tags", "chunk_count",
    "version", "created_at", "updated_at", "processing_method", "ledger_counts",
}  # fmt: skip


def listed(http: Http, **asked: Any) -> Any:
    reply = http("GET", "/api/v1/documents?" + urlencode(asked, doseq=True))
    assert reply.status == 200, reply.body
    return reply.json


def ids(answer: Any) -> list[int]:
    return [document["id"] for document in answer["documents"]]


@pytest.fixture(scope="module")
def slides(engine_url: str) -> int:
    """A presentation with 3 slides, of which the second cannot be read."""
    broken = pptx([shape("First"), "<p:broken>", shape("Third")])
    added = Http(engine_url).add_file("quokka-slides.pptx", broken, [("tags", "quokka")])
    assert added.json["status"] == "completed", added.body
    return int(added.json["document_id"])


def test_a_summary_counts_the_ledger_and_leaves_out_what_is_heavy(http: Http, slides: int) -> None:
    (row,) = listed(http, view="summary", tag="quokka")["documents"]
    assert set(row) == SUMMARY
    assert row["ledger_counts"] == {"ok": 2, "failed": 1}
    (whole,) = listed(http, tag="quokka")["documents"]
    assert {name: row[name] for name in SUMMARY - {"ledger_counts"}} == {
        name: whole[name] for name in SUMMARY - {"ledger_counts"}
    }
    one = http("GET", f"/api/v1/documents/{slides}?view=summary").json
    assert one == row | {"metadata": whole["metadata"], "content_hash": whole["content_hash"]}


def test_a_list_can_hold_only_documents_with_failed_parts(http: Http, slides: int) -> None:
    http.add_note('a note that says "state": "failed", and only says so', tags=["quokka-note"])
    failed = listed(http, view="summary", state="failed")
    assert slides in ids(failed)
    assert all(row["ledger_counts"]["failed"] for row in failed["documents"])
    assert failed["total"] == len(failed["documents"])
    assert ids(listed(http, state="failed", tag="quokka")) == [slides]
    assert ids(listed(http, view="summary", state="", q="", tag="quokka")) == [slides]  # empty: any


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("numbatology", True),
        ("NUMBATOLOGY", True),
        ("straßen numbatology", True),
        ("STRASSEN", True),
        ("annual numbat", True),
        ("numbat-file_2031", True),
        ("2031.md", True),
        ("会議", True),
        ("batology", False),
        ("numbatology wombat", False),
        ("%", False),
        ("_", True),  # in the file name
    ],
)
def test_words_of_the_title_or_the_file_name_choose_documents(http: Http, words: str, found: bool) -> None:
    title = "Annual Numbatology der Straßen 年度会議記録"
    data = b"# Text\n\nof which the title says nothing"
    id_ = http.add_file("Numbat-File_2031.md", data, [("title", title), ("tags", "numbats")]).json["document_id"]
    for view in ("summary", "full"):
        answer = listed(http, view=view, tag="numbats", q=words)
        assert (ids(answer), answer["total"]) == (([id_], 1) if found else ([], 0))


def test_pages_of_a_list_that_words_choose_do_not_overlap(http: Http) -> None:
    own = [http.add_note(f"bilbyfold number {number}", tags=["bilbies"]) for number in range(5)]
    pages = [listed(http, view="summary", q="bilbyfold", sort="created", limit=2, offset=at) for at in (0, 2, 4, 6)]
    assert [ids(page) for page in pages] == [[own[4], own[3]], [own[2], own[1]], [own[0]], []]
    assert {page["total"] for page in pages} == {5}


def test_a_list_takes_the_filters_of_a_search(http: Http) -> None:
    first = http.add_note("a potoroo from before", tags=["potoroo", "old"])
    second = http.add_note("a potoroo from after", tags=["potoroo"])
    moment = http("GET", f"/api/v1/documents/{second}").json["created_at"]
    assert ids(listed(http, tag="potoroo", created_before=moment)) == [first]
    assert ids(listed(http, tag="potoroo", created_after=moment)) == [second]
    assert ids(listed(http, tag=["potoroo", "old"])) == [first]
    assert ids(listed(http, tag="potoroo", doc_type="pdf")) == []


@pytest.mark.parametrize(
    "query", ["view=x", "state=broken", "created_after=soon", "q=" + "x" * 2001, "view=summary&x=1"]
)
def test_a_summary_that_cannot_be_right_is_refused(http: Http, query: str) -> None:
    refused = http("GET", f"/api/v1/documents?{query}")
    assert (refused.status, refused.json["error"]["code"]) == (422, "invalid_request")


def test_the_ledger_comes_in_pages(http: Http, slides: int) -> None:
    path = f"/api/v1/documents/{slides}/ledger"
    whole = http("GET", path).json
    assert whole == {
        "ledger": http("GET", f"/api/v1/documents/{slides}").json["ledger"], "total": 3, "limit": 100, "offset": 0,
    }  # fmt: skip
    assert http("GET", f"{path}?limit=1&offset=1").json == {
        "ledger": [whole["ledger"][1]], "total": 3, "limit": 1, "offset": 1,
    }  # fmt: skip
    failed = http("GET", f"{path}?state=failed").json
    assert [(part["part"], part["state"]) for part in failed["ledger"]] == [("slide 2", "failed")]
    assert failed["total"] == 1
    assert http("GET", f"{path}?state=&offset=3").json["ledger"] == []


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("999999999/ledger", 404),
        ("{id}/ledger?state=broken", 422),
        ("{id}/ledger?limit=0", 422),
        ("{id}/ledger?limit=1001", 422),
        ("{id}/ledger?offset=-1", 422),
        ("{id}?view=short", 422),
        ("999999999?view=summary", 404),
    ],
)
def test_a_ledger_that_cannot_be_shown_says_so(http: Http, slides: int, path: str, status: int) -> None:
    refused = http("GET", "/api/v1/documents/" + path.format(id=slides))
    assert (refused.status, set(refused.json)) == (status, {"error"})
