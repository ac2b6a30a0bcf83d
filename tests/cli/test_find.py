"""The files that paths, folders and globs name; what is ignored is what git ignores."""

import os
import subprocess
from pathlib import Path

import pytest

from kb.cli.find import find
from kb.core.errors import InvalidRequest, NotFound


def write(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"The content of {name} in {folder.name}")


def found_in(*paths: Path) -> list[str]:
    return [found.path for found in find(map(str, paths)) if found.error is None]


def test_a_folder_is_walked_in_order_without_what_is_hidden(tmp_path: Path) -> None:
    write(tmp_path, "b.txt", "a.txt", ".hidden.txt", "z/1.txt", "c/2.txt", "c/.git/config", ".cache/x.txt", "c/d/3.txt")
    names = [os.path.relpath(path, tmp_path) for path in found_in(tmp_path)]
    assert names == ["a.txt", "b.txt", "c/2.txt", "c/d/3.txt", "z/1.txt"]


def test_a_file_that_is_named_is_added_even_when_it_is_hidden(tmp_path: Path) -> None:
    write(tmp_path, ".env")
    assert found_in(tmp_path / ".env") == [str(tmp_path / ".env")]


def test_a_file_that_is_named_twice_is_added_once(tmp_path: Path) -> None:
    write(tmp_path, "a.txt")
    (tmp_path / "link.txt").symlink_to("a.txt")
    assert found_in(tmp_path / "a.txt", tmp_path, tmp_path / "link.txt") == [str(tmp_path / "a.txt")]


def test_what_cannot_be_added_is_reported(tmp_path: Path) -> None:
    write(tmp_path, "folder/a.txt")
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken").symlink_to("nowhere")
    os.mkfifo(tmp_path / "pipe")
    problems = {
        Path(found.path).name: type(found.error)
        for found in find([str(tmp_path / name) for name in ("folder", "empty", "broken", "pipe", "missing")])
    }
    assert problems == {
        "a.txt": type(None),
        "empty": NotFound,
        "broken": NotFound,
        "pipe": InvalidRequest,
        "missing": NotFound,
    }


def test_inside_a_folder_a_broken_link_is_reported_and_a_pipe_is_no_document(tmp_path: Path) -> None:
    (tmp_path / "broken").symlink_to("nowhere")
    os.mkfifo(tmp_path / "pipe")
    assert [(Path(found.path).name, type(found.error)) for found in find([str(tmp_path)])] == [("broken", NotFound)]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_may_not_be_read_is_reported(tmp_path: Path) -> None:
    write(tmp_path, "a.txt", "secret/b.txt")
    (tmp_path / "secret").chmod(0)
    try:
        outcome = [(Path(found.path).name, type(found.error)) for found in find([str(tmp_path)])]
    finally:
        (tmp_path / "secret").chmod(0o700)
    assert outcome == [("a.txt", type(None)), ("secret", InvalidRequest)]


def below(folder: Path, **given: bool) -> list[str]:
    return [os.path.relpath(found.path, folder) for found in find([str(folder)], **given)]


def test_globs_name_files_and_folders_at_any_depth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "a.md", "b.txt", "c/d.md", "c/e/f.md", "g[1].md", ".git/x", ".hidden/x.md")
    (tmp_path / ".gitignore").write_text("e/\n")
    named = {pattern: [found.path for found in find([pattern])] for pattern in ("*.md", "**/*.md", "c*", "g[1].md")}
    assert named["*.md"] == ["a.md", "g[1].md"]
    assert named["**/*.md"] == ["a.md", "c/d.md", "g[1].md"]
    assert named["c*"] == ["c/d.md"]
    assert named["g[1].md"] == ["g[1].md"]
    assert [type(found.error) for found in find(["*.pdf"])] == [NotFound]


def test_without_a_repository_the_files_of_the_folder_count(tmp_path: Path) -> None:
    write(tmp_path, "a.txt", "build/b.txt", "sub/c.log", "sub/d.txt")
    (tmp_path / ".gitignore").write_text("build\n")
    (tmp_path / "sub" / ".gitignore").write_text("*.log\n")
    assert below(tmp_path) == ["a.txt", "sub/d.txt"]
    assert below(tmp_path, ignore=False) == ["a.txt", "build/b.txt", "sub/c.log", "sub/d.txt"]


NAMES = """
a.txt b.log keep.log build/x.txt src/build/y.txt src/a.txt src/deep/er/z.txt docs/one.md docs/sub/two.md foo/bar/c.txt
x/foo/bar/c.txt abc/x/def abc/def q1.txt q2.txt qa.txt with space.txt trail #hash !bang back\\slash logs/debug.log
logs/2/debug.log node_modules/m/index.js src/node_modules/m.js tmp/keep/this.txt tmp/other.txt [x].txt q[ ünï.txt
"""
PATTERNS = [
    "*.log",
    "*.log\n!keep.log",
    "build/",
    "/build",
    "build",
    "src/*.txt",
    "**/deep",
    "docs/**",
    "docs/*",
    "foo/bar",
    "**/foo/bar",
    "abc/**/def",
    "q[0-9].txt",
    "q[!0-9].txt",
    "q[^a].txt",
    "q?.txt",
    "with space.txt",
    "trail   ",
    "\\#hash",
    "# comment",
    "\\!bang",
    "node_modules",
    "tmp/*\n!tmp/keep/",
    "tmp/\n!tmp/keep/",
    "\\[x\\].txt",
    "[[]x].txt",
    "*\n!*/\n!*.md",
    "/*\n!/src",
    "logs/**/debug.log",
    "**",
    "a**t",
    "ünï*",
    "q[",
    "q[*",
    "back\\",
]


@pytest.mark.parametrize("patterns", PATTERNS)
def test_what_is_left_out_is_what_git_leaves_out(tmp_path: Path, patterns: str) -> None:
    names = [*NAMES.replace("with space.txt", "").split(), "with space.txt"]
    write(tmp_path, *names)
    (tmp_path / ".gitignore").write_text(patterns + "\n")
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    listed = subprocess.run(
        ["git", "-c", "core.excludesFile=", "ls-files", "-z", "--others", "--exclude-standard"],
        cwd=tmp_path,
        capture_output=True,
        check=True,
    )
    wanted = {name for name in listed.stdout.decode().split("\0") if name and not name.startswith(".")}
    assert set(below(tmp_path)) - {"."} == wanted


def test_rules_of_folders_above_and_of_the_repository_count_inside_it(tmp_path: Path) -> None:
    write(tmp_path, "docs/a.md", "docs/b.tmp", "docs/c.bak", "docs/sub/d.tmp", "docs/sub/keep.tmp")
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    (tmp_path / ".gitignore").write_text("*.tmp\n")
    (tmp_path / ".git" / "info" / "exclude").write_text("*.bak\n")
    (tmp_path / "docs" / "sub" / ".gitignore").write_text("!keep.tmp\n")
    assert below(tmp_path / "docs") == ["a.md", "sub/keep.tmp"]
    assert below(tmp_path / "docs" / "sub") == ["keep.tmp"]
    assert [found.path for found in find([str(tmp_path / "docs" / "b.tmp")])] == [str(tmp_path / "docs" / "b.tmp")]
