"""One MCP server with every contract for tests that can share it, and servers of a test's own.

The folder is not called `mcp`: the tests' folder is on the path, and it would hide the SDK.
"""

import re
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from mcp_server.agents import Agent, McpProcess, agent

StartMcp = Callable[..., McpProcess]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def readable(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder below which contract `knowledge` may read."""
    return tmp_path_factory.mktemp("readable")


@pytest.fixture(scope="session")
def mcp(engine_url: str, readable: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[McpProcess]:
    log = tmp_path_factory.mktemp("mcp") / "mcp.log"
    server = McpProcess(log, engine_url, KB_MCP_FILE_ROOTS=str(readable))
    yield server
    assert server.stop() == 0, server.log.read_text()
    # The SDK complains of clients that end their session while they still send; that is not ours to mend.
    assert not re.search(r"ERROR \S+ kb\.", server.log.read_text())


@pytest.fixture
def start_mcp(tmp_path: Path, engine_url: str) -> Iterator[StartMcp]:
    """Start servers of the test's own; they are stopped at its end."""
    started: list[McpProcess] = []

    def start(engine: str = engine_url, **settings: str) -> McpProcess:
        started.append(McpProcess(tmp_path / f"mcp{len(started)}.log", engine, **settings))
        return started[-1]

    yield start
    for server in started:
        server.stop()


@pytest.fixture
async def kb(mcp: McpProcess) -> AsyncIterator[Agent]:
    async with agent(mcp.at("kb")) as client:
        yield client


@pytest.fixture
async def v3(mcp: McpProcess) -> AsyncIterator[Agent]:
    async with agent(mcp.at("kb-v3")) as client:
        yield client


@pytest.fixture
async def knowledge(mcp: McpProcess) -> AsyncIterator[Agent]:
    async with agent(mcp.at("knowledge")) as client:
        yield client
