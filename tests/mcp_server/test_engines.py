"""Several engines of one knowledge base behind one MCP server: an agent does not notice that one of them dies."""

import base64
import signal
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcp_server.agents import agent
from mcp_server.conftest import StartMcp
from postgres import PostgresServer
from support import EngineProcess, Http

pytestmark = pytest.mark.anyio


@pytest.fixture
def engines(postgres: PostgresServer, tmp_path: Path) -> Iterator[list[EngineProcess]]:
    shared = {"KB_DATABASE_URL": postgres.url, "KB_NAME": f"t{uuid.uuid4().hex[:20]}"}
    started = [EngineProcess(tmp_path / f"engine{number}", **shared) for number in range(2)]
    yield started
    for engine in started:
        engine.stop(signal.SIGKILL)


@pytest.fixture
def urls(engines: list[EngineProcess]) -> str:
    return ",".join(engine.url for engine in engines)


async def test_an_engine_is_killed_and_the_session_goes_on(
    engines: list[EngineProcess], urls: str, start_mcp: StartMcp
) -> None:
    async with agent(start_mcp(urls).at()) as kb:
        added = await kb("kb_addnote", text="The boiler was serviced in March")
        for _ in engines:  # whose turn it is
            assert (await kb("kb_search", query="boiler"))["results"]
        engines[0].stop(signal.SIGKILL)
        for _ in range(4):
            (hit,) = (await kb("kb_search", query="boiler", min_score=0.3))["results"]
            assert hit["document_id"] == added["document_id"]
        again = await kb("kb_addnote", text="The turbine was painted in April")
        assert again["status"] == "completed"
        engines[1].stop(signal.SIGKILL)
        lost = await kb("kb_search", query="boiler")
        assert lost.failed
        assert all(engine.url in str(lost.json) for engine in engines)


async def test_an_upload_that_one_engine_answered_goes_to_another_when_it_dies(
    engines: list[EngineProcess], urls: str, start_mcp: StartMcp
) -> None:
    data = b"# Turbine\n\nThe turbine was painted in April.\n"
    async with agent(start_mcp(urls).at()) as kb:
        upload = await kb("kb_upload_start", filename="turbine.md", total_size=len(data))
        engines[0].stop(signal.SIGKILL)
        part = base64.b64encode(data).decode()
        await kb("kb_upload_chunk", upload_id=upload["upload_id"], chunk_index=0, data=part)
        done = await kb("kb_upload_finish", upload_id=upload["upload_id"])
        assert Http(engines[1].url).ended(done["job_id"])["status"] == "completed"
