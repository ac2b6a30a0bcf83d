"""Completion in a real bash; the other shells' scripts name every command and option."""

import argparse
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from kb.cli.commands.table import COMMANDS
from kb.cli.main import build_parser

from .conftest import Kb

BASH = """
source completion
COMP_WORDS=({words}) COMP_CWORD={at}
_kb
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.fixture
def completed(kb: Kb) -> object:
    """Ask a real bash what it would offer for the last word."""
    (kb.folder / "completion").write_text(kb("completion", "bash").out)
    for name in ("report one.md", "reports.txt"):
        (kb.folder / name).write_text("x")

    def ask(*words: str) -> set[str]:
        given = " ".join(f"'{word}'" for word in words)
        script = BASH.format(words=given, at=len(words) - 1)
        ran = subprocess.run(
            ["bash", "--norc", "-c", script], cwd=kb.folder, capture_output=True, text=True, check=False
        )
        errors = [line for line in ran.stderr.splitlines() if "compopt" not in line]  # there is no line being edited
        assert not errors
        return set(ran.stdout.split("\n")) - {""}

    return ask


def test_bash_completes_commands_options_values_and_files(completed: object) -> None:
    assert callable(completed)
    assert completed("kb", "") == {*COMMANDS, "--help", "--version"}
    assert completed("kb", "re") == {"reindex", "restore"}
    assert completed("kb", "search", "--m") == {"--mode", "--min-score", "--max-tokens"}
    assert completed("kb", "search", "--mode", "") == {"hybrid", "fts", "vector"}
    assert completed("kb", "search", "--top", "") == set()
    assert completed("kb", "connect", "c") == {"claude-code", "claude-desktop", "cursor", "codex"}
    assert completed("kb", "add", "rep") == {"report one.md", "reports.txt"}
    assert completed("kb", "connect", "cursor", "--file", "reports") == {"reports.txt"}
    assert completed("kb", "nonsense", "x") == set()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_command_and_option_is_in_the_script(kb: Kb, shell: str, tmp_path: Path) -> None:
    script = kb("completion", shell).out
    [commands] = [action for action in build_parser()._actions if isinstance(action, argparse._SubParsersAction)]
    for name, parser in commands.choices.items():
        assert name in script
        for action in parser._actions:
            for option in action.option_strings:
                assert (option if shell != "fish" else option.lstrip("-")) in script
    program = shutil.which(shell)
    if program:  # its own syntax check
        (tmp_path / "script").write_text(script)
        checked = subprocess.run(
            [program, "-n", str(tmp_path / "script")], capture_output=True, text=True, env=dict(os.environ), check=False
        )
        assert checked.returncode == 0, checked.stderr


def test_an_unknown_shell_is_refused(kb: Kb) -> None:
    ran = kb("completion", "tcsh")
    assert (ran.code, "bash, zsh, fish" in ran.err) == (2, True)
