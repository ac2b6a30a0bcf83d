"""A disk that is full, a folder that is gone: a clear error, nothing lost, and service resumes by itself."""

import resource
import time
from pathlib import Path

import pytest

from kb.core.settings import Settings
from kb.engine.assembly import RunningEngine
from kb.index import terms
from kb.store.sqlite import database
from kb.store.sqlite.migrate import migrate
from support import EngineProcess, Http, StartEngine, eventually


def limit_files(engine: EngineProcess, size: int) -> None:
    """No file of this process may grow beyond `size`: what a full disk looks like to it."""
    resource.prlimit(engine.process.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


@pytest.mark.sqlite
def test_a_full_disk_is_survived_and_service_resumes_by_itself(start_engine: StartEngine, tmp_path: Path) -> None:
    engine = start_engine()
    http = Http(engine.url)
    before = http.add_note("written while there was room")
    limit_files(engine, 1)
    for reply in (
        http("POST", "/api/v1/jobs?wait=5", {"text": "a note that finds no room"}),
        http.add_file("no-room.txt", b"a file that finds no room"),
        http("PATCH", f"/api/v1/notes/{before}", {"text": "a change that finds no room"}),
        http("DELETE", f"/api/v1/documents/{before}"),
    ):
        assert (reply.status, reply.json["error"]["code"]) == (507, "storage_full"), reply.body
        assert reply.json["error"]["retryable"] is True
    assert http.search("written while there was room")["results"][0]["document_id"] == before
    health = http("GET", "/api/v1/status").json["health"]
    assert (health["status"], health["storage"]) == ("degraded", False)
    assert "cannot be written" in health["issues"][0]

    limit_files(engine, resource.RLIM_INFINITY)
    assert http("GET", f"/api/v1/documents/{before}").json["text"] == "written while there was room"
    after = http.add_note("written after room was made")
    assert http.search("after room was made", mode="fts")["results"][0]["document_id"] == after
    assert http("GET", "/api/v1/status").json["health"]["status"] == "healthy"
    assert http("GET", "/api/v1/documents").json["total"] == 2
    assert list((tmp_path / "data" / "staging").iterdir()) == []


def test_a_job_that_meets_a_full_disk_is_finished_later(start_engine: StartEngine) -> None:
    engine = start_engine()
    http = Http(engine.url)
    text = "\n\n".join(f"A long file about walrus number {n}, who needs room to rest." * 3 for n in range(150))
    job_id = http.add_file("long.txt", text.encode(), wait=0).json["job_id"]
    limit_files(engine, 1)
    eventually(lambda: not http("GET", "/api/v1/status").json["health"]["storage"])
    time.sleep(2)  # the worker tries again every second, and must not give up
    assert http.job(job_id)["status"] in ("running", "queued")
    limit_files(engine, resource.RLIM_INFINITY)
    assert http.ended(job_id)["status"] == "completed"
    assert http("GET", "/api/v1/documents").json["total"] == 1
    assert "walrus number 149" in " ".join(hit["text"] for hit in http.search("walrus 149", mode="fts")["results"])


@pytest.mark.sqlite
def test_what_a_large_deletion_freed_is_given_back_by_itself(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "LEAST_WASTED", 2**20)
    monkeypatch.setattr(database, "IDLE_SECONDS", 0.1)
    filled = database.SQLiteDatabase(settings.database_path)
    settings.data_dir.mkdir()
    migrate(settings.database_path, terms.index_terms)
    with filled.write() as tx:
        rows = [{"key": f"key {number}", "value": "x" * 2000} for number in range(5000)]
        tx.run_many("INSERT INTO meta (key, value) VALUES (:key, :value)", rows)
        tx.run("DELETE FROM meta")
    filled.close()
    assert settings.database_path.stat().st_size > 4 * 2**20
    with RunningEngine(settings):
        eventually(lambda: settings.database_path.stat().st_size < 2**20)
