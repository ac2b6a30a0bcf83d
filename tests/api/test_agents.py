"""GET /agents: how agents are connected, and which have called."""

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from kb.api.agents import MOST_CALLERS, Callers
from mcp_server.agents import McpProcess, agent
from support import Http, StartEngine


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def mcp_server(engine_url: str, tmp_path: Path) -> Iterator[McpProcess]:
    server = McpProcess(tmp_path / "mcp.log", engine_url)
    yield server
    server.stop()


def test_each_agent_has_a_snippet_that_it_can_read_and_the_key_is_not_in_it(start_engine: StartEngine) -> None:
    http = Http(start_engine(KB_MCP_API_KEY="grubbelsecret", KB_MCP_PORT="3999").url)
    reply = http("GET", "/api/v1/agents")
    assert "grubbelsecret" not in reply.body.decode()
    assert reply.json["mcp_url"] == "http://127.0.0.1:3999/mcp"
    found = {one["name"]: one for one in reply.json["agents"]}
    assert len(found) == 7
    for one in found.values():
        entry = (tomllib if one["name"] == "codex" else json).loads(one["snippet"])
        assert "3999" in str(entry)
        assert "YOUR-KB_MCP_API_KEY" in str(entry)
        assert one["last_call"] is None


@pytest.mark.anyio
async def test_an_agent_that_called_a_tool_is_named(http: Http, mcp_server: McpProcess) -> None:
    async with agent(mcp_server.at("kb")) as client:
        await client("kb_status")
        await client("kb_status")
    callers = http("GET", "/api/v1/agents").json["callers"]
    assert callers[0]["calls"] >= 2
    assert callers[0]["name"].startswith("mcp ")


def test_a_known_agent_is_recognised_by_the_name_that_it_gives(http: Http) -> None:
    http("GET", "/api/v1/status", X_KB_Agent="Visual Studio Code 1.106")
    agents = http("GET", "/api/v1/agents").json["agents"]
    assert {one["name"] for one in agents if one["last_call"]} >= {"vscode"}


def test_no_more_callers_are_kept_than_a_list_can_show() -> None:
    callers = Callers()
    for number in range(MOST_CALLERS + 50):
        callers.note(f"agent {number}")
        callers.note("steady")
    assert len(callers.recent()) == MOST_CALLERS
    assert [one.calls for one in callers.recent() if one.name == "steady"] == [MOST_CALLERS + 50]
