"""The agents that `kb connect` and the page know: where each keeps its MCP servers, and how an entry looks there.

What each documents is noted in docs/connect.md. An agent that speaks Streamable HTTP gets the address; one that only
speaks stdio gets `kb bridge`, started by the interpreter that runs kb now.
"""

import json
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from kb.core.endpoint import reached
from kb.core.types import Json

if TYPE_CHECKING:
    from kb.core.settings import Settings


class McpClient(NamedTuple):
    label: str
    file: Callable[[], str]  # of the user; a project's own is named with --file
    section: str  # the object or table that holds the servers
    entry: "Callable[[str, str], Json]"  # from address and key
    hint: str  # what to do in the agent afterwards
    form: str = "json"
    calls_itself: str = ""  # how its name begins when it shakes hands, in lower case; unless it is the name here

    def snippet(self, url: str, key: str) -> str:
        """The configuration of an agent that has no other server."""
        entry = self.entry(url, key)
        if self.form == "json":
            return json.dumps({self.section: {"kb": entry}}, indent=2)
        lines = [f"{name} = {json.dumps(value)}" for name, value in entry.items() if isinstance(value, str)]
        tables = [
            f"{name} = {{ {', '.join(f'{json.dumps(key)} = {json.dumps(held)}' for key, held in value.items())} }}"
            for name, value in entry.items()
            if isinstance(value, dict)
        ]
        return "\n".join([f"[{self.section}.kb]", *lines, *tables])


def mcp_url(settings: "Settings", contract: str | None = None) -> str:
    """Where agents on this machine reach the MCP server that the settings describe."""
    base = settings.mcp_public_url or reached(settings.mcp_host, settings.mcp_port)
    return f"{base}/mcp/{contract}" if contract else f"{base}/mcp"


def key_headers(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"} if key else {}


def _home(*parts: str) -> str:
    return os.path.join(os.path.expanduser("~"), *parts)


def _application(*parts: str) -> str:
    """The folder in which desktop applications keep their settings."""
    if sys.platform == "darwin":
        return _home("Library", "Application Support", *parts)
    return os.path.join(os.environ.get("XDG_CONFIG_HOME") or _home(".config"), *parts)


def _claude_code() -> str:
    return os.path.join(os.environ.get("CLAUDE_CONFIG_DIR") or _home(), ".claude.json")


def _codex() -> str:
    return os.path.join(os.environ.get("CODEX_HOME") or _home(".codex"), "config.toml")


def _plain(url: str, key: str) -> Json:
    return {"url": url} | _with_headers("headers", key)


def _typed(url: str, key: str) -> Json:
    return {"type": "http", "url": url} | _with_headers("headers", key)


def _gemini(url: str, key: str) -> Json:
    return {"httpUrl": url} | _with_headers("headers", key)


def _codex_entry(url: str, key: str) -> Json:
    return {"url": url} | _with_headers("http_headers", key)


def _bridged(url: str, key: str) -> Json:
    entry = {"command": sys.executable, "args": ["-m", "kb.cli.main", "bridge", "--url", url]}
    return entry | ({"env": {"KB_MCP_API_KEY": key}} if key else {})


def _with_headers(name: str, key: str) -> Json:
    return {name: key_headers(key)} if key else {}


CLIENTS = {
    "claude-code": McpClient("Claude Code", _claude_code, "mcpServers", _typed, "Start claude; /mcp lists kb."),
    "claude-desktop": McpClient(
        "Claude Desktop",
        lambda: _application("Claude", "claude_desktop_config.json"),
        "mcpServers",
        _bridged,
        "Quit and start Claude Desktop.",
        calls_itself="claude-ai",
    ),
    "cursor": McpClient(
        "Cursor", lambda: _home(".cursor", "mcp.json"), "mcpServers", _plain, "Cursor settings, MCP, lists kb."
    ),
    "vscode": McpClient(
        "VS Code with GitHub Copilot",
        lambda: _application("Code", "User", "mcp.json"),
        "servers",
        _typed,
        "Run the command MCP: List Servers and start kb.",
        calls_itself="visual studio code",
    ),
    "codex": McpClient("Codex", _codex, "mcp_servers", _codex_entry, "Start codex; /mcp lists kb.", "toml"),
    "gemini": McpClient(
        "Gemini CLI", lambda: _home(".gemini", "settings.json"), "mcpServers", _gemini, "Start gemini; /mcp lists kb."
    ),
    "amazon-q": McpClient(
        "Amazon Q CLI",
        lambda: _home(".aws", "amazonq", "mcp.json"),
        "mcpServers",
        _typed,
        "Start q chat; /mcp lists kb.",
        calls_itself="q-dev-cli",
    ),
}
