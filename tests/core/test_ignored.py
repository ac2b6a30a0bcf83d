"""`.gitignore` and `.kbignore`; `tests/cli/test_find.py` compares the patterns with git itself."""

import os
from pathlib import Path

import pytest

from kb.core import ignored


def named(root: Path, path: str) -> str | None:
    found = ignored.rule_for(str(root / path), ignored.inside(str(root), ()), folder=path.endswith("/"))
    return found and f"{found[0].text} in {Path(found[1].file).name}"


def test_the_pattern_that_leaves_out_a_path_is_named(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("# logs\n*.log\n!keep.log\n")
    assert named(tmp_path, "a.log") == "*.log in .gitignore"
    assert named(tmp_path, "keep.log") is None
    assert named(tmp_path, "a.txt") is None


def test_kbignore_has_the_last_word(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("*.log\n")
    (tmp_path / ".kbignore").write_text("!*.log\ndrafts/\n")
    assert named(tmp_path, "a.log") is None
    assert ignored.is_ignored(str(tmp_path / "drafts"), ignored.inside(str(tmp_path), ()), folder=True)


def test_a_pipe_in_place_of_the_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".gitignore")
    assert named(tmp_path, "a.log") is None


@pytest.mark.parametrize(
    ("pattern", "path"),
    [("*a" * 30 + "*c", "a" * 200), ("**/a/" * 20 + "z", "a/" * 1000 + "b"), ("**/*a*a*a*b/" * 5 + "z", "aaaa/" * 200)],
)
def test_a_hostile_pattern_takes_no_time(pattern: str, path: str) -> None:
    """With steps back into each wildcard these would run for days, and nothing else in the process meanwhile."""
    assert ignored.patterns([pattern])[0].matches.fullmatch(path) is None


def test_a_wildcard_takes_as_much_as_the_rest_needs() -> None:
    def matches(pattern: str, path: str) -> bool:
        return ignored.patterns([pattern])[0].matches.fullmatch(path) is not None

    assert matches("*ab*ab", "x/abab")
    assert matches("*a", "aaa")
    assert matches("a*b/c", "abxb/c")
    assert matches("**/a/**/a/b", "x/a/a/a/b")
    assert matches("**/a*b/**/c", "ab/x/axb/y/c")
    assert matches("a/*/**", "a/b/c")
    assert not matches("**/a/**/a/b", "x/a/b")
    assert not matches("a*b/c", "a/b/c")
