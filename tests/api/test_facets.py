"""Counts beside the results of a search."""

import threading
from collections import Counter
from typing import Any

import pytest

from support import Http, StartEngine


def facets(http: Http, query: str, **given: Any) -> Any:
    return http.search(query, facets=True, **given)["facets"]


def month(http: Http, id_: int) -> str:
    return str(http("GET", f"/api/v1/documents/{id_}").json["created_at"][:7])


def test_every_document_with_a_word_of_the_question_is_counted(http: Http) -> None:
    notes = [http.add_note(f"zorilla number {n}", tags=["zorillas", "odd" if n % 2 else "even"]) for n in range(12)]
    http.add_file("zorilla.md", b"# Stripes\n\nA zorilla is no skunk.", [("tags", "zorillas")])
    http.add_note("a polecat, which is another animal", tags=["zorillas"])
    for mode in ("hybrid", "fts", "vector"):
        counted = facets(http, "zorilla quizzaciously", top=1, mode=mode)
        assert counted == {
            "type": {"note": 12, "markdown": 1},
            "tag": {"zorillas": 13, "even": 6, "odd": 6},
            "month": {month(http, notes[0]): 13},
        }
    assert facets(http, "zorilla", tags=["odd"])["type"] == {"note": 6}
    assert facets(http, "zorilla", doc_type="markdown")["tag"] == {"zorillas": 1}
    assert facets(http, "quizzaciously") == {"type": {}, "tag": {}, "month": {}}


def test_facets_are_there_only_when_they_are_asked_for(http: Http) -> None:
    assert "facets" not in http.search("anything")
    assert "facets" not in http.search("anything", facets=False)


@pytest.mark.parametrize("wrong", ["yes", 1, None, []])
def test_facets_are_asked_for_by_a_boolean(http: Http, wrong: Any) -> None:
    refused = http("POST", "/api/v1/search", {"query": "x", "facets": wrong})
    assert (refused.status, refused.json["error"]["code"]) == (422, "invalid_request")


def test_counts_follow_every_change(start_engine: StartEngine) -> None:
    http = Http(start_engine().url)
    ids = [http.add_note(f"grison {n}", tags=["first"]) for n in range(3)]
    assert facets(http, "grison")["tag"] == {"first": 3}
    http("POST", f"/api/v1/documents/{ids[0]}/tags", {"add": ["second"], "remove": ["first"]})
    assert facets(http, "grison")["tag"] == {"first": 2, "second": 1}
    http("PATCH", f"/api/v1/notes/{ids[1]}", {"text": "no longer about it"})
    assert facets(http, "grison")["tag"] == {"first": 1, "second": 1}
    http("DELETE", f"/api/v1/documents/{ids[2]}")
    assert facets(http, "grison")["tag"] == {"second": 1}
    http.add_note("grison anew", tags=["second"])
    assert facets(http, "grison") == {"type": {"note": 2}, "tag": {"second": 2}, "month": {month(http, ids[0]): 2}}
    http("DELETE", "/api/v1/documents?confirm=DELETE%20ALL")
    assert facets(http, "grison")["type"] == {}
    http.add_note("the last grison", tags=["third"])
    assert facets(http, "grison")["tag"] == {"third": 1}


def test_counts_are_right_while_others_write(http: Http) -> None:
    seen: list[Any] = []
    done = threading.Event()

    def search() -> None:
        while not done.is_set():
            seen.append(facets(http, "olinguito"))

    searching = threading.Thread(target=search)
    searching.start()
    for number in range(30):
        http.add_note(f"olinguito {number}", tags=["cloud", f"c{number % 3}"])
    done.set()
    searching.join()
    totals = [counted["type"].get("note", 0) for counted in seen]
    assert totals == sorted(totals)
    assert all(sum(Counter(counted["month"]).values()) == total for counted, total in zip(seen, totals, strict=True))
    assert facets(http, "olinguito")["tag"] == {"cloud": 30, "c0": 10, "c1": 10, "c2": 10}
