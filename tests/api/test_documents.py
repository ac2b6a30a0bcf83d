"""Documents: listed, read, tagged, deleted."""

from pathlib import Path

import pytest

from support import Http, StartEngine


def test_a_document_is_found_by_id_and_by_uid(http: Http) -> None:
    id_ = http.add_note("a document with two names")
    by_id = http("GET", f"/api/v1/documents/{id_}").json
    assert http("GET", f"/api/v1/documents/{by_id['uid']}").json == by_id
    assert set(by_id) == {
        "id", "uid", "title", "filename", "source_path", "doc_type", "media_type", "size_bytes", "content_hash", "tags",
        "metadata", "chunk_count", "version", "created_at", "updated_at", "processing_method", "ledger", "text",
        "chunks",
    }  # fmt: skip


def test_chunks_can_be_read_in_pages(http: Http) -> None:
    data = "\n\n".join(f"Paragraph {n}. " + "Some more words to fill it. " * 12 for n in range(30)).encode()
    id_ = http.add_file("long.txt", data).json["document_id"]
    everything = http("GET", f"/api/v1/documents/{id_}").json
    assert everything["chunk_count"] == len(everything["chunks"]) > 5
    assert [chunk["index"] for chunk in everything["chunks"]] == list(range(everything["chunk_count"]))
    page = http("GET", f"/api/v1/documents/{id_}?first_chunk=2&max_chunks=3").json
    assert page["chunks"] == everything["chunks"][2:5]
    text = data.decode()
    for chunk in everything["chunks"]:
        assert text[chunk["anchor"]["start"] : chunk["anchor"]["end"]] == chunk["text"]


def test_lists_filter_sort_and_page(http: Http) -> None:
    ids = [
        http.add_file(name, data, [("tags", "lists"), ("source_path", f"/lists/{name}")]).json["document_id"]
        for name, data in (("b.txt", b"middle sized text"), ("a.txt", b"tiny"), ("c.md", b"# the largest text of all"))
    ]
    http("POST", f"/api/v1/documents/{ids[0]}/tags", {"add": ["touched"]})

    def listed(query: str) -> list[int]:
        return [document["id"] for document in http("GET", f"/api/v1/documents?tag=lists&{query}").json["documents"]]

    b, a, c = ids
    assert listed("") == [b, c, a]  # the touched one is the most recent
    assert listed("order=asc") == [a, c, b]
    assert listed("sort=created") == [c, a, b]
    assert listed("sort=filename") == [a, b, c]
    assert listed("sort=filename&order=desc") == [c, b, a]
    assert listed("sort=size") == [c, b, a]
    assert listed("sort=created&limit=1&offset=1") == [a]
    assert listed("doc_type=markdown") == [c]
    assert listed("source_path=/lists/a.txt") == [a]
    page = http("GET", "/api/v1/documents?tag=lists&limit=2").json
    assert (page["total"], page["limit"], page["offset"], len(page["documents"])) == (3, 2, 0, 2)


@pytest.mark.parametrize("query", ["limit=0", "limit=1001", "offset=-1", "sort=x", "order=x", "doc_type=x", "tags=x"])
def test_a_list_that_cannot_be_right_is_refused(http: Http, query: str) -> None:
    refused = http("GET", f"/api/v1/documents?{query}")
    assert (refused.status, refused.json["error"]["code"]) == (422, "invalid_request")


def test_tags_change_in_one_step_and_keep_their_order(http: Http) -> None:
    id_ = http.add_note("a note to tag", tags=["zeta", "alpha", "collection:documents"])
    changed = http("POST", f"/api/v1/documents/{id_}/tags", {"add": ["new", "alpha"], "remove": ["zeta"]}).json
    assert changed["tags"] == ["alpha", "collection:documents", "new"]
    assert (changed["version"], changed["updated_at"] is not None) == (1, True)


def test_a_tag_change_that_changes_nothing_sets_nothing(http: Http) -> None:
    id_ = http.add_note("a note with one tag", tags=["one"])
    same = http("POST", f"/api/v1/documents/{id_}/tags", {"add": ["one"], "remove": ["two"]}).json
    assert (same["tags"], same["updated_at"]) == (["one"], None)


def test_tags_are_counted(http: Http) -> None:
    for number in range(3):
        http.add_note(f"counted {number}", tags=["counted", f"counted-{number}"])
    counts = {entry["tag"]: entry["documents"] for entry in http("GET", "/api/v1/tags").json["tags"]}
    assert (counts["counted"], counts["counted-1"]) == (3, 1)


def test_what_is_deleted_is_gone_everywhere(http: Http) -> None:
    id_ = http.add_file("gone.txt", b"the platypus leaves", [("tags", "leaving")]).json["document_id"]
    assert http.search("platypus", mode="fts")["total"] == 1
    removed = http("DELETE", f"/api/v1/documents/{id_}").json
    assert removed.pop("expires_at")
    assert removed == {"document_id": id_, "filename": "gone.txt", "chunks_removed": 1}
    assert http("GET", f"/api/v1/documents/{id_}").status == 404
    assert http("DELETE", f"/api/v1/documents/{id_}").status == 404
    assert http.search("platypus", mode="fts")["results"] == []
    assert "leaving" not in {entry["tag"] for entry in http("GET", "/api/v1/tags").json["tags"]}


def test_ids_are_never_reused(http: Http) -> None:
    first = http.add_note("here today")
    http("DELETE", f"/api/v1/documents/{first}")
    assert http.add_note("here today") > first


def test_text_is_what_anchors_point_into(http: Http) -> None:
    id_ = http.add_file("anchored.md", "# Über\n\nZwölf Boxkämpfer 🥊 jagen Viktor.".encode()).json["document_id"]
    text = http("GET", f"/api/v1/documents/{id_}/text")
    assert text.headers["content-type"] == "text/plain; charset=utf-8"
    (chunk,) = http("GET", f"/api/v1/documents/{id_}").json["chunks"]
    assert text.body.decode()[chunk["anchor"]["start"] : chunk["anchor"]["end"]] == chunk["text"]
    assert http("GET", f"/api/v1/documents/{id_}/text?start=2&end=6").body.decode() == "Über"
    assert http("GET", f"/api/v1/documents/{id_}/text?start=-1").status == 422


def test_originals_come_back_byte_for_byte_as_attachments(http: Http) -> None:
    data = "Grüße aus Köln, im Original".encode("latin-1")
    id_ = http.add_file("grüße.txt", data).json["document_id"]
    original = http("GET", f"/api/v1/documents/{id_}/original")
    assert original.body == data
    assert original.headers["content-disposition"] == "attachment; filename*=UTF-8''gr%C3%BC%C3%9Fe.txt"
    note = http.add_note("A note is its own original\r\n")
    original = http("GET", f"/api/v1/documents/{note}/original")
    assert (original.body, original.headers["content-type"]) == (
        b"A note is its own original\r\n",
        "text/markdown; charset=utf-8",
    )


def test_clearing_needs_its_phrase_and_leaves_nothing(start_engine: StartEngine, tmp_path: Path) -> None:
    own = Http(start_engine().url)
    secret = "the-very-secret-word"
    own.add_note(f"A note with {secret} in it", tags=["secret"])
    own.add_file("secret.txt", f"A file with {secret} in it".encode())
    assert own("DELETE", "/api/v1/documents").status == 422
    assert own("DELETE", "/api/v1/documents?confirm=delete+all").status == 422
    assert own.search(secret, mode="fts")["total"] == 2
    cleared = own("DELETE", "/api/v1/documents?confirm=DELETE%20ALL").json
    assert (cleared["documents_removed"], cleared["chunks_removed"]) == (2, 2)
    assert cleared["bytes_freed"] > 0
    assert own("GET", "/api/v1/documents").json["total"] == 0
    assert "empty" in own.search(secret)["notice"]
    left = [file for file in (tmp_path / "data").rglob("*") if file.is_file() and b"very-secret" in file.read_bytes()]
    assert left == []
    assert own.add_note("A new beginning") > 2


def test_purged_text_is_nowhere_on_the_disk_once_the_engine_stops(start_engine: StartEngine, tmp_path: Path) -> None:
    engine = start_engine()
    own = Http(engine.url)
    for number in range(20):
        own.add_note(f"Keep this one, number {number}")
    gone = own.add_note("Forget the xanthophyll password hunter2hunter2", tags=["xanthophyll-tag"])
    own("PATCH", f"/api/v1/notes/{gone}", {"text": "Forget the second xanthophyll password too"})
    own("DELETE", f"/api/v1/documents/{gone}?purge=true")
    engine.stop()
    files = [file for file in (tmp_path / "data").rglob("*") if file.is_file()]
    assert [file for file in files if b"xanthophyl" in file.read_bytes()] == []
