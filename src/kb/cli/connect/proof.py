"""The proof that an entry of an agent's configuration works: do once what the agent would do."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from kb.cli.connect.agent import Conversation, McpSession
from kb.core.errors import KBError, Unavailable
from kb.core.types import Json

PATIENCE_SECONDS = 5


class Proof(NamedTuple):
    """What a live server said."""

    server: str
    version: str
    tool: str
    said: str


def proof_of(entry: Json) -> Proof:
    """By HTTP for an entry that names an address, through the command for one that names a command."""
    if "command" in entry:
        return prove(StdioSession([entry["command"], *entry["args"]], entry.get("env", {})))
    headers = entry.get("headers") or entry.get("http_headers") or {}
    return prove(McpSession(entry.get("url") or entry["httpUrl"], headers))


def prove(agent: Conversation) -> Proof:
    """Do the handshake, and call the first tool that takes no arguments and changes nothing."""
    try:
        about = agent.initialize()["serverInfo"]
        tools = agent.call("tools/list", {})["tools"]
        tool = next((tool["name"] for tool in tools if _harmless(tool)), None)
        if tool is None:
            raise KBError(f"What answers at {agent.url} has no tool that could be tried.")
        result = agent.call("tools/call", {"name": tool, "arguments": {}})
    finally:
        agent.close()
    said = " ".join(part.get("text", "") for part in result.get("content", []))
    if result.get("isError"):
        raise Unavailable(f"The MCP server at {agent.url} answers, but its tool {tool} failed: {said}")
    return Proof(about.get("name", ""), about.get("version", ""), tool, said)


def _harmless(tool: Json) -> bool:
    """Whether a tool only reads and takes no arguments, as the status tool of every contract."""
    read_only = (tool.get("annotations") or {}).get("readOnlyHint")
    return bool(read_only) and not tool.get("inputSchema", {}).get("properties")


class StdioSession(Conversation):
    """A session with a process that the agent would start."""

    def __init__(self, words: list[str], env: dict[str, str]) -> None:
        self.url = " ".join(words)
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ | env)

    def post(self, message: Json) -> Iterator[Json]:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin
        assert stdout
        try:
            stdin.write(json.dumps(message).encode() + b"\n")
            stdin.flush()
        except OSError as gone:
            raise Unavailable(f"The command ended at once: {self.url}") from gone
        while "id" in message and (line := stdout.readline()):
            said: Json = json.loads(line)
            yield said
            if said.get("id") == message["id"]:
                return

    def close(self) -> None:
        with suppress(OSError):
            assert self._process.stdin
            self._process.stdin.close()
        try:
            self._process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
        finally:
            assert self._process.stdout
            self._process.stdout.close()
