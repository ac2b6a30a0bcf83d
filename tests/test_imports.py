"""Imports point one way: command line and MCP server know the client, the API knows the engine, never across."""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

SOURCE = Path(__file__).parent.parent / "src"

BASE = {"nouns", "errors", "invisible", "metadata", "place", "settings", "times", "logs", "measures"}
HELPERS = {"arrays", "cores", "precedence"}
PARTS = HELPERS | {"bulk", "embed", "encoder", "model", "runtimes", "store", "terms", "tokens", "warm"}
WORK = {"jobs", "ingest", "search"}
# Every part of the package and what it may import beside itself. A new part has to take its place here.
MAY_IMPORT: dict[str, set[str]] = {
    **dict.fromkeys(BASE, BASE),
    "client": BASE,
    "cli": BASE | {"client"},
    # The doors of a server, the engine's and the MCP server's alike.
    "gate": BASE,
    "connections": BASE,
    "protocol": BASE | {"connections"},
    "serving": BASE | {"connections", "protocol"},
    "mcp": BASE | {"client", "connections", "gate", "serving"},
    **dict.fromkeys(PARTS, BASE | PARTS),
    **dict.fromkeys(WORK, BASE | PARTS | WORK),
    "doctor": BASE | PARTS | WORK,
    "engine": BASE | PARTS | WORK | {"doctor"},
    "wiring": BASE | PARTS | WORK | {"doctor", "engine"},
    "api": BASE | {"connections", "engine", "wiring", "gate", "serving"},
    "web": BASE,
}
# What a command starts is imported inside its function, so that no other command pays for it.
STARTS = {"kb.cli.commands.serve": {"api"}, "kb.cli.commands.mcp": {"mcp"}, "kb.cli.commands.archives": {"store"}}
# An upload is streamed into a staged file; the API knows its type until the engine hands it out.
STANDARD_LIBRARY_ONLY = {"nouns", "errors", "place", "settings", "client", "cli"}


class Import(NamedTuple):
    module: str  # who imports
    target: str  # what, with its dots
    line: int
    lazy: bool  # inside a function


def part_of(module: str) -> str:
    """`kb.store.sqlite.database` belongs to `store`; the package itself to nothing."""
    return (module + "..").split(".")[1]


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")


def imports_of(path: Path) -> Iterator[Import]:
    module = module_name(path)
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    lazy = {id(inner) for function in functions for inner in ast.walk(function)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            outer = ".".join(package.split(".")[: len(package.split(".")) - node.level + 1]) if node.level else ""
            base = ".".join(filter(None, [outer, node.module]))
            targets = [f"{base}.{alias.name}" for alias in node.names] if base == "kb" else [base]
        else:
            continue
        for target in targets:
            yield Import(module, target, node.lineno, id(node) in lazy)


FILES = sorted((SOURCE / "kb").rglob("*.py"))
IMPORTS = [found for path in FILES for found in imports_of(path)]
PARTS_THERE = {part_of(module_name(path)) for path in FILES} - {""}
# `from kb import __version__` names no part.
INTERNAL = [found for found in IMPORTS if found.target.startswith("kb.") and part_of(found.target) in PARTS_THERE]


def test_every_part_has_its_place() -> None:
    assert MAY_IMPORT.keys() >= PARTS_THERE


@pytest.mark.parametrize("part", sorted(PARTS_THERE))
def test_a_part_imports_only_what_lies_below_it(part: str) -> None:
    wrong = [
        f"{found.module}:{found.line} imports {found.target}"
        for found in INTERNAL
        if part_of(found.module) == part
        and part_of(found.target) not in MAY_IMPORT[part] | {part}
        and not (found.lazy and part_of(found.target) in STARTS.get(found.module, set()))
    ]
    assert not wrong


def test_no_two_parts_import_each_other() -> None:
    below: dict[str, set[str]] = {part: set() for part in PARTS_THERE}
    for found in INTERNAL:
        if not found.lazy and part_of(found.module) in below:
            below[part_of(found.module)] |= {part_of(found.target)} - {part_of(found.module)}
    while leaves := {part for part, used in below.items() if not used & below.keys()}:
        below = {part: used for part, used in below.items() if part not in leaves}
    assert not below, "these parts import each other in a circle"


def test_extractors_know_nothing_of_the_store() -> None:
    wrong = [
        found
        for found in INTERNAL
        if found.module.startswith("kb.ingest.extract") and part_of(found.target) in {"store", "engine", "jobs"}
    ]
    assert not wrong


def test_the_client_side_needs_the_standard_library_only() -> None:
    wrong = [
        f"{found.module}:{found.line} imports {found.target}"
        for found in IMPORTS
        if part_of(found.module) in STANDARD_LIBRARY_ONLY
        and found.target.partition(".")[0] not in {*sys.stdlib_module_names, "kb"}
    ]
    assert not wrong


def test_the_check_sees_imports_wherever_they_stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "SOURCE", tmp_path)
    module = tmp_path / "kb" / "mcp" / "server.py"
    module.parent.mkdir(parents=True)
    module.write_text(
        "from kb import engine\n"
        "import kb.store.sqlite\n"
        "from ..client import Calls\n"
        "from . import uploads\n"
        "def start():\n    from kb.api.server import serve\n"
    )
    assert [(part_of(found.target), found.lazy) for found in imports_of(module)] == [
        ("engine", False),
        ("store", False),
        ("client", False),
        ("mcp", False),
        ("api", True),
    ]


def test_the_mcp_servers_lock_holds_neither_model_runtime_nor_engine() -> None:
    locked = (SOURCE.parent / "lock" / "mcp.txt").read_text(encoding="utf-8")
    named = {line.partition("==")[0] for line in locked.splitlines() if "==" in line and not line.startswith(" ")}
    assert {"mcp", "httpx2", "uvicorn"} <= named
    assert not named & {"onnxruntime", "openvino", "numpy", "tokenizers", "fastapi", "apsw"}


@pytest.mark.parametrize("lock", sorted((SOURCE.parent / "lock").glob("*.txt")), ids=lambda path: path.name)
def test_no_lock_installs_what_reports_to_an_analytics_service(lock: Path) -> None:
    assert "\nopenvino-telemetry==" not in lock.read_text(encoding="utf-8")


def test_the_image_of_the_mcp_server_holds_what_it_imports_and_nothing_of_the_engine() -> None:
    dockerfile = (SOURCE.parent / "containers" / "mcp.Dockerfile").read_text(encoding="utf-8")
    copied = set(re.findall(r"src/kb/(\w+)(?:\.py)?\b", dockerfile)) - {"__init__"}
    assert copied == reached_from("cli") | reached_from("mcp")


def reached_from(part: str) -> set[str]:
    """The part itself, and what it may import, directly or through others."""
    reached: set[str] = set()
    waiting = {part}
    while waiting:
        reached |= waiting
        waiting = {below for above in waiting for below in MAY_IMPORT[above]} - reached
    return reached
