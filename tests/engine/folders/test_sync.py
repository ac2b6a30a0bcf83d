"""What one folder is brought to by looks at all or some of it, with a real database."""

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kb.core.folders import FolderOptions
from kb.core.values import Removed
from kb.engine.folders import brake, view
from kb.engine.folders.files import stamp_at
from kb.engine.folders.sync import REMOVED_IN_KB, Synchroniser
from kb.engine.folders.walk import Walker
from kb.index import terms
from kb.store import watched
from kb.store.backend import Row, Transaction
from kb.store.sqlite.database import SQLiteDatabase
from kb.store.sqlite.migrate import migrate
from kb.store.watched import NO_STAMP, WatchedFile

OPTIONS = FolderOptions(tags=[], include=[], exclude=[])


class Synced:
    """A folder whose files are indexed; `documents` has the ids by path."""

    def __init__(self, place: Path) -> None:
        self.root = place / "root"
        migrate(place / "kb.db", terms.index_terms)
        self.database = SQLiteDatabase(place / "kb.db")
        with self.database.write() as tx:
            self._folder = watched.add(tx, str(self.root), OPTIONS)
        self.sync = Synchroniser(self._folder, self.database, Walker(str(self.root), OPTIONS, "/nowhere", 2**20), gone)

    def index(self, *paths: str) -> None:
        first = len(self.documents) + 1
        with self.database.write() as tx:
            watched.put(tx, self._folder.id, [self._write(path, number) for number, path in enumerate(paths, first)])

    def _write(self, path: str, document_id: int) -> WatchedFile:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"Text of {path}.")
        bytes_ = hashlib.sha256(file.read_bytes()).hexdigest()
        return WatchedFile(path, stamp_at(str(self.root), path) or NO_STAMP, "indexed", None, bytes_, document_id)

    @property
    def documents(self) -> dict[str, int | None]:
        with self.database.read() as tx:
            return {path: one.document_id for path, one in watched.files(tx, self._folder.id).items()}


def gone(tx: Transaction, row: Row) -> Removed:
    raise AssertionError(f"document {row['id']} is none of the test ({tx})")


@pytest.fixture
def synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Synced]:
    monkeypatch.setattr(brake, "GRACE", 0.0)
    monkeypatch.setattr(view, "CALM", 0.0)
    synced = Synced(tmp_path)
    synced.index("a.md", "b.md", "sub/c.md")
    yield synced
    synced.database.close()


def test_a_move_of_which_one_half_is_told_keeps_the_document(synced: Synced) -> None:
    (synced.root / "a.md").rename(synced.root / "sub" / "moved.md")
    for _ in range(2):
        looked = synced.sync.look({"a.md"})
        assert synced.documents["a.md"] == 1
        assert looked.scan is not None
    synced.sync.look()
    assert synced.documents == {"b.md": 2, "sub/c.md": 3, "sub/moved.md": 1}


def test_a_move_of_many_files_of_which_one_half_is_told_asks_nobody(synced: Synced) -> None:
    names = [f"{number}.md" for number in range(9)]
    synced.index(*names)
    for name in names:
        (synced.root / name).rename(synced.root / "sub" / name)
    assert synced.sync.look(set(names)).brake is None
    assert synced.sync.look().brake is None
    assert {f"sub/{name}" for name in names} < synced.documents.keys()


def test_many_files_that_are_nowhere_ask_a_person(synced: Synced) -> None:
    names = [f"{number}.md" for number in range(9)]
    synced.index(*names)
    for name in names:
        (synced.root / name).unlink()
    assert synced.sync.look().brake == "That is many at once"
    assert set(names) < synced.documents.keys()


def test_a_person_confirms_what_was_named_and_nothing_that_vanished_since(synced: Synced) -> None:
    names = [f"{number}.md" for number in range(40)]
    synced.index(*names)
    for name in names[:9]:
        (synced.root / name).unlink()
    synced.sync.look(confirmed=True)  # nobody was asked yet
    assert set(synced.sync.brake.missing) == set(names[:9])
    for name in names[9:30]:
        (synced.root / name).unlink()
    assert synced.sync.look(confirmed=True).brake == "That is many at once"
    assert set(names[9:]) < synced.documents.keys()
    assert not set(names[:9]) & synced.documents.keys()
    assert set(synced.sync.brake.missing) == set(names[9:30])


def test_all_files_of_a_small_folder_ask_a_person_too(synced: Synced) -> None:
    for name in ("a.md", "b.md", "sub/c.md"):
        (synced.root / name).unlink()
    (synced.root / "sub" / "kept.bin").write_bytes(b"\0\1\2")
    assert synced.sync.look().brake == "That is all of them"
    assert len([path for path in synced.documents if path.endswith(".md")]) == 3


def test_what_was_removed_in_kb_stays_away_under_another_name(synced: Synced, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view, "CALM", 1000.0)  # the new name waits to be read
    with synced.database.write() as tx:
        known = watched.files(tx, 1)["a.md"]
        watched.put(tx, 1, [replace(known, state="ignored", reason=REMOVED_IN_KB)])
    (synced.root / "a.md").rename(synced.root / "renamed.md")
    assert synced.sync.look().scan is not None
    monkeypatch.setattr(view, "CALM", 0.0)
    synced.sync.look()
    with synced.database.read() as tx:
        assert watched.files(tx, 1)["renamed.md"].reason == REMOVED_IN_KB


def test_a_file_that_is_nowhere_is_forgotten_by_a_look_at_everything(synced: Synced) -> None:
    (synced.root / "a.md").unlink()
    synced.sync.look({"a.md"})
    synced.sync.look()
    assert synced.documents == {"b.md": 2, "sub/c.md": 3}


def test_a_file_is_missed_from_the_first_look_at_everything_on(synced: Synced, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(brake, "GRACE", 1000.0)
    (synced.root / "a.md").unlink()
    assert synced.sync.look({"a.md"}).scan is not None
    assert synced.sync.brake.missing == []
    synced.sync.look()
    assert synced.sync.brake.missing == ["a.md"]
    assert synced.documents["a.md"] == 1
