"""Tags that are renamed in all documents at once."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote

import pytest

from support import Http, Reply


def rename(http: Http, tag: str, to: Any) -> Reply:
    return http("POST", f"/api/v1/tags/{quote(tag, safe='')}/rename", {"to": to})


def document(http: Http, id_: int) -> Any:
    return http("GET", f"/api/v1/documents/{id_}").json


def test_a_tag_is_renamed_where_it_stands(http: Http) -> None:
    one = http.add_note("mulgara one", tags=["a-mulgara", "mulgara", "z-mulgara"])
    two = http.add_note("mulgara two", tags=["mulgara"])
    other = http.add_note("no mulgara", tags=["a-mulgara"])
    reply = rename(http, "mulgara", "crest-tailed")
    assert (reply.status, reply.json) == (200, {"tag": "crest-tailed", "documents": 2})
    assert document(http, one)["tags"] == ["a-mulgara", "crest-tailed", "z-mulgara"]
    assert (document(http, two)["updated_at"] is None, document(http, two)["version"]) == (False, 1)
    assert document(http, other)["updated_at"] is None
    found = http.search("mulgara", tags=["crest-tailed"])["results"]
    assert {hit["document_id"] for hit in found} == {one, two}
    assert http.search("mulgara", tags=["mulgara"])["results"] == []


def test_renaming_to_a_tag_that_exists_merges_the_two(http: Http) -> None:
    both = http.add_note("dunnart with both", tags=["dunart", "dunnart"])
    old = http.add_note("dunnart with the old", tags=["dunart"])
    new = http.add_note("dunnart with the new", tags=["dunnart"])
    assert rename(http, "dunart", "dunnart").json == {"tag": "dunnart", "documents": 3}
    assert [document(http, id_)["tags"] for id_ in (both, old, new)] == [["dunnart"]] * 3
    assert document(http, new)["updated_at"] is None
    listed = {one["tag"]: one["documents"] for one in http("GET", "/api/v1/tags").json["tags"]}
    assert ("dunart" in listed, listed["dunnart"]) == (False, 3)


def test_renaming_to_the_same_name_sets_nothing(http: Http) -> None:
    id_ = http.add_note("a phascogale", tags=["phascogale"])
    assert rename(http, "phascogale", "phascogale").json == {"tag": "phascogale", "documents": 1}
    assert document(http, id_)["updated_at"] is None


@pytest.mark.parametrize("tag", ["a/b kaluta", "ünïcode kaluta", "kaluta?x=1&y", "kaluta/rename", "100% kaluta", ".."])
def test_any_tag_can_be_renamed(http: Http, tag: str) -> None:
    id_ = http.add_note(f"a note tagged {tag}", tags=[tag])
    assert rename(http, tag, f"new {tag}").json["tag"] == f"new {tag}"
    assert document(http, id_)["tags"] == [f"new {tag}"]


def test_an_unknown_tag_is_not_found(http: Http) -> None:
    missing = rename(http, "there-is-no-such-tag", "x")
    assert (missing.status, missing.json["error"]["code"]) == (404, "not_found")


@pytest.mark.parametrize("to", ["", " ", "two\nlines", "x" * 201, None, 7, ["x"]])
def test_a_name_that_is_no_tag_is_refused(http: Http, to: Any) -> None:
    http.add_note("a wambenger", tags=["wambenger"])
    refused = rename(http, "wambenger", to)
    assert (refused.status, refused.json["error"]["code"]) == (422, "invalid_request")


def test_of_two_who_rename_at_once_one_finds_nothing_left(http: Http) -> None:
    ids = [http.add_note(f"kowari to rename {n}", tags=["contested"]) for n in range(10)]
    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda n: rename(http, "contested", f"won-{n}"), range(8)))
    assert sorted(reply.status for reply in replies) == [200] + [404] * 7
    (winner,) = [reply.json["tag"] for reply in replies if reply.status == 200]
    assert [document(http, id_)["tags"] for id_ in ids] == [[winner]] * 10
