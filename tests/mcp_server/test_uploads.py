"""Uploads, and everything that an agent can get wrong with them."""

import base64
from pathlib import Path
from typing import Any

import anyio
import pytest

from kb.mcp.uploads.staging import Uploads
from mcp_server.agents import Agent, McpProcess, agent
from mcp_server.conftest import StartMcp
from support import Http, StartEngine

pytestmark = pytest.mark.anyio

MB = 2**20


def blank(size: int) -> bytes:
    """Bytes of which no two chunks are alike, and in which there is next to nothing to index."""
    return b"".join(f"{number:<{MB // 4}}".encode() for number in range(4 * size // MB))


def chunks_of(data: bytes, size: int = MB) -> list[str]:
    return [base64.b64encode(data[at : at + size]).decode() for at in range(0, len(data), size)]


async def start(kb: Agent, data: bytes, name: str = "large.txt", **given: Any) -> str:
    started = await kb("kb_upload_start", filename=name, total_size=len(data), **given)
    assert not started.failed, started
    return str(started["upload_id"])


async def send(kb: Agent, upload_id: str, index: int, data: str) -> Any:
    return await kb("kb_upload_chunk", upload_id=upload_id, chunk_index=index, data=data)


async def test_25_mb_in_chunks_of_1_mb_arrive_byte_identical(kb: Agent, http: Http) -> None:
    data = blank(25 * MB)
    parts = chunks_of(data)
    upload_id = await start(kb, data)
    order = list(range(25))
    order[3], order[4] = order[4], order[3]  # swapped
    order.remove(17)  # missing
    for index in [*order, 9]:  # repeated
        assert not (await send(kb, upload_id, index, parts[index])).failed
    missing = await kb("kb_upload_finish", upload_id=upload_id)
    assert missing.failed
    assert missing["error"]["details"]["missing_chunks"] == [17]
    assert "Chunk 17 is missing" in missing["error"]["message"]
    assert (await send(kb, upload_id, 17, parts[17]))["received_bytes"] == len(data)
    accepted = await kb("kb_upload_finish", upload_id=upload_id)
    job = await anyio.to_thread.run_sync(http.ended, accepted["job_id"])
    assert job["status"] == "completed", job
    assert http("GET", f"/api/v1/documents/{job['document_id']}/original").body == data
    assert (await kb("kb_upload_finish", upload_id=upload_id))["error"]["code"] == "not_found"


async def test_the_last_chunk_can_be_missing_too(kb: Agent) -> None:
    data = b"0123456789"
    upload_id = await start(kb, data)
    await send(kb, upload_id, 0, chunks_of(data, 5)[0])
    answer = await kb("kb_upload_finish", upload_id=upload_id)
    assert "5 bytes of 10 bytes are still to come: chunk 1 is missing" in answer["error"]["message"]
    nothing = await start(kb, data)
    assert "chunk 0 is missing" in (await kb("kb_upload_finish", upload_id=nothing))["error"]["message"]


async def test_a_repeated_chunk_replaces_the_first(kb: Agent, http: Http) -> None:
    data = b"the right bytes, the right bytes"
    upload_id = await start(kb, data, "right.md")
    await send(kb, upload_id, 0, base64.b64encode(b"the wrong bytes!").decode())
    await send(kb, upload_id, 1, chunks_of(data, 16)[1])
    again = await send(kb, upload_id, 0, chunks_of(data, 16)[0])
    assert (again["replaced"], again["received_bytes"]) == (True, 32)
    accepted = await kb("kb_upload_finish", upload_id=upload_id)
    job = await anyio.to_thread.run_sync(http.ended, accepted["job_id"])
    assert http("GET", f"/api/v1/documents/{job['document_id']}/original").body == data


@pytest.mark.parametrize(
    ("index", "data", "told"),
    [
        (0, "not base64!", "not base64"),
        (0, "QUJ", "not base64"),
        (0, "data:text/plain;base64,QUJD", "not base64"),
        (0, base64.b64encode(b"eleven bytes").decode(), "2 bytes more than is left of the announced 10 bytes"),
        (10, "QUJD", "cannot have that many chunks"),
    ],
)
async def test_a_chunk_that_cannot_be_right_is_refused(kb: Agent, index: int, data: str, told: str) -> None:
    upload_id = await start(kb, b"0123456789")
    answer = await send(kb, upload_id, index, data)
    assert answer.failed
    assert told in answer["error"]["message"]
    assert not (await send(kb, upload_id, 0, base64.b64encode(b"0123456789").decode() + "\n")).failed, "it goes on"


@pytest.mark.parametrize(
    ("filename", "size", "code"),
    [
        ("large.pdf", 100 * MB + 1, "file_too_large"),
        ("empty.pdf", 0, "invalid_request"),
        ("/", 5, "invalid_request"),
        ("", 5, "invalid_request"),
    ],
)
async def test_a_file_that_cannot_be_taken_is_refused_at_once(kb: Agent, filename: str, size: int, code: str) -> None:
    answer = await kb("kb_upload_start", filename=filename, total_size=size)
    assert answer.failed
    assert answer["error"]["code"] == code


async def test_a_path_in_the_name_leads_nowhere(kb: Agent, http: Http) -> None:
    data = b"named like a path"
    upload_id = await start(kb, data, "../../etc/passwd.md")
    await send(kb, upload_id, 0, chunks_of(data)[0])
    accepted = await kb("kb_upload_finish", upload_id=upload_id)
    job = await anyio.to_thread.run_sync(http.ended, accepted["job_id"])
    assert http("GET", f"/api/v1/documents/{job['document_id']}").json["filename"] == "passwd.md"


async def test_a_finish_that_can_be_mended_keeps_the_upload(start_engine: StartEngine, start_mcp: StartMcp) -> None:
    engine = start_engine()
    port = engine.url.rpartition(":")[2]
    server = start_mcp(engine.url)
    engine.stop()
    async with agent(server.at()) as client:
        data = b"waiting for the engine"
        upload_id = await start(client, data, "patient.md")
        await send(client, upload_id, 0, chunks_of(data)[0])
        answer = await client("kb_upload_finish", upload_id=upload_id)
        assert (answer["error"]["code"], answer["error"]["retryable"]) == ("unavailable", True)
        assert "unreachable" in answer["error"]["message"]
        start_engine(KB_PORT=port)
        assert (await client("kb_upload_finish", upload_id=upload_id))["job_id"]


async def test_a_finish_that_cannot_be_mended_drops_the_upload(kb: Agent) -> None:
    data = b"\x7fELF\x00\x00\x00\x00"
    upload_id = await start(kb, data, "program.bin")
    await send(kb, upload_id, 0, chunks_of(data)[0])
    assert (await kb("kb_upload_finish", upload_id=upload_id))["error"]["code"] == "unsupported_format"
    assert (await kb("kb_upload_finish", upload_id=upload_id))["error"]["code"] == "not_found"


def put(url: str, data: bytes) -> Any:
    base, _, token = url.rpartition("/uploads/")
    return Http(base)("PUT", f"/uploads/{token}", raw=data)


async def test_the_upload_url_takes_the_raw_bytes_once(start_mcp: StartMcp, http: Http) -> None:
    server = start_mcp(KB_MCP_API_KEY="secret")
    data = b"# Sent with curl\n\nNo model has seen these bytes."
    async with agent(server.at(), key="secret") as kb:
        started = await kb("kb_upload_start", filename="curl.md", total_size=len(data), tags=["curl"])
        url = started["upload_url"]
        assert url.startswith(f"{server.url}/uploads/"), "by the Host that the agent used"
        assert put(url, data[:10]).json["error"]["code"] == "invalid_request"
        assert put(url, data + b"x").status == 413
        assert put(url, data).status == 201, "a transfer that failed may be repeated"
        assert put(url, data).status == 404, "but it works once only"
        assert (await send(kb, started["upload_id"], 0, "QUJD"))["error"]["code"] == "conflict"
        accepted = await kb("kb_upload_finish", upload_id=started["upload_id"])
        job = await anyio.to_thread.run_sync(http.ended, accepted["job_id"])
    assert http("GET", f"/api/v1/documents/{job['document_id']}/original").body == data
    assert put(f"{server.url}/uploads/guess", data).status == 404
    assert Http(server.url)("GET", "/uploads/guess").status == 405
    assert url.rpartition("/")[2] not in server.log.read_text(), "the address is as good as a key"


async def test_upload_urls_can_be_moved_and_switched_off(start_mcp: StartMcp) -> None:
    moved = start_mcp(KB_MCP_PUBLIC_URL="https://kb.example/agents/")
    async with agent(moved.at()) as kb:
        started = await kb("kb_upload_start", filename="a.md", total_size=5)
        assert started["upload_url"].startswith("https://kb.example/agents/uploads/")
    off = start_mcp(KB_MCP_UPLOAD_URLS="off")
    async with agent(off.at()) as kb:
        assert "upload_url" not in (await kb("kb_upload_start", filename="a.md", total_size=5)).json


async def test_uploads_belong_to_all_sessions_and_are_private_on_disk(mcp: McpProcess, kb: Agent) -> None:
    data = b"begun here, finished there"
    upload_id = await start(kb, data, "moved.md")
    async with agent(mcp.at(), mode="auto") as other:
        await send(other, upload_id, 0, chunks_of(data)[0])
        assert (await other("kb_upload_finish", upload_id=upload_id))["job_id"]


def test_staged_files_are_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    uploads = Uploads(600)
    upload = uploads.start("a.md", 5, [], MB)
    assert (upload.folder.stat().st_mode & 0o777, upload.folder.parent.stat().st_mode & 0o777) == (0o700, 0o700)
    uploads.close()
    assert not list(tmp_path.iterdir())
