"""Restoring: all of a backup or nothing, and nothing that is not a backup."""

import hashlib
import io
import json
import tarfile
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from kb.core.errors import Conflict, InvalidRequest, KBError, NotFound, StorageFull
from kb.core.searches import SearchRequest
from kb.core.settings import Settings
from kb.engine.assembly import RunningEngine
from kb.index import terms
from kb.store.backup import archive as archives
from kb.store.backup.archive import Archives
from kb.store.backup.restore import restore, unpack
from kb.store.folder import DataFolder
from kb.store.sqlite.database import SQLiteDatabase
from kb.store.sqlite.migrate import migrate
from kb.store.sqlite.originals import OriginalFiles

FILE = """
INSERT INTO documents (title, doc_type, content_hash, created_at, revision, uid)
VALUES ('a file', 'text', :hash, '2026-01-01T00:00:00.000Z', 1, 'u')
"""


@pytest.fixture
def made(tmp_path: Path) -> Archives:
    """A data folder with one original that a document names."""
    data = tmp_path / "data"
    data.mkdir()
    migrate(data / "kb.db", terms.index_terms)
    database = SQLiteDatabase(data / "kb.db")
    originals = OriginalFiles(data, 2**20)
    with originals.stage() as staged, database.write() as tx:
        staged.write(b"the original")
        staged.sync()
        originals.keep(tx, staged)
        tx.run(FILE, {"hash": staged.sha256})
    return Archives(database, originals)


@pytest.fixture
def backup(made: Archives, tmp_path: Path) -> Path:
    path = tmp_path / "backup.tar"
    archive = made.backup()
    path.write_bytes(b"".join(archive.blocks))
    archive.close()
    return path


def changed(path: Path, change: Callable[[dict[str, bytes]], None]) -> Path:
    """The same archive with other members."""
    with tarfile.open(path) as tar:
        held = {info.name: tar.extractfile(info).read() for info in tar}  # type: ignore[union-attr]
    change(held)
    with tarfile.open(path, "w") as tar:
        for name, data in held.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return path


def everything(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_a_backup_becomes_the_same_folder(backup: Path, tmp_path: Path) -> None:
    target = tmp_path / "new" / "place"
    done = restore(backup, target)
    assert (done.originals, done.missing) == (1, 0)
    with SQLiteDatabase(target / "kb.db").read() as tx:
        (sha256,) = tx.column("SELECT content_hash FROM documents")
    assert OriginalFiles(target, 1).path(sha256).read_bytes() == b"the original"
    assert target.stat().st_mode & 0o777 == 0o700
    assert {p.stat().st_mode & 0o777 for p in target.rglob("*") if p.is_file()} == {0o600}
    assert [p.name for p in target.parent.iterdir()] == ["place"]


def test_a_folder_that_holds_something_stays_without_force(backup: Path, tmp_path: Path) -> None:
    before = everything(tmp_path / "data")
    with pytest.raises(Conflict, match="not empty"):
        restore(backup, tmp_path / "data")
    assert everything(tmp_path / "data") == before


def test_force_replaces_what_was_there(backup: Path, tmp_path: Path) -> None:
    (tmp_path / "data" / "originals" / "ab").mkdir()
    (tmp_path / "data" / "originals" / "ab" / "later").write_bytes(b"came later")
    before = everything(tmp_path / "data")
    restore(backup, tmp_path / "data", force=True)
    assert not (tmp_path / "data" / "originals" / "ab").exists()
    kept = everything(tmp_path / "data" / "replaced")
    assert kept == {name: content for name, content in before.items() if name != "engine.lock"}
    restore(backup, tmp_path / "data", force=True)  # what was never started does not push it out
    assert everything(tmp_path / "data" / "replaced") == kept
    settings = Settings(data_dir=tmp_path / "data")
    with RunningEngine(settings) as engine:
        engine.search(SearchRequest("anything"))  # waits until the index is loaded
        for _ in range(100):
            if not (tmp_path / "data" / "replaced").exists():
                break
            time.sleep(0.05)
    assert not (tmp_path / "data" / "replaced").exists()
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []


def test_a_restore_that_was_interrupted_is_finished_by_whoever_opens_the_folder(backup: Path, tmp_path: Path) -> None:
    """Killed in the middle of putting the verified files into place, again and again."""
    data = tmp_path / "data"
    (data / "kb.db-wal").write_bytes(b"of the old database")
    part = data / "restored.part"
    part.mkdir()
    unpack(backup, part)
    wanted = everything(part)
    part.rename(data / "restored")
    (data / "kb.db").unlink()
    (data / "restored" / "kb.db").rename(data / "kb.db")  # one is in its place already
    folder = DataFolder(data)
    folder.open()
    folder.close()
    old = everything(data / "replaced")
    assert old["kb.db-wal"] == b"of the old database"
    folder.forget_replaced()
    assert {name: content for name, content in everything(data).items() if name != "engine.lock"} == wanted


def test_what_was_left_of_an_unpacking_is_no_backup(backup: Path, tmp_path: Path) -> None:
    half = tmp_path / "data" / "restored.part"
    half.mkdir()
    (half / "kb.db").write_bytes(b"half")
    before = everything(tmp_path / "data")
    folder = DataFolder(tmp_path / "data")
    folder.open()
    folder.close()
    assert everything(tmp_path / "data").keys() - {"engine.lock"} == before.keys()
    restore(backup, tmp_path / "data", force=True)
    assert not half.exists()


def test_force_does_not_remove_what_is_not_ours(backup: Path, tmp_path: Path) -> None:
    (tmp_path / "data" / "thesis.odt").write_bytes(b"years of work")
    with pytest.raises(InvalidRequest, match=r"thesis\.odt"):
        restore(backup, tmp_path / "data", force=True)
    assert (tmp_path / "data" / "thesis.odt").exists()


def test_a_folder_that_an_engine_uses_stays(backup: Path, tmp_path: Path) -> None:
    held = DataFolder(tmp_path / "data")
    held.open()
    with pytest.raises(Conflict, match="Another engine"):
        restore(backup, tmp_path / "data", force=True)
    held.close()


def damaged(held: dict[str, bytes]) -> None:
    held["kb.db"] = held["kb.db"][:-1] + b"\x01"


def without_a_file(held: dict[str, bytes]) -> None:
    del held[next(name for name in held if name.startswith("originals"))]


def without_manifest(held: dict[str, bytes]) -> None:
    del held["manifest.json"]


def from_the_future(held: dict[str, bytes]) -> None:
    held["manifest.json"] = json.dumps(json.loads(held["manifest.json"]) | {"format": 99}).encode()


def under_a_false_name(held: dict[str, bytes]) -> None:
    name = next(name for name in held if name.startswith("originals"))
    false = f"originals/{'a' * 2}/{'a' * 64}"
    held[false] = held.pop(name)
    held["manifest.json"] = held["manifest.json"].replace(name.encode(), false.encode())


def flipped(held: dict[str, bytes]) -> None:
    name = next(name for name in held if name.startswith("originals"))
    held[name] = bytes([held[name][0] ^ 1]) + held[name][1:]


@pytest.mark.parametrize("change", [flipped, under_a_false_name])
def test_a_damaged_original_is_named_and_the_rest_is_restored(
    backup: Path, tmp_path: Path, change: Callable[[dict[str, bytes]], None]
) -> None:
    done = restore(changed(backup, change), tmp_path / "new")
    assert (done.originals, done.damage) == (0, [])
    assert done.damaged == ([1] if change is flipped else [])
    assert list((tmp_path / "new").glob("originals/*/*")) == []
    with SQLiteDatabase(tmp_path / "new" / "kb.db").read() as tx:
        assert tx.column("SELECT title FROM documents") == ["a file"]


def test_a_backup_does_without_a_damaged_original_and_says_so(made: Archives, tmp_path: Path) -> None:
    (original,) = (tmp_path / "data").glob("originals/*/*")
    original.write_bytes(b"the Original")
    path = tmp_path / "backup.tar"
    archive = made.backup()
    path.write_bytes(b"".join(archive.blocks))
    archive.close()
    done = restore(path, tmp_path / "new")
    assert (done.originals, done.missing, done.damaged) == (0, 0, [1])


def with_statement(sql: str) -> Callable[[dict[str, bytes]], None]:
    """The backup's database after somebody else's SQL, under a manifest that fits."""

    def change(held: dict[str, bytes]) -> None:
        with tempfile.NamedTemporaryFile() as file:
            file.write(held["kb.db"])
            file.flush()
            connection = apsw.Connection(file.name)
            connection.execute(sql).fetchall()
            connection.close()
            held["kb.db"] = Path(file.name).read_bytes()
        sealed(held)

    return change


def sealed(held: dict[str, bytes]) -> None:
    about = json.loads(held["manifest.json"])
    for member in about["members"]:
        if member["name"] == "kb.db":
            member |= {"size": len(held["kb.db"]), "sha256": hashlib.sha256(held["kb.db"]).hexdigest()}
    held["manifest.json"] = json.dumps(about).encode()


def of_zeros(held: dict[str, bytes]) -> None:
    """Every page but the first."""
    held["kb.db"] = held["kb.db"][:4096] + bytes(len(held["kb.db"]) - 4096)
    sealed(held)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (with_statement("CREATE TRIGGER thief AFTER INSERT ON chunks BEGIN DELETE FROM tags; END"), "thief"),
        (with_statement("CREATE VIEW spy AS SELECT 1"), "spy"),
        (of_zeros, "cannot be used"),
    ],
)
def test_force_looks_at_the_database_before_it_replaces_anything(
    backup: Path, tmp_path: Path, change: Callable[[dict[str, bytes]], None], named: str
) -> None:
    before = everything(tmp_path / "data")
    with pytest.raises(InvalidRequest, match=named):
        restore(changed(backup, change), tmp_path / "data", force=True)
    assert everything(tmp_path / "data").keys() - {"engine.lock"} == before.keys()


def test_changed_rows_are_restored_and_named(backup: Path, tmp_path: Path) -> None:
    changed(backup, with_statement("UPDATE documents SET title = 'another'"))
    assert restore(backup, tmp_path / "new").damage == ["1 rows of documents are not as kb wrote them."]


def named(name: str) -> Callable[[dict[str, bytes]], None]:
    return lambda held: held.update({name: b"x"})


@pytest.mark.parametrize(
    "change",
    [
        damaged,
        without_a_file,
        without_manifest,
        from_the_future,
        named("../outside"),
        named("/tmp/outside"),
        named("originals/ab/../../../outside"),
        named("kb.db-wal"),
    ],
)
def test_what_is_not_exactly_a_backup_changes_nothing(
    backup: Path, tmp_path: Path, change: Callable[[dict[str, bytes]], None]
) -> None:
    before = everything(tmp_path / "data")
    changed(backup, change)
    with pytest.raises(InvalidRequest):
        restore(backup, tmp_path / "data", force=True)
    with pytest.raises(InvalidRequest):
        restore(backup, tmp_path / "new")
    assert everything(tmp_path / "data").keys() - {"engine.lock"} == before.keys()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["backup.tar", "data"]


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE])
def test_links_and_other_things_are_refused(tmp_path: Path, kind: bytes) -> None:
    path = tmp_path / "links.tar"
    with tarfile.open(path, "w") as tar:
        info = tarfile.TarInfo("kb.db")
        info.type, info.linkname = kind, "/etc/passwd"
        tar.addfile(info)
    with pytest.raises(InvalidRequest, match="no backup does"):
        restore(path, tmp_path / "new")


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_half_a_backup_is_refused(backup: Path, tmp_path: Path, share: float) -> None:
    data = backup.read_bytes()
    backup.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(InvalidRequest):
        restore(backup, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_backup_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        restore(tmp_path / "no.tar", tmp_path / "new")


def test_an_original_that_is_gone_is_named_in_the_manifest(made: Archives, tmp_path: Path) -> None:
    for file in (tmp_path / "data" / "originals").glob("*/*"):
        file.unlink()
    archive = made.backup()
    path = tmp_path / "backup.tar"
    path.write_bytes(b"".join(archive.blocks))
    assert restore(path, tmp_path / "new").missing == 1


def test_archives_are_made_a_few_at_a_time(made: Archives) -> None:
    held = [made.backup() for _ in range(archives.MOST)]
    with pytest.raises(KBError, match="already"):
        made.export()
    held[0].close()
    held[0].close()
    made.export().close()
    with pytest.raises(KBError, match="already"):
        [made.export() for _ in range(2)]


def test_a_backup_that_would_fill_the_disk_is_refused_at_once(
    made: Archives, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kb.store.staging.LEAST_FREE", 2**60)
    with pytest.raises(StorageFull, match="are free"):
        made.backup()
    assert list((tmp_path / "data" / "staging").iterdir()) == []
