"""A database that was damaged, or made by another: what it says decides nothing outside, and no answer breaks."""

from pathlib import Path

import apsw
import pytest
import sqlite_vec

from support import Http, StartEngine, stored


def test_a_hash_that_is_a_path_leads_nowhere(start_engine: StartEngine, tmp_path: Path) -> None:
    engine = start_engine()
    id_ = Http(engine.url).add_file("report.txt", b"a file with an original").json["document_id"]
    engine.stop()
    outside = tmp_path / "secret"
    outside.write_text("not kb's")
    with stored(tmp_path / "data") as store, store.database.write() as tx:
        tx.run("UPDATE documents SET content_hash = '../../secret' WHERE id = :id", {"id": id_})
    own = Http(start_engine().url)
    reply = own("GET", f"/api/v1/documents/{id_}/original")
    assert (reply.status, reply.json["error"]["code"]) == (404, "not_found")
    assert own("GET", "/api/v1/export").status == 200
    assert own("DELETE", f"/api/v1/documents/{id_}?purge=true").status == 200
    assert outside.read_text() == "not kb's"


@pytest.mark.sqlite
def test_a_damaged_original_is_not_served(start_engine: StartEngine, tmp_path: Path) -> None:
    own = Http(start_engine().url)
    id_ = own.add_file("report.txt", b"a file with an original").json["document_id"]
    (file,) = (tmp_path / "data" / "originals").glob("*/*")
    file.write_bytes(b"a file with an Original")
    reply = own("GET", f"/api/v1/documents/{id_}/original")
    assert (reply.status, reply.json["error"]["code"]) == (409, "conflict")
    assert "damaged" in reply.json["error"]["message"]
    own.add_file("report.txt", b"a file with an original")  # which the message says
    assert own("GET", f"/api/v1/documents/{id_}/original").body == b"a file with an original"


@pytest.mark.sqlite
@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE documents SET metadata = '{', ledger = 'none'",
        "UPDATE documents SET title = CAST(x'61ff62' AS TEXT)",
        "UPDATE documents SET title = x'ff00fe'",
        "UPDATE chunks SET slide = x'ff00fe'",
        "UPDATE chunks SET terms = -5",
        "UPDATE chunks SET terms = 'many'",
        "UPDATE jobs SET started_at = 'yesterday', finished_at = 7",
        "UPDATE sqlite_sequence SET seq = 9223372036854775806",
        "UPDATE chunks_vec_chunks SET validity = 'x'",
        "UPDATE chunks_vec_vector_chunks00 SET vectors = 5",
        "INSERT INTO chunks_fts_content SELECT 3000000000, c0, c1, c2 FROM chunks_fts_content;"
        "INSERT INTO chunks_fts (chunks_fts) VALUES ('rebuild')",
        "PRAGMA foreign_keys = OFF; UPDATE chunks SET id = 4000000000",
        "PRAGMA foreign_keys = OFF; UPDATE chunks SET id = -3",
        "PRAGMA foreign_keys = OFF; UPDATE documents SET id = 4000000000; UPDATE chunks SET document_id = 4000000000",
    ],
)
def test_wild_values_break_no_answer_and_the_doctor_names_them(
    start_engine: StartEngine, tmp_path: Path, damage: str
) -> None:
    engine = start_engine()
    Http(engine.url).add_note("The boiler was serviced in March")
    engine.stop()
    connection = apsw.Connection(str(tmp_path / "data" / "kb.db"))
    connection.enable_load_extension(True)
    connection.load_extension(sqlite_vec.loadable_path())
    connection.execute(damage).fetchall()
    connection.close()
    engine = start_engine()
    own = Http(engine.url)
    for path in ("documents", "documents/1", "documents/1/text", "jobs", "tags", "status", "export", "backup"):
        assert own("GET", f"/api/v1/{path}").status in (200, 404, 409), path
    for mode in ("hybrid", "fts", "vector"):
        reply = own("POST", "/api/v1/search", {"query": "was the boiler serviced", "mode": mode})
        assert reply.status in (200, 409, 503), reply.body
    assert own("POST", "/api/v1/jobs?wait=20", {"text": "Another note"}).status in (202, 409)
    assert own("GET", "/api/v1/doctor").json["healthy"] is False
    assert own("DELETE", "/api/v1/documents/1").status in (200, 404, 409)
    assert engine.process.poll() is None
