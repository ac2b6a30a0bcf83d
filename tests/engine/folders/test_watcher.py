"""What the operating system tells of, with real folders."""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kb.engine.folders import watcher as module
from kb.engine.folders.watcher import Folders, Watcher
from support import eventually

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="one watch per folder")


@pytest.fixture
def watcher(tmp_path: Path) -> Iterator[Watcher]:
    watcher = Watcher(str(tmp_path), lambda: None)
    yield watcher
    watcher.close()


def test_changes_are_told_again_after_one_that_could_not_be(
    watcher: Watcher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RETRY_SECONDS", 0.1)
    begin(watcher, folders := places(tmp_path, ""), tmp_path)
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.md")).write_text("Some text.")
    eventually(lambda: watcher.problem)
    assert "no UTF-8 text" in str(watcher.problem)
    eventually(lambda: watcher.follow(folders))
    eventually(lambda: watcher.problem is None)
    assert "" in watcher.take()  # what was missed meanwhile is looked for
    (tmp_path / "b.md").write_text("Some text.")
    eventually(lambda: "b.md" in watcher.take())


def test_a_folder_that_was_removed_and_made_again_is_watched_again(watcher: Watcher, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    begin(watcher, folders := places(tmp_path, "", "sub"), tmp_path)
    shutil.rmtree(tmp_path / "sub")
    (tmp_path / "sub").mkdir()
    eventually(lambda: watcher.follow(folders))  # though ext4 gives it the same inode
    eventually(lambda: (tmp_path / "sub" / "a.md").write_text("Some text.") and "sub/a.md" in watcher.take())


def places(root: Path, *paths: str) -> Folders:
    return {path: ((found := (root / path).stat()).st_dev, found.st_ino) for path in paths}


def begin(watcher: Watcher, folders: Folders, root: Path) -> None:
    """Watch these folders, and wait until changes are told."""
    watcher.follow(folders)
    eventually(lambda: (root / "begun").write_text("") == 0 and "begun" in watcher.take())
    assert not watcher.follow(folders)
