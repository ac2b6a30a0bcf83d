"""Metadata is searched like text, and cited as metadata."""

from pathlib import Path
from typing import Any

import pytest

from kb.store import chunks
from support import Http, StartEngine, stored

OF_METADATA = "SELECT id FROM chunks WHERE start_at = -1"
COUNT_AGAIN = """
UPDATE documents SET chunk_count = (SELECT count(*) FROM chunks c WHERE c.document_id = documents.id)
"""


def passages(http: Http, id_: int) -> list[tuple[str, Any]]:
    held = http("GET", f"/api/v1/documents/{id_}").json["chunks"]
    return [(chunk["text"], chunk["anchor"]) for chunk in held]


def best(http: Http, query: str, **given: Any) -> tuple[int, Any, str]:
    hit = http.search(query, **given)["results"][0]
    return hit["document_id"], hit["anchor"], hit["text"]


CITED = {"metadata": True}


@pytest.mark.parametrize("mode", ["hybrid", "fts", "vector"])
def test_a_value_is_found_and_cited_as_metadata(http: Http, mode: str) -> None:
    text = "Bleed the radiators before the winter."
    note = http.add_note(text, title="Heating", metadata={"author": "Anna Lindqvist", "project": {"name": "Quokka"}})
    wanted = (note, CITED, "author: Anna Lindqvist\nproject.name: Quokka")
    assert best(http, "Lindqvist Quokka", mode=mode) == wanted
    assert best(http, text, mode=mode) == (note, {"start": 0, "end": len(text)}, text)


def test_a_document_without_metadata_has_its_text_alone(http: Http) -> None:
    note = http.add_note("Nothing but text", metadata={"title": "A title", "nothing": None})
    assert passages(http, note) == [("Nothing but text", {"start": 0, "end": 16})]


def test_the_title_is_found_in_the_text_and_not_in_the_metadata(http: Http) -> None:
    note = http.add_note("Bleed the radiators first.", title="Xerographic care", metadata={"by": "A"})
    assert best(http, "xerographic care")[:2] == (note, {"start": 0, "end": 26})


def test_the_passage_follows_the_metadata(http: Http) -> None:
    def put(text: str, **given: Any) -> Any:
        body = {"text": text, "source_path": "/metadata/follows.md", **given}
        return http("POST", "/api/v1/jobs?wait=60", body).json

    note = put("the first text", metadata={"keeper": "Wilhelmina"})["document_id"]
    assert put("the first text", metadata={"keeper": "Theodora"})["outcome"] == "updated"
    assert best(http, "Theodora", mode="fts") == (note, CITED, "keeper: Theodora")
    assert http.search("Wilhelmina", mode="fts")["results"] == []
    http("PATCH", f"/api/v1/notes/{note}", {"text": "the second text"})
    assert passages(http, note) == [("the second text", {"start": 0, "end": 15}), ("keeper: Theodora", CITED)]
    document = http("GET", f"/api/v1/documents/{note}").json
    assert (document["version"], document["chunk_count"], document["text"]) == (2, 2, "the second text")


def test_what_a_file_gets_later_is_found_without_reading_it_again(http: Http) -> None:
    page = b"<title>Owls</title><meta name=author content='Bartholomew'><h1>Owls</h1><p>They fly at night.</p>"
    first = http.add_file("owls.html", page).json["document_id"]
    before = http("GET", f"/api/v1/documents/{first}").json
    assert best(http, "Bartholomew", mode="fts") == (first, CITED, "author: Bartholomew")
    again = http.add_file("copy.txt", page, [("metadata", '{"shelf": "Ornithology"}')]).json
    assert (again["duplicate_of"], again["outcome"]) == (first, "updated")
    assert best(http, "Ornithology", mode="fts") == (first, CITED, "author: Bartholomew\nshelf: Ornithology")
    after = http("GET", f"/api/v1/documents/{first}").json
    same = ("title", "filename", "doc_type", "media_type", "version", "ledger", "processing_method", "content_hash")
    assert [after[name] for name in same] == [before[name] for name in same]
    assert passages(http, first)[:-1] == [(chunk["text"], chunk["anchor"]) for chunk in before["chunks"][:-1]]


def test_metadata_alone_is_no_text(http: Http) -> None:
    reply = http.add_file("blank.txt", b" \n ", [("metadata", '{"a": "b"}')]).json
    assert http("GET", f"/api/v1/jobs/{reply['job_id']}").json["error"]["code"] == "no_text"


def test_long_metadata_is_cut_like_text(http: Http) -> None:
    metadata = {f"key{number}": f"value {number} " + "of many words " * 10 for number in range(40)}
    note = http.add_note("short text, long metadata", metadata=metadata)
    cut = [text for text, anchor in passages(http, note) if anchor == CITED]
    assert len(cut) > 3
    assert [text.count(f"key{number}:") for number in (0, 20, 39) for text in cut].count(1) == 3


def test_a_new_index_and_the_doctor_know_it(start_engine: StartEngine, tmp_path: Path) -> None:
    engine = start_engine()
    own = Http(engine.url)
    note = own.add_note("A note about the boiler", metadata={"by": "Rosalind"})
    long = "\n\n".join(f"Paragraph {n} is about herons. " * 20 for n in range(5)).encode()
    file = own.add_file("long.txt", long, [("metadata", '{"by": "Ferdinand"}')]).json["document_id"]
    before = [passages(own, id_) for id_ in (note, file)]
    assert own("POST", "/api/v1/reindex?wait=120").json["status"] == "completed"
    assert [passages(own, id_) for id_ in (note, file)] == before
    assert own("GET", "/api/v1/doctor").json["healthy"] is True
    engine.stop()

    with stored(tmp_path / "data") as store, store.database.write() as tx:  # as it was before metadata was indexed
        chunks.remove(tx, tx.column(OF_METADATA))
        tx.run(COUNT_AGAIN)
    own = Http(start_engine().url)
    assert own.search("Rosalind", mode="fts")["results"] == []
    report = own("GET", "/api/v1/doctor").json
    assert report["healthy"] is True  # nothing is wrong with a database of an older version
    (check,) = [check for check in report["checks"] if check["name"] == "metadata"]
    assert check["message"].startswith("2 documents")
    assert "kb doctor --fix" in check["message"]
    assert own("POST", "/api/v1/doctor").json["healthy"] is True
    assert [passages(own, id_) for id_ in (note, file)] == before
    assert best(own, "Ferdinand", mode="fts") == (file, CITED, "by: Ferdinand")


def test_the_doctor_makes_lost_entries_of_it_as_they_were(start_engine: StartEngine, tmp_path: Path) -> None:
    engine = start_engine()
    own = Http(engine.url)
    own.add_note("Text of the note", title="Zeppelin", metadata={"by": "Rosalind"})
    before = [own.search(query)["results"] for query in ("zeppelin", "rosalind")]
    engine.stop()
    with stored(tmp_path / "data") as store, store.database.write() as tx:
        tx.fulltext.clear()
        tx.vectors.clear()
    own = Http(start_engine().url)
    assert own("POST", "/api/v1/doctor").json["healthy"] is True
    assert [own.search(query)["results"] for query in ("zeppelin", "rosalind")] == before
