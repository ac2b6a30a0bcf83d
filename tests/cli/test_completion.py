"""Completion in a real bash; the other shells' scripts name every command and option."""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kb.cli.commands import shells
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
    assert completed("kb", "re") == {"reindex", "restore", "revert"}
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
    assert ran.code == 2
    assert all(shell in ran.err for shell in ("bash", "zsh", "fish"))


ASK = {  # a new shell of each kind, started as a person would, and whether it can complete kb
    "bash": ["bash", "-c", "source ~/.bashrc; complete -p kb"],
    "zsh": ["zsh", "-i", "-c", "echo $_comps[kb]"],
    "fish": ["fish", "-c", "complete -C 'kb conn'"],
}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_one_command_installs_it_and_one_removes_it(
    kb: Kb, shell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kb.cli.commands.shells.BASH_COMPLETION", ())
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "ZDOTDIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    profile = tmp_path / f".{shell}rc"
    profile.write_text("# mine, without a line end")
    for _ in range(2):
        shells.shell(shell).install(kb("completion", shell).out)
    if shutil.which(shell):
        with_kb = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}  # fish asks for it
        found = subprocess.run(
            ASK[shell],
            env=os.environ | with_kb,
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        assert "kb" in found.stdout or "connect" in found.stdout, found.stderr
    assert profile.read_text().count("# mine, without a line end") == 1
    assert profile.read_text().count(shells.BEGIN) == (shell != "fish")
    assert shells.shell(shell).remove()
    assert profile.read_text().strip() == "# mine, without a line end"
    assert shells.shell(shell).remove() == []
    assert not list((tmp_path / ".local").rglob("*kb*.fish")) + list(tmp_path.rglob("completions/kb*"))


def test_the_shell_is_the_users_own(kb: Kb) -> None:
    home = str(kb.folder)
    told = kb("completion", "install", SHELL="/usr/bin/fish", HOME=home, XDG_CONFIG_HOME="")
    assert (told.code, (kb.folder / ".config/fish/completions/kb.fish").exists()) == (0, True)
    wrong = kb("completion", "install", SHELL="/bin/tcsh", HOME=home)
    assert (wrong.code, "bash, zsh, fish" in wrong.err) == (2, True)
