"""Backups that are consistent while writing goes on, exports that say what the routes say."""

import hashlib
import io
import json
import socket
import tarfile
import threading
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from kb.store.backup.restore import Restored, restore
from kb.store.backup.restore_into import restore_into
from support import Http, StartEngine, eventually, settings_of


def members(archive: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return {info.name: tar.extractfile(info).read() for info in tar}  # type: ignore[union-attr]


def lines(archive: bytes) -> list[Any]:
    return [json.loads(line) for line in members(archive)["documents.jsonl"].splitlines()]


def test_a_backup_names_and_hashes_what_it_holds(start_engine: StartEngine) -> None:
    own = Http(start_engine().url)
    own.add_note("A note about the boiler")
    own.add_file("letter.txt", b"a letter to keep")
    reply = own("GET", "/api/v1/backup")
    assert (reply.status, reply.headers["content-type"]) == (200, "application/x-tar")
    assert reply.headers["content-disposition"].startswith('attachment; filename="kb-backup-')
    held = members(reply.body)
    manifest = json.loads(held.pop("manifest.json"))
    sha256 = hashlib.sha256(b"a letter to keep").hexdigest()
    assert set(held) == {"kb.db", f"originals/{sha256[:2]}/{sha256}"}
    assert {(m["name"], m["size"], m["sha256"]) for m in manifest["members"]} == {
        (name, len(data), hashlib.sha256(data).hexdigest()) for name, data in held.items()
    }
    assert (manifest["kb_version"], manifest["missing"]) == (reply.headers["x-kb-version"], [])


def put_back(archive: Path, data_dir: Path) -> Restored:
    """As `kb restore` does it with this data folder and its database."""
    settings = settings_of(data_dir)
    return restore_into(archive, settings) if settings.uses_postgres else restore(archive, data_dir)


def test_a_backup_taken_while_others_write_is_one_moment(start_engine: StartEngine, tmp_path: Path) -> None:
    own = Http(start_engine().url)
    for number in range(5):
        own.add_file(f"before-{number}.txt", f"the file before, number {number}".encode())
    stop = threading.Event()
    added: list[int] = []

    def write() -> None:
        while not stop.is_set():
            added.append(own.add_note(f"meanwhile number {len(added)}"))
            own.add_file(f"meanwhile-{len(added)}.txt", f"file meanwhile {len(added)}".encode())

    writer = threading.Thread(target=write)
    writer.start()
    try:
        eventually(lambda: len(added) >= 3)
        archive = tmp_path / "backup.tar"
        archive.write_bytes(own("GET", "/api/v1/backup").body)
        before = len(added)
        eventually(lambda: len(added) >= before + 2)
    finally:
        stop.set()
        writer.join()
    done = put_back(archive, tmp_path / "restored")
    assert (done.missing, done.originals >= 5) == (0, True)
    other = Http(start_engine(tmp_path / "restored").url)
    listed = other("GET", "/api/v1/documents?limit=1000").json
    status = other("GET", "/api/v1/status").json
    assert 8 <= listed["total"] == status["documents"]["total"] < own("GET", "/api/v1/documents").json["total"]
    assert status["chunks"] == sum(document["chunk_count"] for document in listed["documents"])
    assert other("GET", "/api/v1/doctor").json["healthy"] is True
    assert other.search("meanwhile number 0", mode="fts", doc_type="note")["total"] >= 1
    assert other.search("the file before, number 3")["results"][0]["text"] == "the file before, number 3"
    for document in listed["documents"]:
        assert other("GET", f"/api/v1/documents/{document['id']}/original").status == 200


def test_a_file_that_waits_to_be_read_is_in_the_backup(start_engine: StartEngine, tmp_path: Path) -> None:
    own = Http(start_engine().url)
    waiting = [own.add_file(f"wait-{n}.txt", f"waits {n} ".encode() * 200, wait=0).json["job_id"] for n in range(6)]
    archive = tmp_path / "backup.tar"
    archive.write_bytes(own("GET", "/api/v1/backup").body)
    put_back(archive, tmp_path / "restored")
    other = Http(start_engine(tmp_path / "restored").url)
    assert {other.ended(job)["status"] for job in waiting} == {"completed"}


@pytest.mark.parametrize("route", ["backup", "export"])
def test_nothing_remains_when_the_client_goes_away(start_engine: StartEngine, tmp_path: Path, route: str) -> None:
    engine = start_engine()
    own = Http(engine.url)
    own.add_file("large.txt", b" \n" * 8_000_000)  # more than all buffers hold, and nothing to index
    for _ in range(3):  # more often than there are places
        address = urlsplit(engine.url)
        with socket.create_connection((str(address.hostname), int(address.port or 0))) as connection:
            connection.sendall(f"GET /api/v1/{route} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            assert connection.recv(100).startswith(b"HTTP/1.1 200")
        eventually(lambda: not list((tmp_path / "data" / "staging").iterdir()), 10)
    assert own("GET", "/health").status == 200


def test_an_export_says_what_the_routes_say(start_engine: StartEngine) -> None:
    own = Http(start_engine().url)
    note = own.add_note("First text of a note", tags=["b", "a"], metadata={"k": [1, "ü"]})
    own("PATCH", f"/api/v1/notes/{note}", {"text": "Second text\u2028of the note"})
    file = own.add_file("plan.md", "# Plan\n\nZwölf Schritte.\n".encode()).json["document_id"]
    reply = own("GET", "/api/v1/export")
    assert reply.headers["content-disposition"].startswith('attachment; filename="kb-export-')
    first, second = lines(reply.body)
    versions = own("GET", f"/api/v1/notes/{note}/versions").json["versions"]
    told = {"titled": False, "versions": versions, "brought": 1}
    assert first == own("GET", f"/api/v1/documents/{note}").json | told
    text = own("GET", f"/api/v1/documents/{file}/text").body.decode()
    assert second == own("GET", f"/api/v1/documents/{file}").json | {"titled": False, "text": text}
    held = members(reply.body)
    assert set(held) - {"documents.jsonl"} == {f"originals/{second['content_hash'][:2]}/{second['content_hash']}"}


def test_an_export_of_nothing_is_an_archive_too(start_engine: StartEngine) -> None:
    assert lines(Http(start_engine().url)("GET", "/api/v1/export").body) == []
