"""Long work: progress for callers that ask for it, and no job outlives the wish for it."""

import base64
import json
from pathlib import Path
from typing import Any
from uuid import uuid4

import anyio
import httpx2
import pytest
from mcp.shared.exceptions import MCPError
from websockets.asyncio.client import connect

from mcp_server.agents import MODES, Agent, McpProcess, agent
from support import Http

pytestmark = pytest.mark.anyio


def essay(words: int) -> str:
    """Text that takes a while to index: no two sentences are alike."""
    return "\n\n".join(f"Sentence {uuid4().hex} tells of ship number {n} and its harbour." for n in range(words // 10))


def long_file(folder: Path, words: int = 60_000) -> Path:
    path = folder / f"{uuid4().hex}.html"
    path.write_text(f"<p>{essay(words)}</p>")
    return path


async def job_of(http: Http, filename: str, *wanted: str) -> Any:
    """The job for a file, once it is in one of these states."""
    with anyio.fail_after(60):
        while True:
            jobs = (await anyio.to_thread.run_sync(http, "GET", "/api/v1/jobs?limit=50")).json["jobs"]
            found = next((job for job in jobs if job["filename"] == filename), None)
            if found and found["status"] in wanted:
                return found
            await anyio.sleep(0.05)


@pytest.mark.parametrize("mode", MODES)
async def test_progress_while_a_synchronous_add_runs(mcp: McpProcess, readable: Path, mode: str) -> None:
    told: list[tuple[float, float | None, str | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total, message))

    path = long_file(readable, 2_000)
    async with agent(mcp.at("knowledge"), mode=mode) as client:
        answer = await client("knowledge-add", note, file_path=str(path), **{"async": False})
    assert answer["success"]
    assert len(told) > 1
    assert [progress for progress, *_ in told] == sorted({progress for progress, *_ in told}), "it only grows"
    assert {total for _, total, _ in told} == {1.0}
    assert all(message for *_, message in told)


async def test_progress_while_an_upload_is_finished(kb: Agent) -> None:
    told: list[float] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        told.append(progress)

    data = essay(800).encode()
    started = await kb("kb_upload_start", filename="progress.txt", total_size=len(data))
    encoded = base64.b64encode(data).decode()
    await kb("kb_upload_chunk", upload_id=started["upload_id"], data=encoded, chunk_index=0)
    answer = await kb("kb_upload_finish", note, upload_id=started["upload_id"])
    assert (answer["status"], bool(answer["document_id"])) == ("completed", True)
    assert len(told) > 1


@pytest.mark.parametrize("mode", MODES)
async def test_a_cancelled_call_cancels_its_job(mcp: McpProcess, readable: Path, http: Http, mode: str) -> None:
    path = long_file(readable)
    async with agent(mcp.at("knowledge"), mode=mode) as client, anyio.create_task_group() as tasks:

        async def note(progress: float, total: float | None, message: str | None) -> None:
            tasks.cancel_scope.cancel()  # the official client then tells the server

        await client("knowledge-add", note, file_path=str(path), **{"async": False})
    job = await job_of(http, path.name, "cancelled")
    assert job["document_id"] is None, "nothing of it is left"


@pytest.mark.parametrize("how", ["request", "notification"])
async def test_tools_cancel_with_a_task_id(mcp: McpProcess, knowledge: Agent, readable: Path, how: str) -> None:
    path = long_file(readable)
    queued = await knowledge("knowledge-add", file_path=str(path))
    message = {"jsonrpc": "2.0", "method": "tools/cancel", "params": {"taskId": queued["task_id"]}}
    plain = Http(mcp.url)
    if how == "request":
        answer = plain("POST", "/mcp/knowledge", message | {"id": 1})
        assert answer.json["result"]["success"] is True
    else:
        assert plain("POST", "/mcp/knowledge", message).status == 202
    with anyio.fail_after(30):
        while (await knowledge("knowledge-task-status", task_id=queued["task_id"]))["status"] != "cancelled":
            await anyio.sleep(0.05)
    again = plain("POST", "/mcp/knowledge", message | {"id": 2}).json["error"]
    assert again["data"]["error_type"] == "conflict"
    unknown = message | {"id": 3, "params": {"taskId": str(uuid4())}}
    assert plain("POST", "/mcp/knowledge", unknown).json["error"]["data"]["error_type"] == "task_not_found"
    missing = message | {"id": 4, "params": {}}
    assert plain("POST", "/mcp/knowledge", missing).json["error"]["code"] == -32602


def synchronous_add(path: Path) -> dict[str, Any]:
    params = {
        "name": "knowledge-add",
        "arguments": {"file_path": str(path), "async": False},
        "_meta": {"progressToken": "watching"},
    }
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


async def test_a_plain_caller_that_disconnects_cancels_its_job(mcp: McpProcess, readable: Path, http: Http) -> None:
    path = long_file(readable)
    async with httpx2.AsyncClient() as client, anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: client.post(mcp.at("knowledge"), json=synchronous_add(path)))
        await job_of(http, path.name, "running")
        tasks.cancel_scope.cancel()
    job = await job_of(http, path.name, "cancelled")
    assert job["document_id"] is None, "nothing of it is left"


async def test_a_session_whose_stream_breaks_cancels_its_job(mcp: McpProcess, readable: Path, http: Http) -> None:
    """The connection ends without a word: no notification, no end of the session."""
    path = long_file(readable)
    about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    headers = {"Accept": "application/json, text/event-stream"}
    async with httpx2.AsyncClient(headers=headers) as client:
        hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": about}
        opened = await client.post(mcp.at("knowledge"), json=hello)
        client.headers["Mcp-Session-Id"] = opened.headers["mcp-session-id"]
        async with client.stream("POST", mcp.at("knowledge"), json=synchronous_add(path)) as stream:
            async for line in stream.aiter_lines():
                if "notifications/progress" in line:
                    break
        job = await job_of(http, path.name, "cancelled")
    assert job["document_id"] is None, "nothing of it is left"


async def test_a_websocket_that_closes_cancels_its_job(mcp: McpProcess, readable: Path, http: Http) -> None:
    path = long_file(readable)
    async with connect(mcp.at("knowledge").replace("http", "ws")) as socket:
        await socket.send(json.dumps(synchronous_add(path)))
        message = json.loads(await socket.recv())
        assert message["method"] == "notifications/progress"
        assert message["params"]["progressToken"] == "watching"
    job = await job_of(http, path.name, "cancelled")
    assert job["document_id"] is None, "nothing of it is left"


async def test_an_asynchronous_add_outlives_its_caller(mcp: McpProcess, readable: Path, http: Http) -> None:
    path = long_file(readable, 500)
    async with agent(mcp.at("knowledge")) as client:
        await client("knowledge-add", file_path=str(path))
    assert (await job_of(http, path.name, "completed", "failed", "cancelled"))["status"] == "completed"


async def test_tools_cancel_belongs_to_its_contract(kb: Agent, mcp: McpProcess) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/cancel", "params": {"taskId": "x"}}
    assert Http(mcp.url)("POST", "/mcp/kb", message).json["error"]["code"] == -32601
    with pytest.raises(MCPError):
        await kb.client.session.call_tool("tools/cancel", {})
