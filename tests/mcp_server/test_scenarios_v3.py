"""The scenarios of the v3 specification, one test each, named after them. Those with collections drive `kb-v3`."""

import base64
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import anyio
import pytest

from mcp_server.agents import Agent, McpProcess, agent
from mcp_server.conftest import StartMcp
from support import Http, StartEngine

pytestmark = pytest.mark.anyio


async def upload(agent: Agent, name: str, data: bytes, **given: object) -> dict[str, object]:
    started = await agent("kb_upload_start", filename=name, total_size=len(data), **given)
    encoded = base64.b64encode(data).decode()
    await agent("kb_upload_chunk", upload_id=started["upload_id"], data=encoded, chunk_index=0)
    finished = await agent("kb_upload_finish", upload_id=started["upload_id"])
    assert not finished.failed, finished
    return dict(finished.json)


async def ended(http: Http, job_id: str) -> dict[str, object]:
    return dict(await anyio.to_thread.run_sync(http.ended, job_id))


# MCP server transport and deployment


async def test_mcp_server_starts_and_connects_to_engine(start_engine: StartEngine, start_mcp: StartMcp) -> None:
    engine = start_engine(KB_API_KEY="secret")
    server = start_mcp(engine.url, KB_API_KEY="secret")
    async with agent(server.at()) as client:
        assert (await client("kb_status"))["version"]
    wrong = start_mcp(engine.url, KB_API_KEY="wrong")
    async with agent(wrong.at()) as client:
        refused = await client("kb_status")
        assert refused.failed
        assert refused["error"]["code"] == "unauthorized"


async def test_engine_unreachable_at_startup(start_engine: StartEngine, start_mcp: StartMcp, tmp_path: Path) -> None:
    engine = start_engine()
    address = engine.url
    engine.stop()
    server = start_mcp(address)
    async with agent(server.at()) as client:
        for tool, arguments in {"kb_status": {}, "kb_search": {"query": "x"}, "kb_addnote": {"text": "x"}}.items():
            answer = await client(tool, **arguments)
            assert answer.failed
            assert address in answer["error"]["message"]
            assert "unreachable" in answer["error"]["message"]
            assert answer["error"]["retryable"]
        # It recovers without a restart, on the same session, and notices when the engine goes away later.
        back = start_engine(KB_PORT=str(urlsplit(address).port))
        assert not (await client("kb_addnote", text="The engine is back")).failed
        back.stop()
        assert (await client("kb_status")).failed


async def test_docker_compose_deployment(start_engine: StartEngine, start_mcp: StartMcp) -> None:
    """By the service's name instead of an address; that name has to be allowed on either side."""
    engine = start_engine(KB_HOST="127.0.0.1", KB_ALLOWED_HOSTS="engine")
    server = start_mcp(f"http://localhost:{urlsplit(engine.url).port}", KB_MCP_ALLOWED_HOSTS="mcp")
    async with agent(server.at(), Host="mcp:3000") as client:
        assert not (await client("kb_status")).failed


# MCP server authentication


@pytest.fixture(scope="module")
def locked(engine_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[McpProcess]:
    server = McpProcess(tmp_path_factory.mktemp("locked") / "mcp.log", engine_url, KB_MCP_API_KEY="agents-only")
    yield server
    server.stop()


async def test_valid_mcp_api_key(locked: McpProcess) -> None:
    async with agent(locked.at(), key="agents-only") as client:
        assert not (await client("kb_status")).failed


@pytest.mark.parametrize("contract", ["kb", "knowledge", "kb-v3"])
async def test_missing_mcp_api_key_when_required(locked: McpProcess, contract: str) -> None:
    refused = Http(locked.url)("POST", f"/mcp/{contract}", {"jsonrpc": "2.0", "id": 1, "method": "ping"})
    assert refused.status == 401
    assert refused.headers["www-authenticate"] == "Bearer"
    assert refused.json["error"]["code"] == "unauthorized"


async def test_invalid_mcp_api_key(locked: McpProcess) -> None:
    http = Http(locked.url, {"Authorization": "Bearer secret"})
    assert http("POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "ping"}).status == 401
    with pytest.raises(BaseException):  # noqa: B017, PT011 - the client wraps it in groups
        async with agent(locked.at(), key="secret"):
            pass


async def test_mcp_auth_disabled(mcp: McpProcess) -> None:
    async with agent(mcp.at()) as client:
        assert not (await client("kb_status")).failed


# Search tool


async def test_basic_search(kb: Agent) -> None:
    await kb("kb_addnote", text="Pension revaluation follows the consumer price index.", tags=["pension-a"])
    found = await kb("kb_search", query="pension revaluation", top=5)
    assert len(found["results"]) <= 5
    best = found["results"][0]
    assert "Pension revaluation" in best["text"]
    assert 0 < best["score"] <= 1
    assert best["tags"] == ["pension-a"]
    assert {"document_id", "chunk_id", "title", "metadata", "anchor"} <= best.keys()


async def test_search_with_collection_filter(v3: Agent) -> None:
    await v3("kb_addnote", text="Email preferences: short answers.", collection="memory", tags=["s1"])
    await v3("kb_addnote", text="Email preferences of the newsletter.", collection="documents", tags=["s1"])
    found = await v3("kb_search", query="email preferences", collection="memory", tags=["s1"])
    assert [result["text"] for result in found["results"]] == ["Email preferences: short answers."]
    both = await v3("kb_search", query="email preferences", tags=["s1"])
    assert len(both["results"]) == 2, "without a collection nothing is filtered"


async def test_search_with_tags_and_collection(v3: Agent) -> None:
    await v3("kb_addnote", text="Feedback by email is best.", collection="memory", tags=["s2-email"])
    await v3("kb_addnote", text="Feedback by phone is second best.", collection="memory", tags=["s2-phone"])
    found = await v3("kb_search", query="feedback", tags=["s2-email"], collection="memory")
    assert [result["tags"] for result in found["results"]] == [["s2-email"]]


async def test_search_results_strip_collection_tags(v3: Agent, http: Http) -> None:
    http.add_note("Stripped in results", tags=["collection:memory", "s3-feedback", "s3-email"])
    found = await v3("kb_search", query="stripped in results", tags=["s3-feedback"])
    assert found["results"][0]["collection"] == "memory"
    assert sorted(found["results"][0]["tags"]) == ["s3-email", "s3-feedback"]


async def test_search_with_mode_override(kb: Agent) -> None:
    await kb("kb_addnote", text="The error log says E4711 on start.", tags=["s4"])
    found = await kb("kb_search", query="E4711", fts_only=True, tags=["s4"])
    assert found["mode"] == "fts"
    assert len(found["results"]) == 1
    assert (await kb("kb_search", query="unheardofword", fts_only=True, tags=["s4"]))["results"] == []


# Add note tool


async def test_add_a_note_with_default_collection(v3: Agent, http: Http) -> None:
    added = await v3("kb_addnote", text="User prefers concise responses, by default")
    assert added["job_id"]
    assert http("GET", f"/api/v1/documents/{added['document_id']}").json["tags"] == ["collection:documents"]


async def test_add_a_note_to_a_specific_collection(v3: Agent, http: Http) -> None:
    added = await v3("kb_addnote", text="User prefers concise responses", collection="memory", tags=["feedback"])
    tags = http("GET", f"/api/v1/documents/{added['document_id']}").json["tags"]
    assert sorted(tags) == ["collection:memory", "feedback"]


async def test_add_a_note_to_a_collection_replaces_existing_collection_tag(v3: Agent, http: Http) -> None:
    first = await v3("kb_addnote", text="some note", collection="documents")
    second = await v3("kb_addnote", text="some note", collection="memory")
    assert first["document_id"] != second["document_id"], "the same text in another collection is another note"
    tags = http("GET", f"/api/v1/documents/{second['document_id']}").json["tags"]
    assert tags == ["collection:memory"]


@pytest.mark.parametrize(("named", "tag"), [({"collection": "memory"}, "memory"), ({}, "documents")])
async def test_a_collection_tag_that_was_given_is_replaced(
    v3: Agent, http: Http, named: dict[str, str], tag: str
) -> None:
    given = ["collection:workspace", "kept", "collection:elsewhere"]
    note = await v3("kb_addnote", text=f"tagged by hand, goes to {tag}", tags=given, **named)
    data = f"a file tagged by hand, goes to {tag}".encode()
    file = await ended(http, str((await upload(v3, "by-hand.md", data, tags=given, **named))["job_id"]))
    for document_id in (note["document_id"], file["document_id"]):
        tags = http("GET", f"/api/v1/documents/{document_id}").json["tags"]
        assert sorted(tags) == [f"collection:{tag}", "kept"]


# Chunked file upload tools


async def test_start_an_upload(v3: Agent) -> None:
    started = await v3(
        "kb_upload_start", filename="report.pdf", total_size=5242880, tags=["insurance"], collection="documents"
    )
    assert len(started["upload_id"].split("-")) == 5
    assert started["chunks"] == 5


async def test_upload_a_chunk(kb: Agent) -> None:
    started = await kb("kb_upload_start", filename="a.txt", total_size=10)
    data = base64.b64encode(b"01234").decode()
    stored = await kb("kb_upload_chunk", upload_id=started["upload_id"], data=data, chunk_index=0)
    assert stored["received_bytes"] == 5


async def test_upload_multiple_chunks_in_sequence(kb: Agent) -> None:
    started = await kb("kb_upload_start", filename="a.txt", total_size=15)
    for index in range(3):
        data = base64.b64encode(b"01234").decode()
        stored = await kb("kb_upload_chunk", upload_id=started["upload_id"], data=data, chunk_index=index)
        assert stored["received_bytes"] == 5 * (index + 1)
        assert stored["missing_chunks"] == []


async def test_finish_an_upload(v3: Agent, http: Http) -> None:
    data = b"# Insurance\n\nThe premium rises in May. " + os.urandom(8).hex().encode()
    accepted = await upload(v3, "insurance.md", data, tags=["insurance"], collection="workspace")
    job = await ended(http, str(accepted["job_id"]))
    assert job["status"] == "completed"
    document = http("GET", f"/api/v1/documents/{job['document_id']}").json
    assert sorted(document["tags"]) == ["collection:workspace", "insurance"]
    assert document["filename"] == "insurance.md"
    assert http("GET", f"/api/v1/documents/{job['document_id']}/original").body == data


async def test_upload_with_invalid_upload_id(kb: Agent) -> None:
    chunk = await kb("kb_upload_chunk", upload_id="no-such-upload", data="AAAA", chunk_index=0)
    finish = await kb("kb_upload_finish", upload_id="5b1c5f0e-0000-4000-8000-000000000000")
    for answer in (chunk, finish):
        assert answer.failed
        assert answer["error"]["code"] == "not_found"
        assert "kb_upload_start" in answer["error"]["message"]


async def test_abandoned_upload_cleanup(start_mcp: StartMcp, tmp_path: Path) -> None:
    server = start_mcp(KB_MCP_UPLOAD_SECONDS="1", TMPDIR=str(tmp_path))
    async with agent(server.at()) as client:
        started = await client("kb_upload_start", filename="a.txt", total_size=100)
        await client("kb_upload_chunk", upload_id=started["upload_id"], data="AAAA", chunk_index=0)
        assert list(tmp_path.glob("kb-mcp-uploads-*/*/*")), "the chunk is staged"
        with anyio.fail_after(30):
            while list(tmp_path.glob("kb-mcp-uploads-*/*")):
                await anyio.sleep(0.1)
        answer = await client("kb_upload_finish", upload_id=started["upload_id"])
        assert answer["error"]["code"] == "not_found"


async def test_mcp_server_restart_during_upload(start_mcp: StartMcp, tmp_path: Path) -> None:
    server = start_mcp(TMPDIR=str(tmp_path))
    async with agent(server.at()) as client:
        started = await client("kb_upload_start", filename="a.txt", total_size=100)
    server.process.kill()
    server.process.wait()
    again = start_mcp(TMPDIR=str(tmp_path))
    assert len(list(tmp_path.glob("kb-mcp-uploads-*"))) == 1, "what the killed one left behind is gone"
    async with agent(again.at()) as client:
        answer = await client("kb_upload_chunk", upload_id=started["upload_id"], data="AAAA", chunk_index=0)
        assert answer["error"]["code"] == "not_found"


# Update note tool


async def test_update_an_existing_note(kb: Agent) -> None:
    added = await kb("kb_addnote", text="User prefers prose", tags=["u1"])
    text = "Updated preference: user prefers bullet points"
    updated = await kb("kb_update_note", document_id=added["document_id"], text=text)
    assert (updated["id"], updated["text"], updated["version"]) == (added["document_id"], text, 2)
    stale = await kb("kb_update_note", document_id=added["document_id"], text="mine", expected_version=1)
    assert stale.failed
    assert stale["error"]["code"] == "conflict"


async def test_update_a_non_existent_document(kb: Agent) -> None:
    answer = await kb("kb_update_note", document_id=99999999, text="x")
    assert answer.failed
    assert answer["error"]["code"] == "not_found"


async def test_update_a_non_note_document(kb: Agent, http: Http) -> None:
    document_id = http.add_file("file.md", b"a file, not a note").json["document_id"]
    answer = await kb("kb_update_note", document_id=document_id, text="x")
    assert answer.failed
    assert answer["error"]["code"] == "not_a_note"
    assert "notes" in answer["error"]["message"]


# Get document tool


async def test_get_by_document_id(kb: Agent) -> None:
    added = await kb("kb_addnote", text="To be read again", tags=["g1"])
    document = await kb("kb_get", document_id=added["document_id"])
    assert document["text"] == "To be read again"
    assert document["chunks"][0]["text"] == "To be read again"


async def test_get_by_source_path(kb: Agent, http: Http) -> None:
    http.add_note("Feedback on testing", source_path="memory/feedback_testing.md")
    found = await kb("kb_get", source_path="memory/feedback_testing.md")
    assert found["total"] == 1
    assert found["documents"][0]["source_path"] == "memory/feedback_testing.md"
    assert set(found.json) == {"documents", "total"}
    for wrong in ({}, {"document_id": 1, "source_path": "x"}):
        assert (await kb("kb_get", **wrong)).failed


async def test_get_results_strip_collection_tags(v3: Agent, http: Http) -> None:
    document_id = http.add_note("Stripped when read", tags=["collection:memory", "g3"], source_path="g3.md")
    for document in (
        (await v3("kb_get", document_id=document_id)).json,
        (await v3("kb_get", source_path="g3.md"))["documents"][0],
        (await v3("kb_update_note", document_id=document_id, text="Stripped when updated")).json,
    ):
        assert (document["tags"], document["collection"]) == (["g3"], "memory")


# Status and jobs tools


async def test_get_engine_status(kb: Agent) -> None:
    status = await kb("kb_status")
    assert {"version", "model", "device", "documents", "queue"} <= status.json.keys()


async def test_list_recent_jobs(kb: Agent) -> None:
    added = await kb("kb_addnote", text="A note that makes a job", tags=["j1"])
    listed = await kb("kb_jobs")
    assert added["job_id"] in [job["id"] for job in listed["jobs"]]
    assert (await kb("kb_jobs", job_id=added["job_id"]))["status"] == "completed"


async def test_filter_jobs_by_status(kb: Agent) -> None:
    await kb("kb_addnote", text="A note that completes", tags=["j2"])
    assert {job["status"] for job in (await kb("kb_jobs", status="completed"))["jobs"]} == {"completed"}
    assert {job["status"] for job in (await kb("kb_jobs", status="failed"))["jobs"]} <= {"failed"}
    assert (await kb("kb_jobs", status="finished")).failed


# Collection management via tags


async def test_default_collection_on_addnote(v3: Agent) -> None:
    added = await v3("kb_addnote", text="Goes where it belongs by default", tags=["c1"])
    assert (await v3("kb_get", document_id=added["document_id"]))["collection"] == "documents"


async def test_explicit_collection_on_addnote(v3: Agent) -> None:
    added = await v3("kb_addnote", text="Goes to memory", collection="memory")
    assert (await v3("kb_get", document_id=added["document_id"]))["collection"] == "memory"
    unknown = await v3("kb_addnote", text="Goes nowhere", collection="memeory")
    assert unknown.failed
    assert "documents, memory, workspace" in unknown["error"]["message"]


async def test_exclusive_collection_enforcement(v3: Agent, http: Http) -> None:
    added = await v3("kb_addnote", text="Moves from here to there", collection="documents", tags=["c3"])
    moved = await v3("kb_set_collection", document_id=added["document_id"], collection="memory")
    assert (moved["collection"], moved["tags"]) == ("memory", ["c3"])
    tags = http("GET", f"/api/v1/documents/{added['document_id']}").json["tags"]
    assert sorted(tags) == ["c3", "collection:memory"]
    async with anyio.create_task_group() as movers:
        for collection in ("memory", "workspace", "documents") * 3:
            movers.start_soon(partial(v3, "kb_set_collection", document_id=added["document_id"], collection=collection))
    tags = http("GET", f"/api/v1/documents/{added['document_id']}").json["tags"]
    assert len([tag for tag in tags if tag.startswith("collection:")]) == 1
    # A file that is known already moves before the call answers.
    data = b"known file " + os.urandom(8).hex().encode()
    first = await ended(http, str((await upload(v3, "known.md", data))["job_id"]))
    again = await upload(v3, "known.md", data, collection="workspace")
    assert again["duplicate_of"] == first["document_id"]
    tags = http("GET", f"/api/v1/documents/{first['document_id']}").json["tags"]
    assert tags == ["collection:workspace"]


async def test_collection_field_in_search_results(v3: Agent, http: Http) -> None:
    http.add_note("No collection at all", tags=["c4"])
    found = await v3("kb_search", query="no collection at all", tags=["c4"])
    assert found["results"][0]["collection"] is None
    assert found["results"][0]["tags"] == ["c4"]
