"""The doctor: names each thing that is wrong, mends what can be mended, deletes no document."""

from pathlib import Path
from typing import Any

import apsw
import pytest

from kb.store.sqlite.connection import connect
from support import Http, StartEngine, stored

DAMAGE = """
PRAGMA foreign_keys = OFF;
DELETE FROM chunks_fts WHERE rowid = (SELECT id FROM chunks WHERE text LIKE '%platypus%');
DELETE FROM chunks_vec WHERE chunk_id = (SELECT id FROM chunks WHERE text LIKE '%heating%');
DELETE FROM chunks WHERE text LIKE 'Part 2%';
INSERT INTO chunks_fts (rowid, title, heading, body) VALUES (5001, 'stray', '', 'stray');
INSERT INTO tags (document_id, tag) VALUES (4711, 'nobody');
UPDATE documents SET chunk_count = 7 WHERE id = (SELECT document_id FROM chunks WHERE text LIKE '%platypus%');
"""


def examined(own: Http, method: str = "GET") -> dict[str, Any]:
    reply = own(method, "/api/v1/doctor")
    assert reply.status == 200, reply.body
    return {check["name"]: check for check in reply.json["checks"]} | {"healthy": reply.json["healthy"]}


def wrong(found: dict[str, Any]) -> dict[str, int]:
    return {name: check["problems"] for name, check in found.items() if name != "healthy" and check["problems"]}


def test_a_healthy_engine_is_well_in_every_respect(http: Http) -> None:
    http.add_note("A note that is in good health")
    http.add_file("healthy.txt", b"a file that is in good health")
    reply = http("GET", "/api/v1/doctor").json
    assert reply["healthy"] is True
    assert {(check["ok"], check["problems"], check["fixed"]) for check in reply["checks"]} == {(True, 0, 0)}
    assert len({check["name"] for check in reply["checks"]}) == 23
    assert http("GET", "/api/v1/doctor?fix=false").json == reply
    assert http("POST", "/api/v1/doctor").json == reply
    assert http("GET", "/api/v1/doctor?fix=perhaps").status == 422


def test_a_get_that_asks_for_mending_is_told_to_post(http: Http) -> None:
    refused = http("GET", "/api/v1/doctor?fix=true")
    assert (refused.status, refused.json["error"]["code"]) == (405, "method_not_allowed")
    assert "POST" in refused.json["error"]["message"]


def test_mending_needs_the_key_and_no_foreign_page_may_ask_for_it(start_engine: StartEngine) -> None:
    own = Http(start_engine(KB_API_KEY="s3cret-key").url)
    assert own("POST", "/api/v1/doctor").status == 401
    key = "Bearer s3cret-key"
    assert own("POST", "/api/v1/doctor", Authorization=key, Origin="https://evil.example").status == 403
    assert own("POST", "/api/v1/doctor", Authorization=key).status == 200


def test_nothing_is_found_while_documents_come_in(start_engine: StartEngine) -> None:
    own = Http(start_engine().url)
    examined(own)
    jobs = [own("POST", "/api/v1/jobs", {"text": f"Note {number} of an import"}).json["job_id"] for number in range(60)]
    for _ in range(40):
        assert wrong(examined(own)) == {}
    assert [own.ended(job)["status"] for job in jobs] == ["completed"] * 60
    assert wrong(examined(own)) == {}


@pytest.mark.sqlite
def test_each_damage_is_named_and_mended(start_engine: StartEngine, tmp_path: Path) -> None:
    engine = start_engine()
    own = Http(engine.url)
    own.add_note("The platypus sleeps in the river bank")
    boiler = own.add_note("The boiler was serviced in March, so the heating works")
    long = "\n\n".join(f"Part {number}. " + f"Chapter {number} is about axolotl{number}. " * 30 for number in range(4))
    whole = own.add_file("long.txt", long.encode()).json["document_id"]
    lost = own.add_file("lost.txt", b"a file whose original gets lost").json["document_id"]
    sha256 = own("GET", f"/api/v1/documents/{lost}").json["content_hash"]
    assert own.search("platypus", mode="fts")["total"] == 1
    before = own("GET", f"/api/v1/documents/{whole}").json
    engine.stop()

    connection = connect(tmp_path / "data" / "kb.db")
    connection.execute(DAMAGE).fetchall()
    connection.execute("INSERT INTO chunks_vec (chunk_id, embedding) VALUES (5002, zeroblob(1536))")
    connection.close()
    (tmp_path / "data" / "originals" / sha256[:2] / sha256).unlink()
    own = Http(start_engine().url)
    orphan = tmp_path / "data" / "originals" / "ab" / ("ab" * 32)
    orphan.parent.mkdir(exist_ok=True)
    orphan.write_bytes(b"nobody's")

    assert own.search("platypus", mode="fts")["total"] == 0
    expected = {
        "references": 1,
        "stored rows": 1,  # the tag, which kb did not write
        "full-text rows missing": 1,
        "full-text rows of no chunk": 2,  # the one that was put in, and that of the chunk that was taken out
        "vectors missing": 1,
        "vectors of no chunk": 2,
        "chunk counts": 2,
        "originals missing": 1,
        "originals of no document": 1,
    }
    found = examined(own)
    assert wrong(found) == expected
    assert found["healthy"] is False
    assert wrong(examined(own)) == expected  # looking changes nothing
    assert orphan.exists()

    del expected["stored rows"]  # mending the references drops it
    mended = examined(own, "POST")
    assert wrong(mended) == expected
    assert {name for name in expected if not mended[name]["ok"]} == {"originals missing"}
    assert f"first {lost}" in mended["originals missing"]["message"]
    assert wrong(examined(own)) == {"originals missing": 1}
    assert not orphan.exists()
    assert own.search("platypus", mode="fts")["total"] == 1
    assert own.search("is the radiator warm", mode="vector")["results"][0]["document_id"] == boiler
    assert own.search("axolotl2", mode="fts")["results"][0]["document_id"] == whole
    after = own("GET", f"/api/v1/documents/{whole}").json
    assert [(c["index"], c["text"], c["anchor"]) for c in after["chunks"]] == [
        (c["index"], c["text"], c["anchor"]) for c in before["chunks"]
    ]
    assert (after["version"], after["updated_at"], after["uid"]) == (1, None, before["uid"])
    assert own("GET", "/api/v1/documents").json["total"] == 4


@pytest.mark.sqlite
def test_a_damaged_full_text_index_is_made_anew(start_engine: StartEngine, tmp_path: Path) -> None:
    engine = start_engine()
    Http(engine.url).add_note("The platypus sleeps in the river bank")
    engine.stop()
    with apsw.Connection(str(tmp_path / "data" / "kb.db")) as connection:
        connection.execute("UPDATE chunks_fts_content SET c2 = 'something else entirely'")
    connection.close()
    own = Http(start_engine().url)
    assert wrong(examined(own)) == {"full-text index": 1, "full-text rows missing": 1}
    assert examined(own, "POST")["healthy"] is True
    assert examined(own)["healthy"] is True


def test_documents_of_v2_without_originals_are_no_failure(start_engine: StartEngine, tmp_path: Path) -> None:
    engine = start_engine()
    id_ = Http(engine.url).add_file("old.txt", b"a file that v2 read").json["document_id"]
    engine.stop()
    with stored(tmp_path / "data") as store, store.database.write() as tx:
        tx.run("UPDATE documents SET accepted = 0 WHERE id = :id", {"id": id_})
        store.originals.clear(tx)
    found = examined(Http(start_engine().url))
    assert found["healthy"] is True
    assert "1 documents came from v2" in found["originals missing"]["message"]


def test_a_reader_of_the_report_is_told_about_a_full_disk(start_engine: StartEngine, tmp_path: Path) -> None:
    own = Http(start_engine().url)
    staging = tmp_path / "data" / "staging"
    staging.rmdir()
    staging.write_bytes(b"in the way")
    found = examined(own)
    staging.unlink()
    staging.mkdir()
    assert wrong(found) == {"disk space": 1}
    assert examined(own)["healthy"] is True
