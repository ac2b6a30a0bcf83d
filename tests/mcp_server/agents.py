"""What an agent does: it connects with the official client, over a real port, and calls tools."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from mcp.client.streamable_http import streamable_http_client

from mcp import Client
from support import KbProcess

MODES = ("legacy", "auto")  # sessions and the handshake, or the revision without them


class McpProcess(KbProcess):
    """`kb mcp`; every contract is served unless the settings say otherwise."""

    def __init__(self, log: Path, engine_url: str, **settings: str) -> None:
        defaults = {"KB_MCP_PORT": "0", "KB_ENGINE_URL": engine_url, "KB_MCP_CONTRACTS": "kb,knowledge,kb-v3"}
        super().__init__("mcp", log, **defaults | settings)
        self.url = self.url.removesuffix("/mcp")

    def at(self, contract: str = "kb") -> str:
        return f"{self.url}/mcp/{contract}"


@dataclass
class Answer:
    """A tool's answer: the text is compact JSON, the structured content the same."""

    json: Any
    failed: bool

    def __getitem__(self, name: str) -> Any:
        return self.json[name]


class Agent:
    def __init__(self, client: Client) -> None:
        self.client = client

    async def __call__(self, tool: str, progress: Any = None, /, **arguments: Any) -> Answer:
        result = await self.client.call_tool(tool, arguments, progress_callback=progress)
        (content,) = result.content
        assert content.type == "text"
        answer = json.loads(content.text)
        assert content.text == json.dumps(answer, ensure_ascii=False, separators=(",", ":"))
        assert result.structured_content == answer
        return Answer(answer, result.is_error)


@asynccontextmanager
async def agent(url: str, *, key: str = "", mode: str = "legacy", **headers: str) -> AsyncIterator[Agent]:
    sent = headers | ({"Authorization": f"Bearer {key}"} if key else {})
    async with (
        httpx2.AsyncClient(headers=sent, timeout=httpx2.Timeout(60)) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        yield Agent(client)
