"""Several engines on one knowledge base in PostgreSQL: real processes on a real server."""

import json
import shutil
import signal
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from kb.core.errors import Conflict
from kb.core.settings import Settings, bundled_model_dir
from kb.store.backup.restore_into import restore_into
from postgres import PostgresServer
from support import EngineProcess, Http, StartEngine, eventually

StartShared = Callable[..., EngineProcess]


@pytest.fixture
def name() -> str:
    return f"t{uuid.uuid4().hex[:20]}"


@pytest.fixture
def start_shared(start_engine: StartEngine, postgres: PostgresServer, name: str, tmp_path: Path) -> StartShared:
    """Start an engine with a data folder of its own, and the same knowledge base as the others."""

    def start(folder: str, **settings: str) -> EngineProcess:
        return start_engine(tmp_path / folder, KB_DATABASE_URL=postgres.url, KB_NAME=name, **settings)

    return start


@pytest.fixture
def engines(start_shared: StartShared) -> list[Http]:
    return [Http(start_shared(folder).url) for folder in ("one", "two")]


def found(engine: Http, word: str, **given: Any) -> list[int]:
    return [hit["document_id"] for hit in engine.search(word, mode="fts", **given)["results"]]


def test_what_one_engine_writes_the_other_finds_at_once(engines: list[Http]) -> None:
    first, second = engines
    for number in range(20):
        word = f"q{number}"
        id_ = (first if number % 2 else second).add_note(f"The otter {word} swims. " * 3)
        assert found(second if number % 2 else first, word) == [id_]
    changed = first.add_note("A badger digs.")
    assert second("PATCH", f"/api/v1/notes/{changed}", {"text": "A weasel climbs."}).status == 200
    assert (found(first, "badger"), found(first, "weasel")) == ([], [changed])
    assert first("POST", f"/api/v1/documents/{changed}/tags", {"add": ["red"], "remove": []}).status == 200
    assert found(second, "weasel", tags=["red"]) == [changed]
    assert second.search("weasel", facets=True)["facets"]["tag"] == {"red": 1}
    assert first("DELETE", f"/api/v1/documents/{changed}").status == 200
    assert found(second, "weasel") == []
    assert second("POST", f"/api/v1/trash/{changed}/restore").status == 200
    assert found(first, "weasel") == [changed]
    assert first("DELETE", "/api/v1/documents?confirm=DELETE%20ALL").status == 200
    assert found(second, "weasel") == []


def test_a_job_of_an_engine_that_dies_is_finished_by_another_once(
    start_shared: StartShared, postgres: PostgresServer, name: str
) -> None:
    dying, living = start_shared("one"), start_shared("two")
    first, second = Http(dying.url), Http(living.url)
    book = "\n\n".join(f"Chapter {number}. The heron stands in reed {number} and waits." * 8 for number in range(400))
    job = first.add_file("book.md", book.encode(), wait=0).json["job_id"]
    eventually(lambda: second.job(job)["status"] == "running")
    runner = claimed_by(postgres, name, job)
    dead, left = (dying, second) if runner == engine_id(postgres, name, "one") else (living, first)
    dead.stop(signal.SIGKILL)
    ended = left.ended(job)
    assert (ended["status"], ended["attempts"]) == ("completed", 2)
    assert len(left("GET", "/api/v1/documents").json["documents"]) == 1
    with psycopg.connect(postgres.url) as connection:
        connection.execute(f'SET search_path TO "{name}"')
        unpublished = (
            "SELECT count(*) FROM chunks c JOIN documents d ON d.id = document_id WHERE d.revision <> c.revision"
        )
        assert connection.execute(unpublished).fetchone() == (0,)
        assert connection.execute("SELECT count(*) FROM drafts").fetchone() == (0,)
        assert connection.execute("SELECT count(*) = max(seq) FROM changes").fetchone() == (True,)


@pytest.mark.parametrize("waits_first", [True, False])
def test_a_note_that_was_sent_again_and_edited_since_is_not_added_by_the_first_request(
    start_shared: StartShared, postgres: PostgresServer, name: str, *, waits_first: bool
) -> None:
    dying, living = start_shared("one"), start_shared("two")
    first, second = Http(dying.url), Http(living.url)
    text = "\n\n".join(f"Entry {number}. The heron stands in reed {number} and waits." * 8 for number in range(200))
    job = first("POST", "/api/v1/jobs", {"text": text}).json["job_id"]
    eventually(lambda: second.job(job)["status"] == "running")
    runner = claimed_by(postgres, name, job)
    dead, left = (dying, second) if runner == engine_id(postgres, name, "one") else (living, first)
    dead.process.send_signal(signal.SIGSTOP)
    note = left.add_note(text)
    if not waits_first:  # as if the job that waits had been accepted after the other one
        with psycopg.connect(postgres.url, autocommit=True) as connection:
            connection.execute(f'UPDATE "{name}".jobs SET seq = seq + 1000 WHERE id = %s', (job,))
    assert left("PATCH", f"/api/v1/notes/{note}", {"text": "Edited since."}).status == 200
    dead.stop(signal.SIGKILL)
    ended = left.ended(job)
    assert (ended["status"], ended["document_id"]) == ("completed", note)
    assert [one["id"] for one in left("GET", "/api/v1/documents").json["documents"]] == [note]
    assert left("GET", f"/api/v1/documents/{note}").json["text"] == "Edited since."
    other = left.add_note(text)  # asked for now
    assert other != note


def claimed_by(postgres: PostgresServer, name: str, job: str) -> Any:
    with psycopg.connect(postgres.url) as connection:
        found = connection.execute(f'SELECT claimed_by FROM "{name}".jobs WHERE id = %s', (job,)).fetchone()
    return found and found[0]


def engine_id(postgres: PostgresServer, name: str, folder: str) -> Any:
    with psycopg.connect(postgres.url) as connection:
        found = connection.execute(f'SELECT id FROM "{name}".engines WHERE place LIKE %s', (f"%/{folder}",)).fetchone()
    return found and found[0]


def test_an_engine_that_lacks_the_new_model_says_so_and_answers_nothing(
    start_shared: StartShared, tmp_path: Path
) -> None:
    near = tmp_path / "home" / "kb" / "models" / "near"
    shutil.copytree(bundled_model_dir(), near)
    (near / "kb-model.json").write_text(json.dumps({"passage_prefix": "passage: ", "query_prefix": "query: "}))
    first = Http(start_shared("one", XDG_DATA_HOME=str(tmp_path / "home")).url)
    second = Http(start_shared("two", XDG_DATA_HOME=str(tmp_path / "other")).url)
    first.add_note("The heron stands in the reed.")
    job = first("POST", "/api/v1/reindex", {"model": "near"}).json["job_id"]
    assert first.ended(job)["status"] == "completed"
    eventually(lambda: second("GET", "/health?ready").status == 503)
    asked = second("POST", "/api/v1/search", {"query": "heron"})
    assert asked.status == 503
    assert "near" in asked.json["error"]["message"]
    first.add_note("The bittern hides.")
    shutil.copytree(near, tmp_path / "other" / "kb" / "models" / "near")
    eventually(lambda: second("GET", "/health?ready").status == 200)
    assert second.search("bittern")["results"]


def test_what_replaces_everything_is_refused_also_after_the_connections_were_lost(
    start_shared: StartShared, postgres: PostgresServer, name: str, tmp_path: Path
) -> None:
    http = Http(start_shared("one").url)
    http.add_note("The heron stands in the reed.")
    archive = tmp_path / "kb.tar"
    archive.write_bytes(http("GET", "/api/v1/backup").body)
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        holders = f"SELECT pid FROM pg_locks WHERE objid = (hashtext('{name}')::bigint & 4294967295)::oid"
        before = connection.execute(holders).fetchall()
        assert before
        for holder in before:
            connection.execute("SELECT pg_terminate_backend(%s)", holder)
        eventually(lambda: (after := connection.execute(holders).fetchall()) and not set(after) & set(before))
    settings = Settings(data_dir=tmp_path / "tool", database_url=postgres.url, name=name)
    with pytest.raises(Conflict, match="Another engine is using"):
        restore_into(archive, settings, force=True)
    assert http.search("heron")["results"]


def test_engines_say_which_they_are_and_one_that_stops_says_so_first(start_shared: StartShared) -> None:
    stopping, living = start_shared("one", KB_DRAIN_SECONDS="2"), start_shared("two")
    first, second = Http(stopping.url), Http(living.url)
    eventually(lambda: len(second("GET", "/api/v1/status").json["engines"]) == 2)
    eventually(lambda: all(engine("GET", "/health?ready").status == 200 for engine in (first, second)))
    ids = [engine("GET", "/health").headers["x-kb-engine"] for engine in (first, second)]

    def shown() -> list[tuple[str, bool, str]]:
        found = second("GET", "/api/v1/status").json["engines"]
        return [(one["id"], one["self"], one["state"]) for one in found]

    eventually(lambda: shown() == [(ids[0], False, "serving"), (ids[1], True, "serving")])
    eventually(lambda: b"kb_engines 2.0" in second("GET", "/metrics").body)
    stopping.process.send_signal(signal.SIGTERM)
    eventually(lambda: first("GET", "/health").status == 503)
    draining = first("GET", "/health")
    assert (draining.json["status"], draining.headers["connection"]) == ("draining", "close")
    accepted = first("POST", "/api/v1/jobs?wait=20", {"text": "An otter that came late."})
    assert accepted.status == 202
    assert stopping.process.wait(30) == 0
    assert second.ended(accepted.json["job_id"])["status"] == "completed"
    assert len(second("GET", "/api/v1/status").json["engines"]) == 1
