"""Imports point one way: command line and MCP server know the client, the API knows the engine, never across."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tools.imports import MAY_IMPORT, SOURCE, files, imports_of, internal, package_of, packages, reached_from

STANDARD_LIBRARY_ONLY = {"client", "cli"}
SQL = re.compile(r"\b(SELECT\s.+\sFROM|SELECT \d|INSERT INTO|UPDATE \w+\s+SET|DELETE FROM|PRAGMA \w)\b", re.DOTALL)
STANDARD_LIBRARY_ONLY_MODULES = {
    "kb.core.values",
    "kb.core.searches",
    "kb.core.folders",
    "kb.core.errors",
    "kb.core.endpoint",
    "kb.core.settings",
}


def test_every_package_has_its_place_in_the_rule() -> None:
    assert MAY_IMPORT.keys() == packages()


def test_the_hall_holds_packages_only() -> None:
    assert {path.name for path in (SOURCE / "kb").iterdir() if path.is_file()} == {"__init__.py", "py.typed"}


@pytest.mark.parametrize("package", sorted(packages()))
def test_a_package_imports_only_what_lies_below_it(package: str) -> None:
    assert [str(one) for one in internal() if one.package == package and not one.allowed] == []


def test_no_two_packages_import_each_other() -> None:
    below = {package: set(allowed) for package, allowed in MAY_IMPORT.items()}
    while leaves := {package for package, allowed in below.items() if not allowed & below.keys()}:
        below = {package: allowed for package, allowed in below.items() if package not in leaves}
    assert not below, "the rule lets these packages import each other in a circle"


@pytest.mark.parametrize("package", sorted(packages()))
def test_a_package_says_what_it_is_for(package: str) -> None:
    docstring = (SOURCE / "kb" / package / "__init__.py").read_text(encoding="utf-8").partition('"""')[2]
    assert 3 <= len(docstring.partition('"""')[0].strip().splitlines()) <= 6


def test_extractors_know_nothing_of_the_store() -> None:
    assert [
        str(one) for one in internal() if one.module.startswith("kb.ingest.extract") and one.imported == "store"
    ] == []


def sql_in(source: str) -> list[str]:
    """Every text in the code that is SQL, and every call that runs some."""
    nodes = list(ast.walk(ast.parse(source)))
    texts = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    calls = [node.attr for node in nodes if isinstance(node, ast.Attribute) and node.attr.startswith("execute")]
    return [text for text in texts if SQL.search(text)] + calls


def test_only_the_store_speaks_sql() -> None:
    found = {str(path): sql_in(path.read_text(encoding="utf-8")) for path in files() if "store" not in path.parts}
    assert {path: sql for path, sql in found.items() if sql} == {}
    assert sql_in('tx.value("SELECT 1 FROM published LIMIT 1")')
    assert sql_in("connection.execute(statement)")


def test_the_client_side_needs_the_standard_library_only_and_yaml_for_front_matter() -> None:
    foreign = {
        (one.module, one.target)
        for path in files()
        for one in imports_of(path)
        if (package_of(one.module) in STANDARD_LIBRARY_ONLY or one.module in STANDARD_LIBRARY_ONLY_MODULES)
        and one.target.partition(".")[0] not in {*sys.stdlib_module_names, "kb"}
    }
    assert foreign == {("kb.cli.importing.frontmatter", "yaml")}


def test_the_check_sees_imports_wherever_they_stand(tmp_path: Path) -> None:
    module = tmp_path / "kb" / "mcp" / "server.py"
    module.parent.mkdir(parents=True)
    module.write_text(
        "from kb import engine\n"
        "import kb.store.sqlite\n"
        "from ..client import Calls\n"
        "from . import uploads\n"
        "def start():\n    from kb.api.server import serve\n"
    )
    found = list(imports_of(module, tmp_path))
    assert [(one.imported, one.lazy) for one in found] == [
        ("engine", False),
        ("store", False),
        ("client", False),
        ("mcp", False),
        ("api", True),
    ]
    assert [one.allowed for one in found] == [False, False, True, True, False]


def test_the_mcp_servers_lock_holds_neither_model_runtime_nor_engine() -> None:
    locked = (SOURCE.parent / "lock" / "mcp.txt").read_text(encoding="utf-8")
    named = {line.partition("==")[0] for line in locked.splitlines() if "==" in line and not line.startswith(" ")}
    assert {"mcp", "httpx2", "uvicorn"} <= named
    assert not named & {"onnxruntime", "openvino", "numpy", "tokenizers", "fastapi", "apsw"}


def test_the_engine_starts_without_what_only_the_mcp_server_installs() -> None:
    engine = (SOURCE.parent / "lock" / "engine.txt").read_text(encoding="utf-8")
    only_there = [name for name in ("mcp", "httpx2", "websockets") if f"\n{name}==" not in engine]
    assert "websockets" in only_there
    code = f"import sys; sys.modules.update(dict.fromkeys({only_there!r})); import kb.api.server"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stderr == ""


@pytest.mark.parametrize("lock", sorted((SOURCE.parent / "lock").glob("*.txt")), ids=lambda path: path.name)
def test_no_lock_installs_what_reports_to_an_analytics_service(lock: Path) -> None:
    assert "\nopenvino-telemetry==" not in lock.read_text(encoding="utf-8")


def test_the_image_of_the_mcp_server_holds_what_it_imports_and_nothing_of_the_engine() -> None:
    dockerfile = (SOURCE.parent / "containers" / "mcp.Dockerfile").read_text(encoding="utf-8")
    assert set(re.findall(r"COPY src/kb/(\w+) ", dockerfile)) == reached_from("cli") | reached_from("mcp")
