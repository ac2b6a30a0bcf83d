"""An engine that stores in PostgreSQL does what one with SQLite does. `make test-postgres` has all tests show it."""

from pathlib import Path
from typing import Any

from kb.core.settings import Settings
from kb.engine.migration import migrate
from postgres import PostgresServer
from support import Http, StartEngine


def found(http: Http, query: str) -> list[tuple[int, float]]:
    return [(hit["chunk_id"], hit["score"]) for hit in http.search(query)["results"]]


def wrong(http: Http) -> list[Any]:
    return [check for check in http("POST", "/api/v1/doctor").json["checks"] if not check["ok"]]


def test_documents_live_in_postgresql(start_engine: StartEngine, postgres: PostgresServer, tmp_path: Path) -> None:
    own = {"KB_DATABASE_URL": postgres.url, "KB_NAME": "journey"}
    engine = start_engine(**own)
    http = Http(engine.url)
    note = http.add_note("The heron stands in the reeds\0 and waits.", tags=["birds"], metadata={"place": "Hollowmere"})
    data = b"Otters swim at night. " * 200
    file = http.add_file("otters.txt", data).json["document_id"]
    http("PATCH", f"/api/v1/notes/{note}", {"text": "The heron flew\0 away."})
    gone = http.add_note("The badger digs.")
    http("DELETE", f"/api/v1/documents/{gone}")
    http("DELETE", f"/api/v1/documents/{gone}?purge=true")
    assert http("GET", f"/api/v1/documents/{note}").json["text"] == "The heron flew\0 away."
    assert http("GET", f"/api/v1/documents/{file}/original").body == data
    assert http.ended(http("POST", "/api/v1/reindex").json["job_id"])["status"] == "completed"
    before = found(http, "birds that flew")
    assert (len(before) > 0, wrong(http)) == (True, [])
    status = http("GET", "/api/v1/status").json
    assert (status["storage"]["backend"], status["health"]["status"]) == ("postgresql", "healthy")
    assert engine.stop() == 0
    again = start_engine(**own)
    assert found(Http(again.url), "birds that flew") == before
    assert not list((tmp_path / "data").rglob("kb.db"))


def test_a_knowledge_base_moves_there_and_back(
    start_engine: StartEngine, postgres: PostgresServer, tmp_path: Path
) -> None:
    settings = Settings(data_dir=tmp_path / "data", name="moves")
    engine = start_engine(KB_DATABASE_URL="")
    http = Http(engine.url)
    for number in range(12):
        http.add_note(f"Note {number} about herons, reeds and {number * 7} boats", tags=["x", f"t{number}"])
    http.add_file("otters.txt", b"Otters swim at night.")
    before = found(http, "herons and otters")
    assert engine.stop() == 0
    there = migrate(settings, postgres.url, force=False)
    assert (there.moved.rows["documents"], there.moved.originals, there.searches) == (13, 1, 13)
    moved = start_engine(KB_DATABASE_URL=postgres.url, KB_NAME="moves")
    assert found(Http(moved.url), "herons and otters") == before
    assert moved.stop() == 0
    away = Settings(data_dir=tmp_path / "data", name="moves", database_url=postgres.url)
    back = migrate(away, f"sqlite:///{tmp_path / 'data' / 'back.db'}", force=False)
    assert back.moved.rows == there.moved.rows
