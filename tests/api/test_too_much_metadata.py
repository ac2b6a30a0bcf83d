"""Metadata has limits wherever it comes in; what an older version stored without them breaks no list and no search."""

import json
from pathlib import Path
from typing import Any

import pytest

from support import Http, Reply, StartEngine, stored


def nested(levels: int) -> str:
    return '{"in":' * (levels - 1) + "{}" + "}" * (levels - 1)


def add_note(http: Http, text: str, metadata: str, query: str = "?wait=60") -> Reply:
    raw = f'{{"text": {json.dumps(text)}, "metadata": {metadata}}}'.encode()
    return http("POST", f"/api/v1/jobs{query}", raw=raw, Content_Type="application/json")


TOO_MUCH = [nested(33), nested(260), nested(500), nested(20_000), json.dumps({"a": "x" * 2**16})]


@pytest.mark.parametrize("metadata", TOO_MUCH, ids=["33", "260", "500", "20000", "large"])
def test_too_much_metadata_is_refused(http: Http, metadata: str) -> None:
    replies = [
        add_note(http, "A note with too much metadata", metadata),
        http.add_file("much.txt", b"a file with too much metadata", [("metadata", metadata)]),
    ]
    for reply in replies:
        assert reply.status == 422, reply.body
        assert reply.json["error"]["code"] == "invalid_request"
        assert not reply.json["error"]["message"].endswith("..")
        assert len(reply.body) < 2000


def test_as_much_metadata_as_may_be_is_kept(http: Http) -> None:
    for text, metadata in (("A deep note", nested(32)), ("A wide note", json.dumps({"a": "x" * (2**16 - 8)}))):
        added = add_note(http, text, metadata).json
        assert added["status"] == "completed"
        assert http("GET", f"/api/v1/documents/{added['document_id']}").json["metadata"] == json.loads(metadata)


def test_metadata_that_is_added_in_pieces_has_the_same_limit(http: Http) -> None:
    given = [json.dumps({name: "x" * 40_000}) for name in ("one", "two")]
    replies = [http.add_file("pieces.txt", b"added in pieces", [("metadata", one)]) for one in given]
    assert [reply.status for reply in replies] == [202, 422]
    assert "larger than 64 KB" in replies[1].json["error"]["message"]


def test_metadata_counts_in_the_budget_of_a_search(http: Http) -> None:
    http.add_note("The thylacine smiles at everybody", metadata={"much": "word " * 2000})
    (hit,) = http.search("thylacine", max_tokens=100, top=1)["results"]
    assert hit["text"] == "The thylacine smiles at everybody"
    assert list(hit["metadata"]) == ["_omitted"]
    (hit,) = http.search("thylacine", max_tokens=5000, top=1)["results"]
    assert len(hit["metadata"]["much"]) == 10_000


def test_what_an_older_version_stored_is_not_shown_named_by_the_doctor_and_not_lost(
    start_engine: StartEngine, tmp_path: Path
) -> None:
    engine = start_engine()
    own = Http(engine.url)
    deep, large = own.add_note("The numbat eats termites"), own.add_note("The bilby digs burrows")
    engine.stop()
    held = {deep: nested(260), large: json.dumps({"a": "x" * 7 * 2**20})}
    update = "UPDATE documents SET metadata = :metadata, given = :metadata WHERE id = :id"
    with stored(tmp_path / "data") as store, store.database.write() as tx:
        tx.run_many(update, [{"id": id_, "metadata": metadata} for id_, metadata in held.items()])
    engine = start_engine()
    own = Http(engine.url)
    for path in ("/api/v1/documents", f"/api/v1/documents/{deep}", f"/api/v1/documents/{large}"):
        reply = own("GET", path)
        assert reply.status == 200
        assert len(reply.body) < 5000
    hits: list[Any] = own.search("numbat bilby")["results"]
    assert {tuple(hit["metadata"]) for hit in hits} == {("_omitted",)}
    checks = {check["name"]: check for check in own("GET", "/api/v1/doctor").json["checks"]}
    assert f"{deep}, {large}" in checks["metadata limits"]["message"]
    assert own("PATCH", f"/api/v1/notes/{deep}", {"text": "The numbat sleeps"}).status == 200
    assert own.search("sleeps")["results"][0]["document_id"] == deep
    engine.stop()
    with stored(tmp_path / "data") as store, store.database.read() as tx:
        found = dict(tx.tuples("SELECT id, metadata FROM documents"))
    assert {id_: json.loads(text) for id_, text in found.items()} == {i: json.loads(t) for i, t in held.items()}
