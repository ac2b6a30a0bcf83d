"""A damaged page of the database file: what is made from the texts is made again, and nothing else is lost or hangs."""

import io
import json
import shutil
import subprocess
import sys
import tarfile
import time
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest

from kb.store.sqlite.connection import connect
from support import EngineProcess, Http, StartEngine

PAGE = 4096  # bytes
PAGES = "SELECT pageno FROM dbstat WHERE name = ? AND pagetype <> 'overflow' ORDER BY pageno"
NOTES = 40
# Where a page is lost that can be made again; tests/store/test_salvage.py does the same with every table and index.
DERIVED = ("chunks_vec_vector_chunks00", "chunks_fts_content", "chunks_fts_config", "chunks", "jobs", "migrations")
pytestmark = pytest.mark.sqlite
TRUTH = ("documents", "texts", "note_versions", "tags")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with notes and files, of which each test damages a copy."""
    folder = tmp_path_factory.mktemp("whole") / "data"
    engine = EngineProcess(folder)
    own = Http(engine.url)
    for number in range(NOTES):
        own.add_note(f"Animal{number} lives in town{number}. " * 20, tags=[f"tag{number % 3}"])
    for number in range(3):
        text = "\n\n".join(f"Paragraph {part} of file {number} is about planet{part}. " * 10 for part in range(12))
        assert own.add_file(f"file{number}.txt", text.encode()).json["status"] == "completed"
    assert engine.stop() == 0
    return folder


def damaged(whole: Path, tmp_path: Path, name: str) -> Path:
    """A copy of the folder in which one page of a table or an index is zeroed."""
    folder = tmp_path / "data"
    shutil.copytree(whole, folder)
    connection = apsw.Connection(str(folder / "kb.db"))
    pages: list[Any] = connection.execute(PAGES, (name,)).fetchall()
    connection.close()
    zero(folder, pages[len(pages) // 2][0])
    return folder


def zero(folder: Path, page: int) -> None:
    with (folder / "kb.db").open("r+b") as file:
        file.seek((page - 1) * PAGE)
        file.write(bytes(PAGE))


def examined(own: Http, method: str = "GET") -> dict[str, Any]:
    reply = own(method, "/api/v1/doctor")
    assert reply.status == 200, reply.body
    return {check["name"]: check for check in reply.json["checks"]} | {"healthy": reply.json["healthy"]}


def texts(own: Http) -> list[str]:
    listed = own("GET", "/api/v1/documents?limit=100&sort=created").json["documents"]
    return [own("GET", f"/api/v1/documents/{document['id']}/text").body.decode() for document in listed]


@pytest.mark.parametrize("name", DERIVED)
def test_what_is_made_from_the_texts_is_made_again(
    whole: Path, tmp_path: Path, start_engine: StartEngine, name: str
) -> None:
    own = Http(start_engine(damaged(whole, tmp_path, name)).url)
    started = time.monotonic()
    added = own("POST", "/api/v1/jobs?wait=50", {"text": "A note that came after the damage"})
    assert added.json.get("status") in ("completed", "failed") or added.json["error"]["code"] == "conflict", added.body
    assert time.monotonic() - started < 45
    mended = examined(own, "POST")
    assert mended["healthy"] is True, mended
    assert examined(own)["healthy"] is True
    own.add_note("Another note, which came after the mending")
    assert len(texts(own)) >= NOTES + 3 + 1
    for mode in ("fts", "vector"):
        assert [hit["title"][:9] for hit in own.search("Animal7 lives in town7", mode=mode, top=1)["results"]] == [
            "Animal7 l"
        ]
    assert own("GET", "/api/v1/backup").status == 200


@pytest.mark.parametrize("name", TRUTH)
def test_what_only_a_backup_brings_back_is_named_and_left_as_it_is(
    whole: Path, tmp_path: Path, start_engine: StartEngine, name: str
) -> None:
    folder = damaged(whole, tmp_path, name)
    own = Http(start_engine(folder).url)
    found = examined(own)["database file"]
    assert f"cannot be read: {name} " in found["message"]
    assert "Restore a backup" in found["message"]
    mended = examined(own, "POST")["database file"]
    assert (mended["ok"], mended["fixed"]) == (False, 0)


@pytest.mark.parametrize("name", TRUTH)
def test_an_export_holds_what_can_be_read_and_names_the_rest(
    whole: Path, tmp_path: Path, start_engine: StartEngine, name: str
) -> None:
    own = Http(start_engine(damaged(whole, tmp_path, name)).url)
    answer = own("GET", "/api/v1/export")
    assert answer.status == 200, answer.body
    with tarfile.open(fileobj=io.BytesIO(answer.body)) as tar:
        held = {member: file.read().decode() for member in tar.getnames() if (file := tar.extractfile(member))}
    saved = [json.loads(line) for line in held["documents.jsonl"].splitlines()]
    unreadable = held["unreadable.txt"].splitlines()
    assert unreadable
    assert all(document["text"] for document in saved)
    if name == "tags":
        assert (len(saved), len(unreadable)) == (NOTES + 3, NOTES)
    else:
        ids = {f"document {document['id']}" for document in saved}
        assert ids.isdisjoint(unreadable)
        assert 0 < len(saved) < NOTES + 3


def test_a_reindex_at_start_mends_first(whole: Path, tmp_path: Path, start_engine: StartEngine) -> None:
    folder = damaged(whole, tmp_path, "documents_uid")
    own = Http(start_engine(folder, ["--reindex"]).url)
    (job,) = [job for job in own("GET", "/api/v1/jobs?limit=100").json["jobs"] if job["kind"] == "reindex"]
    assert own.ended(job["id"])["status"] == "completed"
    assert examined(own)["healthy"] is True


def test_a_file_that_cannot_be_opened_names_the_way_back(whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    shutil.copytree(whole, folder)
    zero(folder, 1)
    command = [sys.executable, "-m", "kb.cli.main", "serve", "--data-dir", str(folder), "--port", "0"]
    refused = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert refused.returncode == 4
    assert "kb restore FILE --force" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_search_without_full_text_goes_by_meaning_and_says_so(start_engine: StartEngine, tmp_path: Path) -> None:
    own = Http(start_engine().url)
    note = own.add_note("The boiler was serviced in March, so the heating works")
    assert "kb doctor" not in own.search("is the radiator warm").get("notice", "")
    plain = apsw.Connection(str(tmp_path / "data" / "kb.db"))
    plain.execute("UPDATE chunks_fts_data SET block = zeroblob(9) WHERE id > 10").fetchall()
    plain.close()

    found = own.search("heating")
    assert [hit["document_id"] for hit in found["results"]] == [note]
    assert "kb doctor --fix" in found["notice"]
    refused = own("POST", "/api/v1/search", {"query": "heating", "mode": "fts"})
    assert (refused.status, refused.json["error"]["retryable"]) == (409, False)
    assert "kb doctor --fix" in refused.json["error"]["message"]
    assert examined(own, "POST")["healthy"] is True
    assert own.search("heating", mode="fts")["total"] == 1


def test_a_vector_that_is_none_counts_as_missing_and_is_made_again(start_engine: StartEngine, tmp_path: Path) -> None:
    engine = start_engine()
    boiler = Http(engine.url).add_note("The boiler was serviced in March, so the heating works")
    Http(engine.url).add_note("The platypus sleeps in the river bank")
    engine.stop()
    connection = connect(tmp_path / "data" / "kb.db")
    ((chunk,),) = connection.execute("SELECT id FROM chunks WHERE document_id = ?", (boiler,)).fetchall()
    nothing = np.full(384, np.nan, "<f4").tobytes()
    connection.execute("UPDATE chunks_vec SET embedding = ? WHERE chunk_id = ?", (nothing, chunk))
    connection.close()
    own = Http(start_engine().url)
    assert own.search("is the radiator warm")["total"] == 2
    assert examined(own, "POST")["healthy"] is True
    assert own.search("is the radiator warm", mode="vector")["results"][0]["document_id"] == boiler
