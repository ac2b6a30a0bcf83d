"""Original files: durable before the row that names them, and nothing left behind."""

import hashlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from kb.core.errors import Conflict, NotFound, TooLarge
from kb.core.settings import Settings
from kb.engine.assembly import RunningEngine
from kb.store.backend import Database
from kb.store.originals import Originals
from kb.store.sqlite import database
from kb.store.sqlite.connection import connect
from kb.store.sqlite.database import SQLiteDatabase
from kb.store.sqlite.originals import OriginalFiles

DATA = b"bytes that must survive a power cut"
SHA256 = hashlib.sha256(DATA).hexdigest()


class SyncingFile(apsw.VFSFile):
    """Says when SQLite has a file written through to the disk."""

    tell: Callable[[str], None]

    def __init__(self, base: str, name: Any, flags: list[int]) -> None:
        self._name = Path(name.filename() if isinstance(name, apsw.URIFilename) else name or "temporary").name
        super().__init__(base, name, flags)

    def xSync(self, flags: int) -> None:  # noqa: N802 - SQLite's name
        super().xSync(flags)
        self.tell(f"sync {self._name}")


class SyncingVFS(apsw.VFS):
    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        return SyncingFile(self.base_name, name, flags)

    def __init__(self) -> None:
        self.base_name = apsw.vfs_names()[0]
        super().__init__("syncing", self.base_name, makedefault=True)


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What happens to the disk, in order: files and folders synced and renamed, rows written and committed."""
    told: list[str] = []
    fsync, rename = os.fsync, os.rename

    def told_fsync(descriptor: int) -> None:
        fsync(descriptor)
        told.append(f"fsync inode {os.fstat(descriptor).st_ino}")

    def told_rename(source: Any, target: Any) -> None:
        rename(source, target)
        told.append(f"rename to {Path(target).name}")

    def told_connect(path: Path) -> apsw.Connection:
        connection = connect(path)
        connection.set_update_hook(lambda _, __, table, ___: told.append(f"write {table}"))
        return connection

    monkeypatch.setattr(os, "fsync", told_fsync)
    monkeypatch.setattr(os, "rename", told_rename)
    monkeypatch.setattr(database, "connect", told_connect)
    monkeypatch.setattr(SyncingFile, "tell", staticmethod(told.append), raising=False)
    vfs = SyncingVFS()
    yield told
    vfs.unregister()


@pytest.mark.sqlite
def test_a_file_is_on_the_disk_before_the_job_that_names_it_and_both_before_the_answer(
    settings: Settings, events: list[str]
) -> None:
    with RunningEngine(settings) as engine:
        engine.intake.add_note("so that the folder and the log exist")
        events.clear()
        with engine.originals.stage() as staged:
            staged.write(DATA)
            engine.intake.add_file(staged, "original.txt")
            happened = list(events)
        kept = engine.originals.path(SHA256)
        file, shelf, folder = (path.stat().st_ino for path in (kept, kept.parent, kept.parent.parent))
    row = len(happened) - 1 - happened[::-1].index("write jobs")
    order = [
        happened.index(f"fsync inode {file}"),
        happened.index(f"rename to {SHA256}"),
        happened.index(f"fsync inode {shelf}"),
        happened.index(f"fsync inode {folder}"),
        happened.index("sync kb.db-wal", max(row, happened.index(f"fsync inode {folder}"))),
    ]
    assert order == sorted(order), happened


@pytest.mark.sqlite
def test_every_commit_is_written_through_to_the_disk(settings: Settings, events: list[str]) -> None:
    with RunningEngine(settings) as engine:
        engine.intake.add_note("so that the log exists")
        for number in range(3):
            events.clear()
            engine.intake.add_note(f"note {number}")
            assert "sync kb.db-wal" in events[events.index("write jobs") :]


def test_every_connection_waits_for_the_disk(tmp_path: Path) -> None:
    connection = connect(tmp_path / "kb.db")
    assert connection.pragma("synchronous") == 2
    assert connection.pragma("journal_mode") == "wal"
    connection.close()


def test_the_folders_of_originals_are_on_the_disk_before_anything_is_put_there(
    tmp_path: Path, events: list[str]
) -> None:
    OriginalFiles(tmp_path, limit=1000)
    assert set(events) == {f"fsync inode {tmp_path.stat().st_ino}"}


@pytest.fixture
def originals(tmp_path: Path) -> Originals:
    return OriginalFiles(tmp_path, limit=1000)


@pytest.fixture
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    made = SQLiteDatabase(tmp_path_factory.mktemp("store") / "kb.db")
    yield made
    made.close()


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_what_is_not_kept_leaves_nothing(originals: Originals, tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), originals.stage() as staged:
        staged.write(DATA)
        raise ZeroDivisionError
    assert files(tmp_path) == []


def test_what_is_kept_lies_under_its_hash(originals: Originals, store: Database, tmp_path: Path) -> None:
    for _ in range(2):
        with originals.stage() as staged, store.write() as tx:
            staged.write(DATA[:10])
            staged.write(DATA[10:])
            staged.sync()
            originals.keep(tx, staged)
    assert files(tmp_path) == [SHA256]
    assert originals.path(SHA256).read_bytes() == DATA
    assert (staged.sha256, staged.size, staged.head) == (SHA256, len(DATA), DATA)


def test_a_file_beyond_the_limit_is_refused_as_its_bytes_arrive(originals: Originals, tmp_path: Path) -> None:
    with pytest.raises(TooLarge), originals.stage() as staged:
        staged.write(bytes(1000))
        staged.write(b"x")
    assert files(tmp_path) == []


def test_a_sweep_removes_what_nothing_names_and_what_was_being_received(
    originals: Originals, store: Database, tmp_path: Path
) -> None:
    for data in (DATA, b"named by nothing"):
        with originals.stage() as staged, store.write() as tx:
            staged.write(data)
            staged.sync()
            originals.keep(tx, staged)
    (tmp_path / "staging" / "left-behind").write_bytes(b"half a fi")
    with store.write() as tx:
        assert originals.sweep(tx, {SHA256}) == 2
    assert files(tmp_path) == [SHA256]


def test_a_file_that_cannot_be_removed_harms_nobody(originals: Originals, store: Database, tmp_path: Path) -> None:
    originals.path(SHA256).mkdir(parents=True)  # no file: removing it fails, also for root
    (originals.path(SHA256) / "inside").write_bytes(DATA)
    for act in (lambda tx: originals.remove(tx, SHA256), originals.clear, lambda tx: originals.sweep(tx, set())):
        with store.write() as tx:
            act(tx)
    assert files(tmp_path) == ["inside"]


@pytest.mark.parametrize(
    "name", ["../../kb.db", "/etc/passwd", "", "aa", SHA256.upper(), SHA256 + "\n", SHA256[:-1], 7, None]
)
def test_only_a_sha256_becomes_a_path(store: Database, tmp_path: Path, name: Any) -> None:
    """What stands in a database, restored or of v2, decides nothing about other files."""
    outside = tmp_path / "kb.db"
    outside.write_bytes(b"precious")
    originals = OriginalFiles(tmp_path, 1000)
    with pytest.raises(NotFound, match="not a sha256"):
        originals.path(name)
    assert not originals.has(name)
    with store.write() as tx:
        originals.remove(tx, name)
    assert outside.read_bytes() == b"precious"


def test_an_original_whose_bytes_changed_is_not_handed_out(store: Database, tmp_path: Path) -> None:
    originals = OriginalFiles(tmp_path, 1000)
    with originals.stage() as staged, store.write() as tx:
        staged.write(DATA)
        staged.sync()
        originals.keep(tx, staged)
    assert originals.verified(SHA256).read_bytes() == DATA
    before = originals.path(SHA256).stat()
    originals.path(SHA256).write_bytes(DATA[:-1] + bytes([DATA[-1] ^ 1]))
    os.utime(originals.path(SHA256), ns=(before.st_atime_ns, before.st_mtime_ns))  # a disk that forgets says nothing
    with pytest.raises(Conflict, match=r"damaged.*kb doctor"):
        originals.verified(SHA256)
