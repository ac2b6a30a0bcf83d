"""The `knowledge` contract: every tool's parameters, answers and errors, and the ways to reach it."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest

from mcp_server.agents import Agent, McpProcess, agent
from mcp_server.conftest import StartMcp
from support import EngineProcess, Http

pytestmark = pytest.mark.anyio

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def page(folder: Path, text: str, name: str = "") -> Path:
    """An HTML file of its own content."""
    path = folder / (name or f"{uuid4().hex}.html")
    path.write_text(f"<html><body><p>{text}</p></body></html>")
    return path


async def added(knowledge: Agent, path: Path, **given: object) -> str:
    answer = await knowledge("knowledge-add", file_path=str(path), **given, **{"async": False})
    assert answer["success"], answer
    return str(answer["document_id"])


# knowledge-add


async def test_knowledge_add_contract(knowledge: Agent, readable: Path) -> None:
    """The contract's own example, word for word."""
    response = await knowledge("knowledge-add", file_path=str(page(readable, "queued")), **{"async": True})
    assert response["success"] is True
    assert "task_id" in response.json
    response = await knowledge("knowledge-add")
    assert response["success"] is False
    assert response["error"] == "missing_required_parameter"
    response = await knowledge("knowledge-add", file_path="/test/doc.xyz")
    assert response["error"] == "unsupported_format"


async def test_add_asynchronously(knowledge: Agent, readable: Path) -> None:
    answer = await knowledge("knowledge-add", file_path=str(page(readable, "asynchronous")))
    assert UUID.fullmatch(answer["task_id"])
    assert answer["message"] == "Document queued for processing"
    assert isinstance(answer["estimated_time_seconds"], int | float)


async def test_add_synchronously(knowledge: Agent, readable: Path, http: Http) -> None:
    path = page(readable, "Authentication is set up with OAuth2.")
    metadata = {"author": "John Doe", "tags": ["technical", "api-docs"]}
    answer = await knowledge("knowledge-add", file_path=str(path), metadata=metadata, **{"async": False})
    assert UUID.fullmatch(answer["document_id"])
    assert answer["filename"] == path.name
    assert answer["chunks_created"] == 2  # one of the text, one of the metadata
    assert answer["processing_method"] == "text_extraction"
    assert answer["processing_time_seconds"] >= 0
    document = http("GET", f"/api/v1/documents/{answer['document_id']}").json
    assert document["source_path"] == str(path.resolve())
    assert sorted(document["tags"]) == ["api-docs", "technical"]
    assert document["metadata"] == {"author": "John Doe"}
    again = await knowledge("knowledge-add", file_path=str(path), **{"async": False})
    assert again["document_id"] == answer["document_id"], "the same file is the same document"


async def test_add_an_unsupported_format(knowledge: Agent) -> None:
    answer = await knowledge("knowledge-add", file_path="/nowhere/at/all.xyz")
    assert answer.json == {
        "success": False,
        "error": "unsupported_format",
        "message": "Unsupported file format: .xyz. Use PDF, DOCX, PPTX, XLSX, HTML, JPG, PNG, or SVG",
        "supported_formats": ["pdf", "docx", "pptx", "xlsx", "html", "jpg", "png", "svg"],
    }


@pytest.fixture(scope="module")
def own(readable: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[McpProcess]:
    """A server on an engine of its own, which is empty and takes small files only."""
    folder = tmp_path_factory.mktemp("own")
    engine = EngineProcess(folder / "data", KB_MAX_FILE_MB="1")
    server = McpProcess(folder / "mcp.log", engine.url, KB_MCP_FILE_ROOTS=str(readable))
    yield server
    server.stop()
    engine.stop()


async def test_add_a_file_that_is_too_large(own: McpProcess, readable: Path) -> None:
    path = readable / "large.html"
    path.write_bytes(b"x" * (3 * 2**19))
    async with agent(own.at("knowledge")) as client:
        answer = await client("knowledge-add", file_path=str(path))
    assert answer.json == {
        "success": False,
        "error": "file_too_large",
        "message": "File size (1.5 MB) exceeds maximum allowed size (1 MB)",
        "max_size_mb": 1,
    }


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"file_path": "missing.html"}, "file_not_found"),
        ({"file_path": "folder.html"}, "file_not_readable"),
        ({"file_path": "outside.html"}, "path_not_allowed"),
        ({"file_path": "../x.html"}, "path_not_allowed"),
        ({"file_path": "null\0character.html"}, "file_not_found"),
        ({"file_path": ""}, "invalid_parameter"),
        ({"file_path": 5}, "invalid_parameter"),
        ({"file_path": "a.html", "async": "yes"}, "invalid_parameter"),
        ({"file_path": "a.html", "metadata": {"tags": "one"}}, "invalid_parameter"),
        ({"file_path": "a.html", "metadata": []}, "invalid_parameter"),
        ({"file_path": "a.html", "mode": "fast"}, "invalid_parameter"),
    ],
)
async def test_add_refuses(knowledge: Agent, readable: Path, arguments: dict[str, object], error: str) -> None:
    (readable / "folder.html").mkdir(exist_ok=True)
    outside = readable.parent / "outside-of-roots.html"
    outside.write_text("secret")
    link = readable / "outside.html"
    if not link.is_symlink():
        link.symlink_to(outside)
    if isinstance(arguments["file_path"], str) and arguments["file_path"]:
        arguments = arguments | {"file_path": str(readable / arguments["file_path"])}
    answer = await knowledge("knowledge-add", **arguments)
    assert answer.failed
    assert (answer["success"], answer["error"]) == (False, error)
    assert "secret" not in json.dumps(answer.json)


PRIVATE_KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nc2VjcmV0\n-----END OPENSSH PRIVATE KEY-----\n"
HIDDEN = "begins with a dot"


@pytest.mark.parametrize(
    ("named", "lies_in", "error"),
    [
        ("link.html", ".ssh/id_rsa", "path_not_allowed"),
        ("link.html", ".ssh/key.html", "path_not_allowed"),
        ("link.html", ".key.html", "path_not_allowed"),
        ("link.html", "docs/.cache/deep/page.html", "path_not_allowed"),
        (".ssh/key.html", ".ssh/key.html", "path_not_allowed"),
        (".hidden.html", ".hidden.html", "path_not_allowed"),
        ("folder/key.html", ".ssh/key.html", "path_not_allowed"),
        ("link.html", "keys/id_rsa", "unsupported_format"),
        ("link.html", "keys/id_rsa.txt", "unsupported_format"),
        ("key.html", "key.html", "unsupported_format"),
        ("key.svg", "key.svg", "unsupported_format"),
        ("key.pdf", "key.pdf", "unsupported_format"),
        ("hardlink.html", "keys/id_rsa", "unsupported_format"),
    ],
)
async def test_add_is_not_led_to_secrets(
    start_mcp: StartMcp, tmp_path: Path, named: str, lies_in: str, error: str
) -> None:
    """The home folder may be read, as it is by default; what is private in it may not, by whatever name."""
    home = tmp_path / "home"
    secret, name = home / lies_in, home / named
    secret.parent.mkdir(parents=True)
    secret.write_text(PRIVATE_KEY)
    if named == "hardlink.html":
        name.hardlink_to(secret)
    elif name.parent.name == "folder":
        name.parent.symlink_to(secret.parent)
    elif name != secret:
        name.symlink_to(secret)
    async with agent(start_mcp(HOME=str(home)).at("knowledge")) as client:
        answer = await client("knowledge-add", file_path=f"~/{named}", **{"async": False})
    assert (answer["success"], answer["error"]) == (False, error)
    assert (HIDDEN in answer["message"]) == (error == "path_not_allowed")
    assert "c2VjcmV0" not in json.dumps(answer.json)


async def test_add_takes_what_is_in_the_open(start_mcp: StartMcp, tmp_path: Path) -> None:
    """Also by a link, and below a hidden folder that was allowed by name."""
    home, notes = tmp_path / "home", tmp_path / "home" / ".notes"
    (home / "docs").mkdir(parents=True)
    notes.mkdir()
    (home / "link.html").symlink_to(page(home / "docs", "Seen through a link"))
    async with agent(start_mcp(HOME=str(home)).at("knowledge")) as client:
        await added(client, Path("~/link.html"))
    async with agent(start_mcp(KB_MCP_FILE_ROOTS=str(notes)).at("knowledge")) as client:
        await added(client, page(notes, "In a folder that was allowed"))


# knowledge-search


async def test_search(knowledge: Agent, readable: Path) -> None:
    path = page(readable, "To configure authentication, first set up the OAuth2 provider of the lighthouse.")
    document_id = await added(knowledge, path, metadata={"author": "Jane"})
    answer = await knowledge("knowledge-search", query="How to configure authentication of the lighthouse?", top_k=5)
    assert answer["query"] == "How to configure authentication of the lighthouse?"
    assert answer["total_results"] == len(answer["results"]) <= 5
    best = answer["results"][0]
    assert (best["document_id"], best["filename"]) == (document_id, path.name)
    assert UUID.fullmatch(best["chunk_id"])
    assert "lighthouse" in best["chunk_text"]
    assert 0 < best["relevance_score"] <= 1
    assert (best["metadata"]["format"], best["metadata"]["author"]) == ("html", "Jane")
    assert best["metadata"]["date_added"].endswith("Z")
    assert answer["search_time_ms"] > 0


async def test_search_with_filters(knowledge: Agent, readable: Path, http: Http) -> None:
    await added(knowledge, page(readable, "Filtered lighthouse keeper"))
    http.add_note("A note about the lighthouse keeper", title="Keeper")
    today = datetime.now(UTC).date().isoformat()
    days = {"start": today, "end": today}
    notes = await knowledge(
        "knowledge-search", query="lighthouse keeper", filters={"format": "note", "date_range": days}
    )
    assert {result["metadata"]["format"] for result in notes["results"]} == {"note"}
    assert "Keeper" in [result["filename"] for result in notes["results"]]
    before = {"date_range": {"start": "2020-01-01", "end": "2020-12-31"}}
    assert (await knowledge("knowledge-search", query="lighthouse", filters=before))["results"] == []
    always = {"date_range": {"start": today, "end": "9999-12-31"}}
    assert (await knowledge("knowledge-search", query="lighthouse", filters=always))["results"]


async def test_search_with_empty_results(knowledge: Agent, readable: Path) -> None:
    await added(knowledge, page(readable, "Something"))
    answer = await knowledge("knowledge-search", query="non-existent topic", min_relevance=1.0)
    assert answer["success"] is True
    assert (answer["results"], answer["total_results"]) == ([], 0)
    assert answer["message"] == "No documents found matching your query"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({}, "missing_required_parameter"),
        ({"query": ""}, "invalid_parameter"),
        ({"query": "  "}, "invalid_parameter"),
        ({"query": "x" * 501}, "invalid_parameter"),
        ({"query": "x", "top_k": 51}, "invalid_parameter"),
        ({"query": "x", "top_k": 0}, "invalid_parameter"),
        ({"query": "x", "min_relevance": 1.5}, "invalid_parameter"),
        ({"query": "x", "filters": {"format": "xyz"}}, "invalid_parameter"),
        ({"query": "x", "filters": {"colour": "red"}}, "invalid_parameter"),
        ({"query": "x", "filters": {"date_range": {"start": "yesterday"}}}, "invalid_parameter"),
        ({"query": "x", "filters": {"date_range": {"start": "2026-11-16garbage"}}}, "invalid_parameter"),
    ],
)
async def test_search_validates_parameters(knowledge: Agent, arguments: dict[str, object], error: str) -> None:
    answer = await knowledge("knowledge-search", **arguments)
    assert (answer["success"], answer["error"]) == (False, error)


# knowledge-remove, knowledge-show


async def test_remove(knowledge: Agent, readable: Path) -> None:
    path = page(readable, "To be removed")
    document_id = await added(knowledge, path)
    about = {"id": document_id, "filename": path.name, "chunks": 1}
    asked = await knowledge("knowledge-remove", document_id=document_id)
    assert asked.json == {
        "success": False,
        "error": "confirmation_required",
        "message": "Set confirm=true to remove this document",
        "document": about,
    }
    removed = await knowledge("knowledge-remove", document_id=document_id, confirm=True)
    assert removed.json == {
        "success": True,
        "document_id": document_id,
        "filename": path.name,
        "chunks_removed": 1,
        "message": "Document removed successfully",
    }
    again = await knowledge("knowledge-remove", document_id=document_id, confirm=True)
    assert again.json == {
        "success": False,
        "error": "document_not_found",
        "message": f"Document with ID '{document_id}' not found",
        "document_id": document_id,
    }


async def test_show(knowledge: Agent, readable: Path) -> None:
    path = page(readable, "To be listed")
    document_id = await added(knowledge, path)
    answer = await knowledge("knowledge-show", limit=1, offset=0, sort_by="date_added", sort_order="desc")
    (first,) = answer["documents"]
    assert first["id"] == document_id
    assert (first["filename"], first["format"], first["size_bytes"]) == (path.name, "html", path.stat().st_size)
    assert (first["chunk_count"], first["processing_status"]) == (1, "completed")
    assert first["processing_method"] == "text_extraction"
    assert (answer["limit"], answer["offset"]) == (1, 0)
    assert answer["total_count"] >= 1
    assert (await knowledge("knowledge-show", sort_by="colour"))["error"] == "invalid_parameter"
    assert (await knowledge("knowledge-show", limit=1001))["error"] == "invalid_parameter"


# knowledge-clear, an empty knowledge base, knowledge-status: on an engine of its own


async def test_clear_and_the_empty_knowledge_base(own: McpProcess, readable: Path) -> None:
    async with agent(own.at("knowledge")) as client:
        shown = await client("knowledge-show")
        assert (shown["documents"], shown["total_count"]) == ([], 0)
        assert shown["message"] == "Knowledge base is empty"
        empty = await client("knowledge-search", query="anything")
        assert empty.json == {
            "success": False,
            "error": "empty_knowledge_base",
            "message": "Knowledge base is empty. Add documents with knowledge-add first",
            "document_count": 0,
        }
        await added(client, page(readable, "To be cleared"))
        assert (await client("knowledge-clear"))["error"] == "missing_required_parameter"
        for wrong in ({"confirm": True, "confirmation_phrase": "delete all"}, {"confirm": False}):
            asked = await client("knowledge-clear", **{"confirmation_phrase": "DELETE ALL"} | wrong)
            assert asked.json == {
                "success": False,
                "error": "confirmation_required",
                "message": "This action will delete ALL documents. Set confirm=true and "
                "confirmation_phrase='DELETE ALL' to proceed",
                "current_document_count": 1,
            }
        cleared = await client("knowledge-clear", confirm=True, confirmation_phrase="DELETE ALL")
        assert cleared["success"] is True
        assert (cleared["documents_removed"], cleared["embeddings_removed"]) == (1, 1)
        assert cleared["storage_freed_mb"] >= 0
        assert cleared["message"] == "Knowledge base cleared successfully"


async def test_status(knowledge: Agent) -> None:
    answer = await knowledge("knowledge-status")
    assert set(answer["knowledge_base"]) == {
        "name",
        "document_count",
        "total_chunks",
        "total_size_bytes",
        "total_size_mb",
        "average_chunks_per_document",
        "storage_path",
        "vector_db_path",
    }
    assert answer["health"]["status"] == "healthy"
    assert answer["health"]["vector_db_connected"] is True
    assert answer["health"]["storage_accessible"] is True
    assert "MiniLM" in answer["configuration"]["embedding_model"]
    assert answer["configuration"]["max_file_size_mb"] == 100


# knowledge-task-status


async def test_task_status_of_a_completed_task(knowledge: Agent, readable: Path, http: Http) -> None:
    path = page(readable, "Followed to its end")
    queued = await knowledge("knowledge-add", file_path=str(path))
    http.ended(queued["task_id"])
    answer = await knowledge("knowledge-task-status", task_id=queued["task_id"])
    assert (answer["success"], answer["status"], answer["progress"]) == (True, "completed", 1.0)
    assert UUID.fullmatch(answer["result"]["document_id"])
    assert (answer["result"]["filename"], answer["result"]["chunks_created"]) == (path.name, 1)
    assert answer["total_time_seconds"] >= 0


async def test_task_status_of_a_failed_task(knowledge: Agent, readable: Path, http: Http) -> None:
    path = readable / f"{uuid4().hex}.html"
    path.write_bytes(b"   \n")  # nothing to read in it
    queued = await knowledge("knowledge-add", file_path=str(path))
    assert http.ended(queued["task_id"])["status"] == "failed"
    answer = await knowledge("knowledge-task-status", task_id=queued["task_id"])
    assert (answer["success"], answer["status"], answer["error"]) == (False, "failed", "no_text")
    assert answer["message"]
    assert answer["elapsed_time_seconds"] >= 0


async def test_task_status_of_no_task(knowledge: Agent) -> None:
    answer = await knowledge("knowledge-task-status", task_id=str(uuid4()))
    assert (answer["success"], answer["error"]) == (False, "task_not_found")
    assert (await knowledge("knowledge-task-status", task_id="42"))["error"] == "invalid_parameter"
    assert (await knowledge("knowledge-task-status"))["error"] == "missing_required_parameter"


async def test_the_engine_is_away(start_mcp: StartMcp) -> None:
    server = start_mcp("http://127.0.0.1:9")
    async with agent(server.at("knowledge")) as client:
        answer = await client("knowledge-search", query="anything")
    assert (answer["success"], answer["error"]) == (False, "engine_unreachable")
    assert "http://127.0.0.1:9" in answer["message"]


# Protocol


async def test_version_negotiation(mcp: McpProcess) -> None:
    params = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    result = Http(mcp.url)("POST", "/mcp/knowledge", message).json["result"]
    assert result["protocolVersion"] == "2025-06-18"
    assert result["capabilities"] == {"tools": {"listChanged": True}, "prompts": {"listChanged": False}}
    assert result["serverInfo"]["name"] == "knowledge-server"


async def test_error_handling(mcp: McpProcess) -> None:
    http = Http(mcp.url, {"Content-Type": "application/json"})
    call = {"jsonrpc": "2.0", "id": 1}
    for raw, code in (
        (b"{", -32700),
        (b"[]", -32600),
        (b'{"jsonrpc": "2.0", "id": 1}', -32600),
        (json.dumps(call | {"method": "tools/dance"}).encode(), -32601),
        (json.dumps(call | {"method": "tools/call", "params": {"name": "knowledge-dance"}}).encode(), -32602),
        (json.dumps(call | {"method": "tools/call", "params": {"name": "x", "arguments": 5}}).encode(), -32602),
    ):
        error = http("POST", "/mcp/knowledge", raw=raw).json["error"]
        assert error["code"] == code, error
        assert set(error["data"]) == {"error_type", "details"}


async def test_http_request_and_response_format(mcp: McpProcess, readable: Path, knowledge: Agent) -> None:
    """One POST with nothing but its Content-Type, answered as JSON."""
    await added(knowledge, page(readable, "plain authentication"))
    arguments = {"query": "authentication", "top_k": 5}
    params = {"name": "knowledge-search", "arguments": arguments}
    message = {"jsonrpc": "2.0", "id": "1", "method": "tools/call", "params": params}
    reply = Http(mcp.url)("POST", "/mcp/knowledge", message)
    assert reply.status == 200
    assert reply.headers["content-type"] == "application/json"
    assert "mcp-session-id" not in reply.headers
    (content,) = reply.json["result"]["content"]
    assert (reply.json["id"], content["type"]) == ("1", "text")
    assert json.loads(content["text"])["success"] is True
