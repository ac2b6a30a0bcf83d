"""A database that was damaged, or made by another: what it says decides nothing outside, and no answer breaks."""

from pathlib import Path

from kb.store.sqlite.database import connect
from support import Http, StartEngine


def test_a_hash_that_is_a_path_leads_nowhere(start_engine: StartEngine, tmp_path: Path) -> None:
    engine = start_engine()
    id_ = Http(engine.url).add_file("report.txt", b"a file with an original").json["document_id"]
    engine.stop()
    outside = tmp_path / "secret"
    outside.write_text("not kb's")
    connection = connect(tmp_path / "data" / "kb.db")
    connection.execute("UPDATE documents SET content_hash = '../../secret' WHERE id = ?", (id_,))
    connection.close()
    own = Http(start_engine().url)
    reply = own("GET", f"/api/v1/documents/{id_}/original")
    assert (reply.status, reply.json["error"]["code"]) == (404, "not_found")
    assert own("GET", "/api/v1/export").status == 200
    assert own("DELETE", f"/api/v1/documents/{id_}").status == 200
    assert outside.read_text() == "not kb's"


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
