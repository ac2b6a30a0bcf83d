"""docs/scenarios.md names a test for every scenario, and every test that it names is there."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
NAMED = re.findall(r"`(test_\w+)`", (ROOT / "docs" / "scenarios.md").read_text(encoding="utf-8"))


def defined(pattern: str) -> list[str]:
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in (ROOT / "tests" / "mcp_server").glob(pattern)]
    functions = [
        node for tree in trees for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    return [function.name for function in functions if function.name.startswith("test_")]


def test_every_named_test_is_there() -> None:
    assert NAMED
    assert not set(NAMED) - set(defined("test_*.py"))


def test_every_scenario_test_is_named() -> None:
    assert not set(defined("test_scenarios_*.py")) - set(NAMED)
