"""Two notes that become one."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from support import Http, Reply


def merge(http: Http, id_: int | str, **body: Any) -> Reply:
    whole = {"text": "the merged text", "expected_version": 1, "other_version": 1} | body
    return http("POST", f"/api/v1/notes/{id_}/merge", {name: given for name, given in whole.items() if given != "-"})


def status(http: Http, id_: int) -> int:
    return http("GET", f"/api/v1/documents/{id_}").status


def test_one_note_gets_the_text_and_the_tags_of_both(http: Http) -> None:
    kept = http.add_note("a monjon from the rocks", tags=["rocks", "both"])
    other = http.add_note("a monjon from the cliffs", tags=["both", "cliffs"])
    reply = merge(http, kept, other=other, text="a monjon from rocks and cliffs")
    assert reply.status == 200, reply.body
    merged = reply.json
    assert (merged["id"], merged["version"], merged["text"]) == (kept, 2, "a monjon from rocks and cliffs")
    assert merged["tags"] == ["rocks", "both", "cliffs"]
    assert status(http, other) == 404
    assert [hit["document_id"] for hit in http.search("monjon", mode="fts")["results"]] == [kept]
    versions = http("GET", f"/api/v1/notes/{kept}/versions").json["versions"]
    assert [version["text"] for version in versions] == ["a monjon from rocks and cliffs", "a monjon from the rocks"]


def test_notes_may_be_named_by_uid_and_the_text_may_stay(http: Http) -> None:
    kept, other = http.add_note("a nabarlek", tags=["n"]), http.add_note("a nabarlek again", tags=["m"])
    uids = [http("GET", f"/api/v1/documents/{id_}").json["uid"] for id_ in (kept, other)]
    merged = merge(http, uids[0], other=uids[1], text="a nabarlek").json
    assert (merged["id"], merged["version"], merged["tags"]) == (kept, 1, ["n", "m"])
    assert status(http, other) == 404


@pytest.mark.parametrize(("versions"), [(2, 1), (1, 2)])
def test_a_stale_version_of_either_changes_nothing(http: Http, versions: tuple[int, int]) -> None:
    kept, other = http.add_note(f"bettong {versions}"), http.add_note(f"another bettong {versions}")
    stale = merge(http, kept, other=other, expected_version=versions[0], other_version=versions[1])
    assert (stale.status, stale.json["error"]["code"]) == (409, "conflict")
    for id_, text in ((kept, f"bettong {versions}"), (other, f"another bettong {versions}")):
        document = http("GET", f"/api/v1/documents/{id_}").json
        assert (document["text"], document["version"], document["updated_at"]) == (text, 1, None)


def test_what_cannot_be_merged_is_refused(http: Http) -> None:
    note, other = http.add_note("a quenda"), http.add_note("another quenda")
    file = http.add_file("quenda.md", b"# Quenda\n\nin a file").json["document_id"]
    uid = http("GET", f"/api/v1/documents/{note}").json["uid"]
    cases: list[tuple[Reply, int, str]] = [
        (merge(http, note, other=note), 422, "invalid_request"),
        (merge(http, note, other=uid), 422, "invalid_request"),
        (merge(http, note, other=file), 422, "not_a_note"),
        (merge(http, file, other=note), 422, "not_a_note"),
        (merge(http, note, other=999_999_999), 404, "not_found"),
        (merge(http, 999_999_999, other=note), 404, "not_found"),
        (merge(http, note, other=other, text=""), 422, "invalid_request"),
        (merge(http, note, other=other, text=" \n "), 422, "invalid_request"),
        (merge(http, note, other=other, text="x" * (2**20 + 1)), 422, "invalid_request"),
        (merge(http, note, other=other, text=None), 422, "invalid_request"),
        (merge(http, note, other="-"), 422, "invalid_request"),
        (merge(http, note, other=True), 422, "invalid_request"),
        (merge(http, note, other=other, expected_version="-"), 422, "invalid_request"),
        (merge(http, note, other=other, other_version="-"), 422, "invalid_request"),
        (merge(http, note, other=other, other_version="1"), 422, "invalid_request"),
        (merge(http, note, other=other, force=True), 422, "invalid_request"),
    ]
    for reply, expected, code in cases:
        assert (reply.status, reply.json["error"]["code"]) == (expected, code), reply.body
    assert [status(http, id_) for id_ in (note, other, file)] == [200, 200, 200]


def test_of_many_merges_at_once_one_wins(http: Http) -> None:
    kept = http.add_note("a woylie to keep")
    others = [http.add_note(f"a woylie to merge {n}") for n in range(6)]
    with ThreadPoolExecutor(6) as pool:
        replies = list(pool.map(lambda id_: merge(http, kept, other=id_, text=f"woylies {id_}"), others))
    assert sorted(reply.status for reply in replies) == [200] + [409] * 5
    assert sorted(status(http, id_) for id_ in others) == [200] * 5 + [404]
    assert http("GET", f"/api/v1/documents/{kept}").json["version"] == 2
