"""`kb connect` writes what an agent reads, keeps the rest of the file, and proves it on a live server."""

import json
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kb.cli.connect.entries import read_json
from mcp_server.agents import McpProcess

from .conftest import COMMAND, Kb

KEY = "a-key-for-agents"
CLIENTS = {
    "claude-code": (".claude.json", "mcpServers", "url"),
    "claude-desktop": (".config/Claude/claude_desktop_config.json", "mcpServers", "command"),
    "cursor": (".cursor/mcp.json", "mcpServers", "url"),
    "vscode": (".config/Code/User/mcp.json", "servers", "url"),
    "codex": (".codex/config.toml", "mcp_servers", "url"),
    "gemini": (".gemini/settings.json", "mcpServers", "httpUrl"),
    "amazon-q": (".aws/amazonq/mcp.json", "mcpServers", "url"),
}


@pytest.fixture(scope="module")
def server(engine_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[McpProcess]:
    process = McpProcess(tmp_path_factory.mktemp("mcp") / "mcp.log", engine_url, KB_MCP_API_KEY=KEY)
    yield process
    process.stop()


@pytest.fixture
def home(server: McpProcess, tmp_path: Path) -> Kb:
    """`kb` with a home of its own, which knows where the MCP server is and its key."""
    settings = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": "", "CLAUDE_CONFIG_DIR": "", "CODEX_HOME": ""}
    port = server.url.rpartition(":")[2]
    return Kb("http://127.0.0.1:9", tmp_path, settings | {"KB_MCP_PORT": port, "KB_MCP_API_KEY": KEY})


def said(path: Path) -> Any:
    text = path.read_text()
    return tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_new_configuration_is_written_for_its_owner_only_and_proven(
    home: Kb, client: str, server: McpProcess
) -> None:
    name, section, address = CLIENTS[client]
    ran = home("connect", client, "--yes")
    assert ran.code == 0, ran.err
    assert "so did its tool kb_status" in ran.out
    assert KEY not in ran.out
    file = home.folder / name
    entry = said(file)[section]["kb"]
    assert file.stat().st_mode & 0o777 == 0o600
    assert KEY in file.read_text()
    assert address == "command" or entry[address] == f"{server.url}/mcp"

    again = home("connect", client)
    assert (again.code, "says so already" in again.out) == (0, True)
    assert not list(file.parent.glob("*.kb-backup"))


def test_what_stood_in_the_file_stays_to_the_letter_and_is_kept_beside_it(home: Kb) -> None:
    file = home.folder / "mcp.json"
    before = (
        '{\n\t// mine\n\t"servers": {\n\t\t"a": {"command": "x", "args": ["{,}"]}, // first\n\t},\n\t"inputs": []\n}\n'
    )
    file.write_text(before)
    file.chmod(0o644)
    told = home("connect", "vscode", "--file", "mcp.json", "--yes", "--json").json
    lines = file.read_text().splitlines()
    kept = [line for line in before.splitlines() if line in lines]
    assert kept == before.splitlines()
    assert lines[4:6] == ['\t\t"kb": {', '\t\t\t"type": "http",']
    assert Path(told["backup"]).read_text() == before
    assert Path(told["backup"]).stat().st_mode & 0o777 == 0o600
    assert told["proof"]["tool"] == "kb_status"
    assert file.stat().st_mode & 0o777 == 0o600


def test_toml_keeps_its_comments_and_an_old_entry_is_replaced(home: Kb) -> None:
    file = home.folder / "config.toml"
    mine = '# mine\nmodel = "x"\n\n'
    rest = '\n# trust\n[projects."/a"]\ntrust_level = "trusted"\n'
    file.write_text(
        f'{mine}[mcp_servers.kb]\nurl = "http://old/mcp"\n[mcp_servers.kb.http_headers]\nA = "Bearer old"\n{rest}'
    )
    ran = home("connect", "codex", "--file", "config.toml", "--yes")
    assert ran.code == 0, ran.err
    assert "Bearer old" not in ran.out
    text = file.read_text()
    assert text.startswith(mine + "[mcp_servers.kb]\n")
    assert text.endswith(rest)
    assert said(file)["mcp_servers"]["kb"]["http_headers"] == {"Authorization": f"Bearer {KEY}"}


@pytest.mark.parametrize(
    ("client", "text"),
    [
        ("cursor", '{"mcpServers": {'),
        ("cursor", '{"mcpServers": []}'),
        ("cursor", '{"mcpServers": {}, "mcpServers": {}}'),
        ("cursor", "[]"),
        ("cursor", "{} /* never closed"),
        ("codex", 'mcp_servers = { kb = { url = "x" } }'),
        ("codex", "this is = no = toml"),
    ],
)
def test_a_file_that_cannot_be_understood_is_left_alone(home: Kb, client: str, text: str) -> None:
    (home.folder / "file").write_text(text)
    ran = home("connect", client, "--file", "file", "--yes")
    assert (ran.code, "left alone" in ran.err) == (2, True)
    assert (home.folder / "file").read_text() == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "{ }\n",
        '{"a": 1}',
        '{"mcpServers": {}}',
        '{\r\n    "mcpServers": {\r\n        // none\r\n    },\r\n}\r\n',
    ],
)
def test_any_layout_takes_the_entry(home: Kb, text: str) -> None:
    file = home.folder / "file"
    file.write_bytes(text.encode())
    assert home("connect", "cursor", "--file", "file", "--yes").code == 0
    written = file.read_bytes().decode()
    assert '"kb": {' in written
    assert "// none" in written or "//" not in text
    assert "\r\n" not in text or "\n" not in written.replace("\r\n", "")


def test_nothing_is_written_without_consent(home: Kb) -> None:
    file = home.folder / ".cursor" / "mcp.json"
    shown = home("connect", "cursor", "--print")
    assert (shown.code, "+++" in shown.out, KEY in shown.out) == (0, True, False)
    unasked = home("connect", "cursor")
    assert (unasked.code, "--yes" in unasked.err) == (2, True)
    assert home.on_terminal("connect", "cursor", typed="n\n").code == 1
    assert not file.exists()
    assert home.on_terminal("connect", "cursor", typed="y\n").code == 0
    assert file.exists()


def test_a_link_stays_a_link(home: Kb) -> None:
    (home.folder / "dotfiles").mkdir()
    (home.folder / "dotfiles" / "mcp.json").write_text("{}")
    (home.folder / "mcp.json").symlink_to("dotfiles/mcp.json")
    assert home("connect", "cursor", "--file", "mcp.json", "--yes").code == 0
    assert (home.folder / "mcp.json").is_symlink()
    assert "kb" in (home.folder / "dotfiles" / "mcp.json").read_text()


@pytest.mark.parametrize("client", ["cursor", "claude-desktop"])
def test_a_server_that_is_away_or_wants_another_key_is_told_apart(home: Kb, client: str) -> None:
    away = home("connect", client, "--url", "http://127.0.0.1:9/mcp", "--yes")
    assert (away.code, "is written, but not proven" in away.err, "unreachable" in away.err) == (6, True, True)
    wrong = home("connect", client, "--yes", KB_MCP_API_KEY="wrong")
    assert "wants another key" in wrong.err
    assert wrong.code == (7 if client == "cursor" else 6)


def test_another_contract_and_an_unknown_agent(home: Kb) -> None:
    told = home("connect", "gemini", "--contract", "knowledge", "--yes", "--json").json
    assert told["proof"]["tool"] == "knowledge-status"
    unknown = home("connect", "nobody")
    assert (unknown.code, "claude-code, claude-desktop" in unknown.err) == (2, True)
    assert [one["client"] for one in home("connect", "--json").json] == list(CLIENTS)
    assert home("connect", "cursor", "--url", "localhost:3000", "--yes").code == 2


@pytest.mark.parametrize(
    ("client", "text"),
    [
        ("cursor", '{"mcpServers": {}}'),
        ("cursor", '{\n  "a": 1,\n  "mcpServers": {\n    // mine\n    "x": {"url": "u"} // why\n  }\n}\n'),
        ("cursor", '{\r\n  "mcpServers": {\r\n    "x": {"url": "u"},\r\n  },\r\n}\r\n'),
        ("cursor", '{"mcpServers": {"x": {"url": "u"}}, "b": [1]}'),
        ("codex", '# mine\nmodel = "x"\n\n[mcp_servers.x]\nurl = "u"\n'),
        ("codex", 'model = "x"\n'),
    ],
)
def test_disconnect_undoes_what_connect_wrote(home: Kb, client: str, text: str) -> None:
    file = home.folder / ("config.toml" if client == "codex" else "file.json")
    file.write_bytes(text.encode())
    before = said(file) if client == "codex" else read_json(text)
    assert home("connect", client, "--file", file.name, "--yes").code == 0
    connected = file.read_bytes()
    ran = home("disconnect", client, "--file", file.name, "--yes")
    assert ran.code == 0, ran.err
    assert KEY not in ran.out
    left = file.read_bytes().decode()
    assert (said(file) if client == "codex" else read_json(left)) == before
    assert re.findall(r"[^\s,{}]+", left) == re.findall(r"[^\s,{}]+", text), "every word of it, and no other"
    [backup] = [path for path in home.folder.glob("*.kb-backup") if path.read_bytes() == connected]
    assert backup.stat().st_mode & 0o777 == 0o600
    again = home("disconnect", client, "--file", file.name, "--yes")
    assert (again.code, "nothing to remove" in again.err) == (3, True)


def test_disconnect_takes_an_entry_out_of_the_middle_and_asks_first(home: Kb) -> None:
    file = home.folder / "file.json"
    file.write_text('{"mcpServers": {\n  "a": {},\n  "kb": {"url": "u"},\n  // about b\n  "b": {}\n}}\n')
    unasked = home("disconnect", "cursor", "--file", "file.json")
    assert (unasked.code, "--yes" in unasked.err) == (2, True)
    assert home("disconnect", "cursor", "--file", "file.json", "--print").code == 0
    assert '"kb"' in file.read_text()
    told = home("disconnect", "cursor", "--file", "file.json", "--yes", "--json").json
    assert told["written"]
    assert file.read_text() == '{"mcpServers": {\n  "a": {},\n  // about b\n  "b": {}\n}}\n'


def lines(*messages: object) -> bytes:
    return b"".join(json.dumps(message).encode() + b"\n" for message in messages)


HELLO = {
    "jsonrpc": "2.0",
    "id": "hello",
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}


def test_the_bridge_carries_a_conversation(home: Kb) -> None:
    status = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "kb_status", "arguments": {}}}
    unknown = {"jsonrpc": "2.0", "id": 3, "method": "no/such/method"}
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    ran = home("bridge", stdin=lines(HELLO, ready, status, unknown) + b"not json\n[]\n")
    answers = {answer.get("id"): answer for answer in map(json.loads, ran.out.splitlines())}
    assert ran.code == 0
    assert answers["hello"]["result"]["serverInfo"]["version"] == "3.0.0"
    assert "structuredContent" in answers[2]["result"]
    assert answers[3]["error"]["code"] == -32601
    assert answers[None]["error"]["code"] in (-32700, -32600)


def test_the_bridge_answers_while_the_server_is_away(home: Kb) -> None:
    ran = home("bridge", "--url", "http://127.0.0.1:9/mcp", stdin=lines(HELLO))
    assert ran.code == 0
    assert "unreachable" in json.loads(ran.out)["error"]["message"]


def test_the_bridge_outlives_a_restart_of_the_server(engine_url: str, tmp_path: Path) -> None:
    first = McpProcess(tmp_path / "first.log", engine_url)
    port = first.url.rpartition(":")[2]
    process = subprocess.Popen(
        [*COMMAND, "bridge", "--url", f"{first.url}/mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin
    assert process.stdout
    try:
        process.stdin.write(lines(HELLO, {"jsonrpc": "2.0", "method": "notifications/initialized"}))
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == "hello"
        first.stop()
        second = McpProcess(tmp_path / "second.log", engine_url, KB_MCP_PORT=port)
        process.stdin.write(lines({"jsonrpc": "2.0", "id": 4, "method": "tools/list", "params": {}}))
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["result"]["tools"]
        process.stdin.close()
        assert process.wait(30) == 0
        second.stop()
    finally:
        process.stdout.close()
        process.kill()
        process.wait()
