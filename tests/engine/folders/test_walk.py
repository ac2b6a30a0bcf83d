"""What is found in a folder, and what is left out of it and why."""

import os
from pathlib import Path

import pytest

from kb.core.folders import FolderOptions
from kb.engine.folders.walk import Unreachable, Walker


def walker(root: Path, include: list[str] = [], exclude: list[str] = []) -> Walker:  # noqa: B006
    options = FolderOptions(tags=[], include=include, exclude=exclude)
    return Walker(str(root), options, str(root / "kb-data"), max_bytes=100)


def write(root: Path, *paths: str, text: str = "text") -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


def test_each_file_that_is_left_out_has_a_reason(tmp_path: Path) -> None:
    write(
        tmp_path, "a.md", "sub/b.md", ".hidden", ".git/config", "kb-data/kb.db", "x.log", "sub/y.log", "z.tmp", "out/p"
    )
    write(tmp_path, "empty", text="")
    write(tmp_path, "large", text="x" * 101)
    write(tmp_path, ".gitignore", text="*.log\n")
    write(tmp_path, "sub/.kbignore", text="!*.log\n")
    os.mkfifo(tmp_path / "pipe")
    found = walker(tmp_path, exclude=["out/"]).everything()
    assert sorted(found.files) == ["a.md", "sub/b.md", "sub/y.log"]
    assert found.failed == {"large": "too large"}
    assert found.ignored == {
        ".hidden": "hidden",
        ".git/": "hidden",
        ".gitignore": "hidden",
        "sub/.kbignore": "hidden",
        "kb-data/": "the data folder of kb",
        "x.log": "*.log in .gitignore",
        "z.tmp": "*.tmp in the list of temporary files",
        "out/": "out/ in exclude",
        "empty": "empty",
        "pipe": "not a regular file",
    }


def test_links_are_not_followed_and_loops_end(tmp_path: Path) -> None:
    write(tmp_path, "root/a.md", "root/sub/b.md", "outside/secret.md")
    root = tmp_path / "root"
    (root / "loop").symlink_to(root)
    (root / "inside.md").symlink_to("a.md")
    (root / "out.md").symlink_to(tmp_path / "outside" / "secret.md")
    (root / "dangling").symlink_to("nowhere")
    found = walker(root).everything()
    assert sorted(found.files) == ["a.md", "sub/b.md"]
    assert found.ignored["inside.md"] == "a link; its target is found at its own path"
    assert found.ignored["out.md"] == "a link that leads out of the folder"
    assert {"loop", "dangling"} <= found.ignored.keys()


def test_only_what_is_included_is_taken(tmp_path: Path) -> None:
    write(tmp_path, "a.md", "a.txt", "papers/x.pdf", "papers/deep/y.txt")
    assert sorted(walker(tmp_path, include=["*.md", "papers/"]).everything().files) == [
        "a.md",
        "papers/deep/y.txt",
        "papers/x.pdf",
    ]


def test_some_paths_are_looked_at_as_a_walk_of_everything_would(tmp_path: Path) -> None:
    write(tmp_path, "a.md", "sub/b.md", "sub/c.md", "node_modules/x.md", ".gitignore")
    (tmp_path / ".gitignore").write_text("node_modules/\nsub/c.md\n")
    found = walker(tmp_path).at(["sub", "node_modules/x.md", "gone/x.md", "a.md"])
    assert sorted(found.files) == ["a.md", "sub/b.md"]
    assert found.ignored == {"sub/c.md": "sub/c.md in .gitignore", "node_modules/": "node_modules/ in .gitignore"}


def test_a_deep_folder_is_walked(tmp_path: Path) -> None:
    deep = "/".join(["d"] * 600)
    write(tmp_path, f"{deep}/a.md")
    assert list(walker(tmp_path).everything().files) == [f"{deep}/a.md"]


def test_a_name_that_is_no_text_is_reported(tmp_path: Path) -> None:
    (Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.md"))).write_text("x")
    (Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xfe"))).mkdir()
    reason = "its name is no UTF-8 text"
    assert walker(tmp_path).everything().failed == {"\\udcff.md": reason, "\\udcfe/": reason}


def test_a_path_that_is_too_long_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in range(25):  # no system call takes such a path, but names below the current folder
        os.mkdir("d" * 200)
        os.chdir("d" * 200)
    Path("a.md").write_text("Some text.")
    listing = walker(tmp_path).everything()
    assert not listing.files
    assert not listing.unknown
    assert list(listing.failed.values()) == ["its path is too long"]


def test_a_root_that_is_missing_is_unreachable(tmp_path: Path) -> None:
    with pytest.raises(Unreachable, match="No such file"):
        walker(tmp_path / "gone").everything()


def test_a_folder_that_cannot_be_read_says_nothing_about_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "a.md", "stale/b.md", "denied/c.md")
    real = os.scandir

    def scandir(place: str) -> "os._ScandirIterator[str]":
        if place.endswith("stale"):
            raise OSError(116, "Stale file handle")
        if place.endswith("denied"):
            raise PermissionError(13, "Permission denied")
        return real(place)

    monkeypatch.setattr(os, "scandir", scandir)
    found = walker(tmp_path).everything()
    assert found.unknown == ["stale"]
    assert found.failed == {"denied/": "permission denied"}
    assert list(found.files) == ["a.md"]
