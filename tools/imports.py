"""The import rule: which package of kb may import which. `tests/test_imports.py` enforces it, `make docs` draws it."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).parent.parent / "src"

# Every package, and what it may import beside itself. A new package takes its place here.
MAY_IMPORT: dict[str, set[str]] = {
    "core": set(),
    "embedding": {"core"},
    "store": {"core"},
    "index": {"core", "embedding", "store"},
    "search": {"core", "embedding", "store", "index"},
    "ingest": {"core", "embedding", "store", "index"},
    "engine": {"core", "embedding", "store", "index", "search", "ingest"},
    "http": {"core"},
    "api": {"core", "engine", "http"},
    "client": {"core"},
    "cli": {"core", "client"},
    "mcp": {"core", "client", "http"},
    "web": {"core"},
}
# A command imports the server that it starts inside its function: no other command pays for it.
STARTS = {
    "kb.cli.commands.serve": {"api"},
    "kb.cli.commands.mcp": {"mcp"},
    "kb.cli.commands.archives": {"store"},
    "kb.cli.commands.migrate": {"engine"},
    "kb.cli.commands.model": {"embedding"},
}


class Import(NamedTuple):
    module: str  # the importing module
    target: str  # the imported module, dotted
    line: int
    lazy: bool  # inside a function

    @property
    def package(self) -> str:
        return package_of(self.module)

    @property
    def imported(self) -> str:
        return package_of(self.target)

    @property
    def allowed(self) -> bool:
        return (
            self.imported == self.package
            or self.imported in MAY_IMPORT[self.package]
            or (self.lazy and self.imported in STARTS.get(self.module, set()))
        )

    def __str__(self) -> str:
        return f"{self.module}:{self.line} imports {self.target}"


def package_of(module: str) -> str:
    """`kb.store.sqlite.database` belongs to `store`; `kb` itself to nothing."""
    return (module + "..").split(".")[1]


def module_name(path: Path, source: Path = SOURCE) -> str:
    return ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__")


def imports_of(path: Path, source: Path = SOURCE) -> Iterator[Import]:
    """Every import of one file, also those inside functions."""
    module = module_name(path, source)
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


def files() -> list[Path]:
    return sorted((SOURCE / "kb").rglob("*.py"))


def packages() -> set[str]:
    return {package_of(module_name(path)) for path in files()} - {""}


@cache
def internal() -> list[Import]:
    """Every import of one module of kb by another; `from kb import __version__` names no package."""
    known = packages()
    found = (one for path in files() for one in imports_of(path))
    return [one for one in found if one.target.startswith("kb.") and one.imported in known and one.package]


def reached_from(package: str) -> set[str]:
    """The package itself, and everything that it may import, directly or through others."""
    reached: set[str] = set()
    waiting = {package}
    while waiting:
        reached |= waiting
        waiting = {below for above in waiting for below in MAY_IMPORT[above]} - reached
    return reached


def diagram() -> str:
    """The existing imports as a Mermaid graph, without arrows that follow from two others."""
    used = {(one.package, one.imported) for one in internal() if not one.lazy and one.package != one.imported}
    arrows = sorted(arrow for arrow in used if not _follows(arrow, used))
    return "\n".join(["```mermaid", "graph TD", *(f"    {above} --> {below}" for above, below in arrows), "```"])


def _follows(arrow: tuple[str, str], arrows: set[tuple[str, str]]) -> bool:
    above, below = arrow
    waiting = {middle for start, middle in arrows if start == above and middle != below}
    seen: set[str] = set()
    while waiting:
        seen |= waiting
        waiting = {end for start, end in arrows if start in waiting} - seen
    return below in seen
