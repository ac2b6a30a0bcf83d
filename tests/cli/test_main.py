"""The frame around every command: help, usage, exit codes, interrupts, and an instant start."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kb import __version__
from kb.cli.commands.table import COMMANDS
from kb.cli.main import build_parser
from kb.core.errors import KBError, every_error

from .conftest import COMMAND, Kb, Serve, heed_interrupts

# Everything of ours that a fast command may load, and what of the standard library is too slow for it.
FRAME = {"kb", "kb.core.errors", "kb.cli", "kb.cli.main", "kb.cli.commands.table", "kb.cli.options"}
ASKING = FRAME | {
    "kb.core.config_file",
    "kb.core.endpoint",
    "kb.client.calls",
    "kb.client.endpoint",
    "kb.client.engines",
    "kb.cli.transport",
}
LIGHT = {
    "--help": FRAME,
    "search": ASKING | {"kb.cli.commands.search", "kb.cli.screen"},
    "addnote": ASKING | {"kb.cli.commands.notes", "kb.cli.follow"},
}
SLOW = {"ssl", "http", "http.client", "email", "asyncio", "shutil", "dataclasses", "inspect", "pathlib", "subprocess"}


@pytest.fixture
def offline(tmp_path: Path) -> Kb:
    """No engine answers here."""
    return Kb("http://127.0.0.1:9", tmp_path)


def modules_after(*words: str, url: str) -> set[str]:
    code = (
        "import sys; before = set(sys.modules)\n"
        "from kb.cli.main import main\n"
        f"main({list(words)!r})\n"
        "loaded = {name for name, module in sys.modules.items() if module}\n"  # None: blocked, not loaded
        "print('MODULES', *sorted(loaded - before), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "KB_ENGINE_URL": url},
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stderr.rpartition("MODULES ")[2].split())


@pytest.mark.parametrize("words", [["--help"], ["search", "x"], ["search", "x", "--json"], ["addnote", "x"]])
def test_nothing_heavy_is_imported(words: list[str], serve: Serve) -> None:
    answer = {"query": "x", "results": [], "status": "completed", "job_id": "j", "document_id": 1, "outcome": "added"}
    loaded = modules_after(*words, url=serve(json.dumps(answer).encode()).url)
    ours = {name for name in loaded if name.partition(".")[0] == "kb"}
    empty = {"kb.core", "kb.client", "kb.cli.commands", "kb.core.types"}  # a docstring each, and two names of types
    assert ours - empty <= LIGHT[words[0]]
    foreign = {name.partition(".")[0] for name in loaded - ours}
    assert foreign <= sys.stdlib_module_names
    assert not loaded & SLOW


def test_a_command_loads_no_other_command(serve: Serve) -> None:
    loaded = modules_after("search", "x", url=serve(b'{"query": "x", "results": []}').url)
    assert not loaded & {"kb.cli.commands.add", "kb.cli.commands.documents", "kb.cli.commands.serve"}


def test_every_command_is_known_by_name_and_has_an_example(offline: Kb) -> None:
    ran = offline("--help")
    assert ran.code == 0
    for name in COMMANDS:
        assert f"\n    {name} " in ran.out or f"\n    {name}\n" in ran.out
        own = offline(name, "--help")
        assert own.code == 0
        assert f"examples:\n  kb {name}" in own.out


def test_the_table_of_commands_is_what_the_modules_declare() -> None:
    [commands] = [action for action in build_parser()._actions if action.dest == "==SUPPRESS=="]
    assert list(commands.choices or ()) == list(COMMANDS)


def test_the_version_is_shown(offline: Kb) -> None:
    assert offline("--version").out == f"kb {__version__}\n"


@pytest.mark.parametrize(
    "words",
    [
        ["nonsense"],
        ["search"],
        ["search", "x", "--top", "many"],
        ["search", "x", "--to", "3"],
        ["serve", "--port", "70000"],
    ],
)
def test_wrong_usage_is_one_sentence_and_exit_2(offline: Kb, words: list[str]) -> None:
    ran = offline(*words)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("kb: ")
    assert ran.err.count("\n") == 1
    assert "--help" in ran.err


def test_kb_alone_shows_its_help(offline: Kb) -> None:
    ran = offline()
    assert (ran.code, ran.out) == (0, offline("--help").out)


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["serch", "x"], "Did you mean 'search'?"),
        (["search", "x", "--tpo", "3"], "Did you mean '--top'?"),
        (["list", "--afterr=2026"], "Did you mean '--after'?"),
    ],
)
def test_a_slip_is_answered_with_what_was_meant(offline: Kb, words: list[str], hint: str) -> None:
    ran = offline(*words)
    assert (ran.code, hint in ran.err) == (2, True)


def test_every_help_fits_a_terminal_of_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    parser = build_parser()
    commands = next(action.choices for action in parser._actions if isinstance(action.choices, dict))
    lines = [line for one in (parser, *commands.values()) for line in one.format_help().splitlines()]
    assert [line for line in lines if len(line) > 80] == []


def test_wrong_usage_with_json_is_an_error_body(offline: Kb) -> None:
    ran = offline("search", "--json")
    assert ran.code == 2
    assert ran.json["error"]["code"] == "invalid_request"
    assert ran.err == ""


def test_an_engine_that_is_away_exits_6_and_says_how_to_start_it(offline: Kb) -> None:
    ran = offline("search", "x")
    assert (ran.code, ran.out) == (6, "")
    assert "http://127.0.0.1:9" in ran.err
    assert "start it with: kb up" in ran.err
    ran = offline("status", "--json")
    assert ran.code == 6
    assert ran.json["error"]["retryable"] is True
    assert ran.err == ""


@pytest.mark.parametrize("kind", every_error())
def test_every_error_exits_with_its_own_code(kind: type[KBError], serve: Serve, tmp_path: Path) -> None:
    body = kind("It \x1b[31mwent wrong.").body()
    run = Kb(serve(json.dumps(body).encode(), status=kind.http_status).url, tmp_path)
    ran = run("status")
    assert (ran.code, ran.out, ran.err) == (kind.exit_code, "", "kb: It \\x1b[31mwent wrong.\n")
    ran = run("status", "--json")
    assert (ran.code, ran.json, ran.err) == (kind.exit_code, body, "")


@pytest.mark.parametrize(("version", "told"), [("2.1.0", "is version 2.1.0"), (None, "does not say its version")])
def test_an_engine_that_is_too_old_is_refused(serve: Serve, tmp_path: Path, version: str | None, told: str) -> None:
    ran = Kb(serve(version=version).url, tmp_path)("status")
    assert ran.code == 6
    assert "needs an engine of version 3.0.0 or newer" in ran.err
    assert told in ran.err


def test_a_setting_that_cannot_be_understood_exits_2(offline: Kb) -> None:
    ran = offline("serve", KB_PORT="eight")
    assert (ran.code, "KB_PORT" in ran.err) == (2, True)
    ran = offline("status", KB_ENGINE_URL="eight")
    assert (ran.code, "KB_ENGINE_URL" in ran.err) == (2, True)
    assert offline("status", KB_PORT="eight").code == 6, "what only the engine needs does not concern its clients"


def test_the_engine_is_asked_where_it_was_told_to_listen(serve: Serve, tmp_path: Path) -> None:
    host, _, port = serve().url.removeprefix("http://").rpartition(":")
    kb = Kb("", tmp_path)  # an empty KB_ENGINE_URL counts as unset
    assert kb("list", "--json", KB_HOST=host, KB_PORT=port).code == 0
    assert kb("list", "--json", KB_HOST="0.0.0.0", KB_PORT=port).code == 0
    refused = kb("list", KB_PORT="eight")
    assert refused.code == 2
    assert "KB_PORT is 'eight', which cannot be used: a port is a number from 0 to 65535." in refused.err
    unknown = kb("list", KB_PORT="0")
    assert (unknown.code, "set KB_ENGINE_URL" in unknown.err) == (2, True)


@pytest.mark.parametrize("command", ["serve", "mcp"])
def test_a_wrong_port_is_told_in_words(offline: Kb, command: str) -> None:
    ran = offline(command, "--port", "eight")
    assert (ran.code, "a port is a number from 0 to 65535" in ran.err) == (2, True)


def test_an_interrupt_exits_130_with_one_sentence(serve: Serve) -> None:
    stub = serve(wait=60)
    process = subprocess.Popen(
        [*COMMAND, "search", "x"],
        env={**os.environ, "KB_ENGINE_URL": stub.url},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=heed_interrupts,
    )
    deadline = time.monotonic() + 30
    while not stub.seen and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (130, b"")
    assert err.decode().strip().startswith("kb: interrupted")
    assert b"Traceback" not in err


@pytest.mark.parametrize("words", [["--help"], ["search", "x"], ["search", "x", "--json"]])
def test_a_closed_pipe_is_quiet(serve: Serve, words: list[str]) -> None:
    stub = serve(json.dumps({"query": "x", "results": [], "notice": "n" * 200_000}).encode())
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [*COMMAND, *words],
        env={**os.environ, "KB_ENGINE_URL": stub.url},
        stdout=writer,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writer)
    assert done.returncode in (0, 141)  # argparse itself may have swallowed it
    assert done.stderr == b""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")
def test_output_that_cannot_be_written_is_one_sentence(serve: Serve) -> None:
    stub = serve(b'{"query": "x", "results": [], "notice": "n"}')
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*COMMAND, "search", "x"],
            env={**os.environ, "KB_ENGINE_URL": stub.url},
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert (done.returncode, done.stderr) == (1, b"kb: the output cannot be written: No space left on device.\n")


def test_text_that_the_terminal_cannot_show_is_escaped_and_not_fatal(serve: Serve, tmp_path: Path) -> None:
    stub = serve(json.dumps({"query": "x", "results": [], "notice": "世界 \x9b"}).encode())
    run = Kb(stub.url, tmp_path)
    assert run("search", "x", PYTHONIOENCODING="ascii").out == "\\u4e16\\u754c \\x9b\n"
    assert "\\u009b" in run("search", "x", "--json").out
    assert run("search", "x", "--json").json["notice"] == "世界 \x9b"


def test_serve_says_what_is_missing_when_only_the_client_is_installed(offline: Kb, tmp_path: Path) -> None:
    # A module that shadows the framework stands for an environment without it.
    (tmp_path / "fastapi.py").write_text("raise ModuleNotFoundError('No module named fastapi', name='fastapi')")
    ran = offline("serve", PYTHONPATH=str(tmp_path))
    assert ran.code == 6
    assert "pip install, and then 'kb-server[engine]'" in ran.err
