"""Notes: added, rewritten in place, brought back. Each promise through REST, against a real engine."""

import pytest

from support import Http


def test_a_note_comes_back_exactly_as_written(http: Http) -> None:
    text = "  # Späte Änderung\r\n\r\nTabs\tand 中文, \u0000 and trailing spaces  \n\n"
    note = http("GET", f"/api/v1/documents/{http.add_note(text)}").json
    assert note["text"] == text
    assert (note["doc_type"], note["filename"], note["title"], note["version"]) == ("note", None, "Späte Änderung", 1)
    assert note["updated_at"] is None
    for chunk in note["chunks"]:
        assert text[chunk["anchor"]["start"] : chunk["anchor"]["end"]] == chunk["text"]


def test_an_update_keeps_identity_and_creation_and_is_searchable_at_once(http: Http) -> None:
    id_ = http.add_note("The zebrafish prefers warm water", tags=["t-update"])
    before = http("GET", f"/api/v1/documents/{id_}").json
    after = http("PATCH", f"/api/v1/notes/{id_}", {"text": "The axolotl prefers cold water"}).json
    assert (after["id"], after["uid"], after["created_at"]) == (id_, before["uid"], before["created_at"])
    assert (after["version"], after["title"], after["tags"]) == (2, "The axolotl prefers cold water", ["t-update"])
    assert after["updated_at"] > after["created_at"]
    assert after["content_hash"] != before["content_hash"]
    found = http.search("axolotl", mode="fts", tags=["t-update"])["results"]
    assert [hit["document_id"] for hit in found] == [id_]
    assert http.search("zebrafish", mode="fts", tags=["t-update"])["results"] == []


def test_a_long_update_is_chunked_not_cut(http: Http) -> None:
    id_ = http.add_note("short")
    text = "\n\n".join(
        f"Paragraph {number} says that the lighthouse keeper number {number} slept." for number in range(200)
    )
    after = http("PATCH", f"/api/v1/notes/{id_}", {"text": text + "\n\nAnd the very last word is pademelon."}).json
    assert after["chunk_count"] > 5
    found = http.search("pademelon", mode="fts")["results"]
    assert [hit["document_id"] for hit in found] == [id_]
    assert "pademelon" in found[0]["text"]


def test_a_stale_expected_version_changes_nothing(http: Http) -> None:
    id_ = http.add_note("first text of a contested note")
    assert http("PATCH", f"/api/v1/notes/{id_}", {"text": "second", "expected_version": 1}).status == 200
    refused = http("PATCH", f"/api/v1/notes/{id_}", {"text": "third", "expected_version": 1})
    assert (refused.status, refused.json["error"]["code"]) == (409, "conflict")
    assert refused.json["error"]["details"]["current_version"] == 2
    assert http("GET", f"/api/v1/documents/{id_}").json["text"] == "second"


def test_history_is_newest_first_and_a_restore_loses_nothing(http: Http) -> None:
    id_ = http.add_note("version one of a history")
    http("PATCH", f"/api/v1/notes/{id_}", {"text": "version two of a history"})
    restored = http("POST", f"/api/v1/notes/{id_}/restore", {"version": 1})
    assert (restored.status, restored.json["version"], restored.json["text"]) == (200, 3, "version one of a history")
    versions = http("GET", f"/api/v1/notes/{id_}/versions").json["versions"]
    assert [(v["version"], v["text"]) for v in versions] == [
        (3, "version one of a history"),
        (2, "version two of a history"),
        (1, "version one of a history"),
    ]
    assert http("POST", f"/api/v1/notes/{id_}/restore", {"version": 9}).json["error"]["code"] == "not_found"


def test_an_update_that_changes_nothing_sets_nothing(http: Http) -> None:
    id_ = http.add_note("the same text again")
    after = http("PATCH", f"/api/v1/notes/{id_}", {"text": "the same text again"}).json
    assert (after["version"], after["updated_at"]) == (1, None)


def test_a_given_title_survives_an_update(http: Http) -> None:
    id_ = http.add_note("body one", title="A title that was given")
    assert http("PATCH", f"/api/v1/notes/{id_}", {"text": "body two"}).json["title"] == "A title that was given"


def test_only_notes_can_be_updated(http: Http) -> None:
    id_ = http.add_file("plain.txt", b"a file is not a note").json["document_id"]
    refused = http("PATCH", f"/api/v1/notes/{id_}", {"text": "x"})
    assert (refused.status, refused.json["error"]["code"]) == (422, "not_a_note")
    assert "Only notes can be updated" in refused.json["error"]["message"]


@pytest.mark.parametrize("path", ["/api/v1/notes/999999", "/api/v1/notes/not-an-id", "/api/v1/notes/0"])
def test_what_is_not_there_is_not_found(http: Http, path: str) -> None:
    missing = http("PATCH", path, {"text": "x"})
    assert (missing.status, missing.json["error"]["code"]) == (404, "not_found")


@pytest.mark.parametrize("text", ["", "   \n\t "])
def test_an_empty_text_is_refused(http: Http, text: str) -> None:
    for reply in (
        http("POST", "/api/v1/jobs", {"text": text}),
        http("PATCH", f"/api/v1/notes/{http.add_note('not empty')}", {"text": text}),
    ):
        assert (reply.status, reply.json["error"]["code"]) == (422, "invalid_request")


def test_a_note_holds_one_megabyte_and_not_a_byte_more(http: Http) -> None:
    refused = http("POST", "/api/v1/jobs", {"text": "é" * 2**19 + "x"})
    assert (refused.status, refused.json["error"]["code"]) == (422, "invalid_request")
    assert "larger than 1 MB" in refused.json["error"]["message"]
