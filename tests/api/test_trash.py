"""The trash: gone at once, back at once and whole; and what is purged leaves no byte behind."""

import io
import json
import tarfile
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from made import pdf
from support import EngineProcess, Http, StartEngine, eventually, stored

DOCUMENTS = "/api/v1/documents"
TRASH = "/api/v1/trash"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("trash") / "data"


@pytest.fixture(scope="module")
def engine(folder: Path) -> Iterator[EngineProcess]:
    engine = EngineProcess(folder)
    yield engine
    assert engine.stop() == 0, engine.log.read_text()


@pytest.fixture
def own(engine: EngineProcess) -> Http:
    """An engine that nothing else uses, with an empty trash."""
    http = Http(engine.url)
    http("DELETE", f"{TRASH}?expected_count={trash(http)['total']}")
    return http


def trash(http: Http) -> Any:
    return http("GET", TRASH).json


def deleted(http: Http, id_: int) -> Any:
    reply = http("DELETE", f"{DOCUMENTS}/{id_}")
    assert reply.status == 200, reply.body
    return reply.json


def restored(http: Http, id_: int) -> Any:
    reply = http("POST", f"{TRASH}/{id_}/restore")
    assert reply.status == 200, reply.body
    return reply.json


def found_by(http: Http, query: str) -> list[set[int]]:
    """The documents that each mode of search finds."""
    return [
        {hit["document_id"] for hit in http.search(query, mode=mode, top=100)["results"]}
        for mode in ("fts", "vector", "hybrid")
    ]


def exported(http: Http) -> set[int]:
    with tarfile.open(fileobj=io.BytesIO(http("GET", "/api/v1/export").body)) as archive:
        lines = archive.extractfile("documents.jsonl")
        assert lines is not None
        return {json.loads(line)["id"] for line in lines}


def holding(folder: Path, text: bytes) -> list[str]:
    """The files below a folder that hold these bytes."""
    files = (file for file in folder.rglob("*") if file.is_file())
    return [str(file.relative_to(folder)) for file in files if text in file.read_bytes()]


def test_a_deleted_document_is_only_in_the_trash(own: Http) -> None:
    text = "The quokka smiles at noon"
    kept = own.add_note(f"{text}.", tags=["marsupial"])
    id_ = own.add_note(text, tags=["marsupial", "smiling"], title="A quokka")
    uid = own("GET", f"{DOCUMENTS}/{id_}").json["uid"]
    assert own("GET", "/api/v1/status").json["trash"] == 0
    answer = deleted(own, id_)
    assert (answer["document_id"], answer["chunks_removed"]) == (id_, 1)

    for ref in (id_, uid):
        for path in ("", "?view=summary", "/text", "/original", "/ledger", "/pages/1/image"):
            assert own("GET", f"{DOCUMENTS}/{ref}{path}").status == 404, path
        assert own("POST", f"{DOCUMENTS}/{ref}/tags", {"add": ["x"]}).status == 404
        assert own("PATCH", f"/api/v1/notes/{ref}", {"text": "other"}).status == 404
        assert own("GET", f"/api/v1/notes/{ref}/versions").status == 404
        assert own("DELETE", f"{DOCUMENTS}/{ref}").status == 404
    assert all(id_ not in ids for ids in found_by(own, text))
    facets = own.search("quokka", mode="fts", facets=True)["facets"]
    assert facets["tag"] == {"marsupial": 1}
    assert own("GET", f"{DOCUMENTS}?tag=marsupial").json["total"] == 1
    assert "smiling" not in {entry["tag"] for entry in own("GET", "/api/v1/tags").json["tags"]}
    duplicates = own("GET", "/api/v1/duplicates").json["duplicates"]
    assert all(id_ not in (pair["a"]["id"], pair["b"]["id"]) for pair in duplicates)
    assert {kept, id_} & exported(own) == {kept}

    (there,) = trash(own)["documents"]
    assert (there["id"], there["uid"], there["title"], there["tags"]) == (
        id_,
        uid,
        "A quokka",
        ["marsupial", "smiling"],
    )
    stay = datetime.fromisoformat(there["expires_at"]) - datetime.fromisoformat(there["deleted_at"])
    assert stay == timedelta(days=30)
    assert answer["expires_at"] == there["expires_at"]
    assert own("GET", "/api/v1/status").json["trash"] == 1
    assert "kb_trash_documents 1" in own("GET", "/metrics").body.decode()


def test_a_restored_document_is_as_it_was(own: Http) -> None:
    text = "The numbat eats termites, thousands of them"
    note = own.add_note("The numbat sleeps", tags=["b", "a"], metadata={"author": "Ada"}, source_path="/numbat")
    own("PATCH", f"/api/v1/notes/{note}", {"text": text})
    file = own.add_file("numbat.pdf", pdf(["A numbat on the first page", "and on the second"])).json["document_id"]
    before = [own("GET", f"{DOCUMENTS}/{id_}").json for id_ in (note, file)]
    searched = [own.search("numbat termites", mode=mode)["results"] for mode in ("fts", "vector", "hybrid")]
    versions = own("GET", f"/api/v1/notes/{note}/versions").json
    original = own("GET", f"{DOCUMENTS}/{file}/original").body

    for id_ in (note, file):
        deleted(own, id_)
    assert restored(own, note)["text"] == text
    assert found_by(own, text)[0] == {note}
    restored(own, file)
    assert [own("GET", f"{DOCUMENTS}/{id_}").json for id_ in (note, file)] == before
    assert [own.search("numbat termites", mode=mode)["results"] for mode in ("fts", "vector", "hybrid")] == searched
    assert own("GET", f"/api/v1/notes/{note}/versions").json == versions
    assert own("GET", f"{DOCUMENTS}/{file}/original").body == original
    assert own("GET", f"{DOCUMENTS}/{file}/pages/2/image").status == 200
    assert own("PATCH", f"/api/v1/notes/{note}", {"text": "The numbat yawns"}).json["version"] == 3
    assert trash(own)["total"] == 0
    assert own("POST", f"{TRASH}/{note}/restore").status == 404


def test_the_same_content_makes_a_new_document_and_both_can_be_had(own: Http) -> None:
    data = b"A bilby digs at night"
    first = own.add_file("bilby.txt", data).json["document_id"]
    deleted(own, first)
    second = own.add_file("bilby.txt", data).json["document_id"]
    assert second > first
    deleted(own, second)
    assert own("DELETE", f"{DOCUMENTS}/{second}?purge=true").status == 200
    assert restored(own, first)["id"] == first
    assert own("GET", f"{DOCUMENTS}/{first}/original").body == data


def test_a_path_that_is_taken_by_now_is_named(own: Http) -> None:
    first = own.add_note("The potoroo at this path", source_path="/potoroo.md")
    deleted(own, first)
    second = own.add_note("Another potoroo at this path", source_path="/potoroo.md")
    refused = own("POST", f"{TRASH}/{first}/restore")
    assert (refused.status, refused.json["error"]["details"]) == (409, {"document_id": second})
    assert f"kb rm {second}" in refused.json["error"]["message"]
    assert trash(own)["total"] == 1

    reply = own("POST", f"{TRASH}/{first}/restore?without_path=true").json
    assert (reply["id"], reply["source_path"]) == (first, None)
    assert own("GET", f"{DOCUMENTS}/{second}").json["source_path"] == "/potoroo.md"
    assert found_by(own, "potoroo")[0] == {first, second}


def test_a_path_that_is_free_again_is_kept(own: Http) -> None:
    first = own.add_note("A woylie at its path", source_path="/woylie.md")
    deleted(own, first)
    assert restored(own, first)["source_path"] == "/woylie.md"
    assert own.add_note("A woylie at its path", source_path="/woylie.md") == first


@pytest.mark.sqlite
@pytest.mark.parametrize("by_way_of_the_trash", [False, True])
def test_what_is_purged_leaves_no_byte_on_the_disk(own: Http, folder: Path, by_way_of_the_trash: bool) -> None:
    word = "kultarr" if by_way_of_the_trash else "dunnart"
    note = own.add_note(f"The {word} in a note", tags=[f"{word}-tag"], metadata={"about": f"{word}-metadata"})
    own("PATCH", f"/api/v1/notes/{note}", {"text": f"The {word} in a later version"})
    file = own.add_file(f"{word}.pdf", pdf([f"The {word} in a file"])).json["document_id"]
    assert own("GET", f"{DOCUMENTS}/{file}/pages/1/image").status == 200
    sha256 = own("GET", f"{DOCUMENTS}/{file}").json["content_hash"]
    for id_ in (note, file):
        if by_way_of_the_trash:
            deleted(own, id_)
    assert holding(folder, f"The {word} in".encode())
    assert list(folder.rglob(f"{sha256}*"))
    for id_ in (note, file):
        assert own("DELETE", f"{DOCUMENTS}/{id_}?purge=true").status == 200
    assert holding(folder, word.encode()) == []
    assert list(folder.rglob(f"{sha256}*")) == []
    assert own("DELETE", f"{DOCUMENTS}/{note}?purge=true").status == 404
    assert trash(own)["total"] == 0


def test_a_bulk_deletion_and_the_rest_of_a_merge_go_to_the_trash(own: Http) -> None:
    ids = [own.add_note(f"Quoll number {number}", tags=["quoll"]) for number in range(25)]
    body = {"filter": {"tag": ["quoll"]}, "expected_count": 25, "delete": True}
    assert own("POST", f"{DOCUMENTS}/bulk?wait=60", body).json["status"] == "completed"
    assert trash(own)["total"] == 25
    a, b = (restored(own, id_)["id"] for id_ in ids[:2])
    merged = {"other": b, "text": "Both quolls", "expected_version": 1, "other_version": 1}
    assert own("POST", f"/api/v1/notes/{a}/merge", merged).status == 200
    assert {document["id"] for document in trash(own)["documents"]} == {*ids} - {a}
    assert restored(own, b)["text"] == "Quoll number 1"


def test_the_trash_is_listed_in_pages_and_emptied_by_number(own: Http) -> None:
    ids = [own.add_note(f"Bandicoot number {number}") for number in range(3)]
    for id_ in ids:
        deleted(own, id_)
    page = own("GET", f"{TRASH}?limit=2&offset=1").json
    assert [document["id"] for document in page["documents"]] == [ids[1], ids[0]]
    assert (page["total"], page["limit"], page["offset"]) == (3, 2, 1)
    refused = own("DELETE", f"{TRASH}?expected_count=2")
    assert (refused.status, refused.json["error"]["details"]) == (409, {"count": 3})
    assert own("DELETE", TRASH).status == 422
    assert own("DELETE", f"{TRASH}?expected_count=3").json == {"documents_removed": 3}
    assert trash(own)["total"] == 0


def test_an_index_made_anew_holds_the_trash_too(own: Http) -> None:
    id_ = own.add_file("wombat.md", b"# Wombats\n\n" + b"A wombat digs its burrow at dusk. " * 200).json["document_id"]
    before = own("GET", f"{DOCUMENTS}/{id_}").json
    deleted(own, id_)
    assert own("POST", "/api/v1/reindex?wait=60").json["status"] == "completed"
    assert found_by(own, "wombat")[0] == set()
    assert own("GET", "/api/v1/doctor").json["healthy"]
    restored(own, id_)
    after = own("GET", f"{DOCUMENTS}/{id_}").json
    assert [chunk["text"] for chunk in after["chunks"]] == [chunk["text"] for chunk in before["chunks"]]
    assert [chunk["id"] for chunk in after["chunks"]] != [chunk["id"] for chunk in before["chunks"]]
    assert all(id_ in ids for ids in found_by(own, "wombat burrow"))
    assert own("GET", "/api/v1/doctor").json["healthy"]


def test_a_restart_changes_nothing(start_engine: StartEngine) -> None:
    engine = start_engine()
    http = Http(engine.url)
    ids = [http.add_note(f"Wallaby number {number} hops") for number in range(4)]
    deleted(http, ids[1])
    deleted(http, ids[3])  # the last one: its passage has the highest id
    engine.stop()
    http = Http(start_engine().url)
    assert found_by(http, "wallaby hops") == [{ids[0], ids[2]}] * 3
    restored(http, ids[3])
    assert found_by(http, "wallaby hops") == [{ids[0], ids[2], ids[3]}] * 3
    restored(http, ids[1])
    assert found_by(http, "wallaby hops") == [set(ids)] * 3
    assert http("GET", "/api/v1/doctor").json["healthy"]
    deleted(http, ids[0])
    reply = http("DELETE", f"{DOCUMENTS}?confirm=DELETE%20ALL").json
    assert (reply["documents_removed"], reply["trash_removed"]) == (3, 1)
    assert trash(http)["total"] == 0


def test_without_a_trash_every_deletion_is_final_and_old_ones_expire(start_engine: StartEngine, tmp_path: Path) -> None:
    engine = start_engine()
    http = Http(engine.url)
    old, young = http.add_note("An old deletion of a glider"), http.add_note("A young one of a glider")
    deleted(http, old)
    deleted(http, young)
    engine.stop()
    with stored(tmp_path / "data") as store, store.database.write() as tx:
        tx.run("UPDATE documents SET deleted_at = '2020-01-01T00:00:00.000Z' WHERE id = :id", {"id": old})
    engine = start_engine()
    http = Http(engine.url)
    eventually(lambda: [document["id"] for document in trash(http)["documents"]] == [young])
    assert holding(tmp_path / "data", b"An old deletion") == []
    engine.stop()

    http = Http(start_engine(KB_TRASH_DAYS="0").url)
    eventually(lambda: trash(http)["total"] == 0)
    last = http.add_note("A glider that goes for good")
    assert "expires_at" not in deleted(http, last)
    assert http("POST", f"{TRASH}/{last}/restore").status == 404
    assert holding(tmp_path / "data", b"glider") == []
