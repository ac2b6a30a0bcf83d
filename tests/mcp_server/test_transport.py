"""Ways in and out: who is refused, what a message may be, WebSockets, revisions, sessions, and a graceful end."""

import json
import signal
from typing import Any

import anyio
import pytest
from mcp_types.version import KNOWN_PROTOCOL_VERSIONS
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from mcp_server.agents import MODES, Agent, McpProcess, agent
from mcp_server.conftest import StartMcp
from support import Http

pytestmark = pytest.mark.anyio

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
ACCEPT = "application/json, text/event-stream"
META = {
    "io.modelcontextprotocol/protocolVersion": KNOWN_PROTOCOL_VERSIONS[-1],
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def initialize(version: str = "2025-06-18") -> dict[str, Any]:
    about = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    return {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": about}


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}


def test_health_is_open(start_mcp: StartMcp) -> None:
    server = start_mcp(KB_MCP_API_KEY="secret", KB_MCP_CONTRACTS="kb")
    reply = Http(server.url)("GET", "/health")
    assert (reply.status, reply.json["status"]) == (200, "ok")
    assert Http(server.url)("POST", "/mcp", PING).status == 401
    assert Http(server.url, {"Authorization": "Bearer secret"})("POST", "/mcp/knowledge", PING).status == 404


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:3000"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:5173"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
@pytest.mark.parametrize("path", ["/mcp", "/mcp/knowledge", "/health", "/uploads/x"])
def test_foreign_hosts_and_origins_are_refused(mcp: McpProcess, headers: dict[str, str], path: str) -> None:
    reply = Http(mcp.url, headers)("POST", path, PING)
    assert (reply.status, reply.json["error"]["code"]) == (403, "forbidden")
    assert Http(mcp.url)("POST", "/mcp", PING).json == {"jsonrpc": "2.0", "id": 1, "result": {}}


def test_the_own_origin_and_an_allowed_host_are_let_in(start_mcp: StartMcp, mcp: McpProcess) -> None:
    assert Http(mcp.url, {"Origin": mcp.url, "Sec-Fetch-Site": "same-origin"})("POST", "/mcp", PING).status == 200
    server = start_mcp(KB_MCP_ALLOWED_HOSTS="kb.example")
    named = {"Host": "kb.example", "Origin": "https://kb.example"}
    assert Http(server.url, named)("POST", "/mcp", PING).status == 200


def test_only_json_is_taken(mcp: McpProcess) -> None:
    """A page can send anything else to localhost without asking."""
    reply = Http(mcp.url)("POST", "/mcp", raw=json.dumps(PING).encode(), Content_Type="text/plain")
    assert reply.status == 415


def test_a_message_of_5_mb_is_refused(mcp: McpProcess) -> None:
    http = Http(mcp.url)
    reply = http("POST", "/mcp", call("kb_addnote", text="x" * 5 * 2**20))
    assert reply.status == 413
    assert "4 MB" in reply.json["error"]["message"]
    assert http("POST", "/mcp", PING).status == 200


async def test_a_websocket_frame_of_5_mb_is_refused(mcp: McpProcess) -> None:
    async with connect(mcp.url.replace("http", "ws") + "/mcp") as socket:
        with pytest.raises(ConnectionClosed):
            await socket.send(json.dumps(call("kb_addnote", text="x" * 5 * 2**20)))
            await socket.recv()
    assert Http(mcp.url)("POST", "/mcp", PING).status == 200


@pytest.mark.parametrize(
    ("contract", "tool", "arguments"),
    [
        ("kb", "kb_get", {"document_id": "3f0e7e0e-1111-4222-8333-444455556666"}),
        ("kb", "kb_update_note", {"document_id": "memory", "text": "x"}),
        ("kb", "kb_get", {"document_id": 10**30}),
        ("kb", "kb_get", {"document_id": True}),
        ("kb-v3", "kb_set_collection", {"document_id": "one", "collection": "memory"}),
        ("knowledge", "knowledge-remove", {"document_id": "1", "confirm": True}),
        ("knowledge", "knowledge-remove", {"document_id": 1, "confirm": True}),
        ("knowledge", "knowledge-task-status", {"task_id": "1"}),
        ("kb", "kb_upload_chunk", {"upload_id": "x", "data": "AAAA", "chunk_index": 10**9}),
        ("kb", "kb_upload_chunk", {"upload_id": "x", "data": "AAAA", "chunk_index": -1}),
        ("kb", "kb_search", {"query": "x", "top": 101}),
        ("kb", "kb_search", {"query": "x", "fts_only": "yes"}),
        ("kb", "kb_search", {"query": "x", "fts_only": 1}),
        ("kb", "kb_search", {"query": "x", "top": "five"}),
        ("kb", "kb_search", {"query": "x", "top": "5.5"}),
        ("kb", "kb_search", {"query": "x", "top": "101"}),
        ("kb", "kb_search", {"query": "x", "top": True}),
        ("kb", "kb_search", {"query": "x", "min_score": "0,2"}),
        ("kb", "kb_search", {"query": "x", "min_score": "nan"}),
        ("kb", "kb_search", {"query": ""}),
        ("kb", "kb_search", {"query": None}),
        ("kb", "kb_update_note", {"document_id": 1, "text": "x", "expected_version": ""}),
    ],
)
async def test_what_cannot_be_is_refused(mcp: McpProcess, contract: str, tool: str, arguments: dict[str, Any]) -> None:
    async with agent(mcp.at(contract)) as client:
        answer = await client(tool, **arguments)
        assert answer.failed
        assert answer["error"]["message"] if contract.startswith("kb") else answer["message"]
        assert (await client.client.list_tools()).tools, "the server is alive"


async def test_numbers_without_integers_and_nulls_are_understood(kb: Agent) -> None:
    assert not (await kb("kb_search", query="x", top=5.0, tags=None, doc_type=None)).failed
    assert (await kb("kb_search", query="x", top=5.5)).failed
    assert not (await kb("kb_search", query="x", top="5", min_score="0.2", fts_only="true")).failed
    assert not (await kb("kb_search", query="5", top=" 5.0 ", min_score="1e-1", fts_only="False")).failed
    assert len((await kb("kb_search", query="x", top="1"))["results"]) <= 1
    assert "'color' is not an argument" in (await kb("kb_search", query="x", color=None))["error"]["message"]


@pytest.mark.parametrize("version", KNOWN_PROTOCOL_VERSIONS[:-1])
def test_every_revision_of_the_handshake_is_spoken(mcp: McpProcess, version: str) -> None:
    opened = Http(mcp.url)("POST", "/mcp", initialize(version), Accept=ACCEPT)
    assert f'"protocolVersion":"{version}"' in opened.body.decode()
    session = {"Mcp-Session-Id": opened.headers["mcp-session-id"], "Accept": ACCEPT, "Mcp-Protocol-Version": version}
    http = Http(mcp.url, session)
    http("POST", "/mcp", {"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert "kb_search" in http("POST", "/mcp", {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}).body.decode()
    assert http("DELETE", "/mcp").status == 200
    assert http("POST", "/mcp", PING).status == 404


@pytest.mark.parametrize(("name", "status"), [("kb_status", 200), (" \t kb_status \t ", 200), ("kb_search", 400)])
def test_the_header_that_names_the_tool_is_compared_without_the_space_around_it(
    mcp: McpProcess, name: str, status: int
) -> None:
    message = call("kb_status")
    message["params"]["_meta"] = META
    headers = {"Accept": ACCEPT, "Mcp-Protocol-Version": KNOWN_PROTOCOL_VERSIONS[-1], "Mcp-Method": "tools/call"}
    assert Http(mcp.url, headers | {"Mcp-Name": name})("POST", "/mcp", message).status == status


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("contract", ["", "/kb", "/knowledge", "/kb-v3"])
async def test_the_official_client_reaches_every_contract(mcp: McpProcess, contract: str, mode: str) -> None:
    async with agent(f"{mcp.url}/mcp{contract}", mode=mode) as client:
        names = [tool.name for tool in (await client.client.list_tools()).tools]
        assert ("knowledge-add" if contract == "/knowledge" else "kb_search") in names


@pytest.mark.parametrize("hello", [True, False])
async def test_websocket_carries_the_same_messages(mcp: McpProcess, hello: bool) -> None:
    async with connect(f"{mcp.url.replace('http', 'ws')}/mcp/knowledge", subprotocols=["mcp"]) as socket:  # type: ignore[list-item]
        assert socket.subprotocol == "mcp"
        if hello:
            await socket.send(json.dumps(initialize()))
            assert json.loads(await socket.recv())["result"]["serverInfo"]["name"] == "knowledge-server"
            await socket.send(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        await socket.send(json.dumps(call("knowledge-status")))
        answer = json.loads(await socket.recv())
        assert (answer["id"], answer["result"]["structuredContent"]["success"]) == (7, True)
        await socket.send("{")
        assert json.loads(await socket.recv())["error"]["code"] == -32700
        await socket.send("[]")
        assert json.loads(await socket.recv())["error"]["code"] == -32600
        await socket.send('{"jsonrpc": "2.0", "id": 1, "result": 5}')
        assert json.loads(await socket.recv())["error"]["code"] == -32600
        await socket.send(json.dumps(PING | {"method": "tools/dance"}))
        assert json.loads(await socket.recv())["error"]["code"] == -32601


async def test_websocket_speaks_the_revision_without_a_handshake(mcp: McpProcess) -> None:
    async with connect(f"{mcp.url.replace('http', 'ws')}/mcp") as socket:
        await socket.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": META}}))
        answer = json.loads(await socket.recv())
        assert "kb_search" in [tool["name"] for tool in answer["result"]["tools"]]


async def test_websocket_passes_the_same_checks(start_mcp: StartMcp) -> None:
    server = start_mcp(KB_MCP_API_KEY="secret")
    place = server.url.replace("http", "ws") + "/mcp"
    key = {"Authorization": "Bearer secret"}
    for headers, status in (
        ({}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        (key | {"Origin": "https://evil.example"}, 403),
        (key | {"Origin": "http://localhost:5173"}, 403),
        (key | {"Sec-Fetch-Site": "same-site"}, 403),
    ):
        with pytest.raises(InvalidStatus) as refused:
            async with connect(place, additional_headers=headers):
                pass
        assert refused.value.response.status_code == status
    async with connect(place, additional_headers=key | {"Origin": server.url}) as socket:
        await socket.send(json.dumps(PING))
        assert json.loads(await socket.recv()) == {"jsonrpc": "2.0", "id": 1, "result": {}}


async def test_the_end_is_graceful_with_streams_open(start_mcp: StartMcp) -> None:
    server = start_mcp()
    async with agent(server.at()) as client:
        await client("kb_status")
        async with connect(server.url.replace("http", "ws") + "/mcp") as socket:
            await socket.send(json.dumps(PING))
            await socket.recv()
            assert await anyio.to_thread.run_sync(server.stop, signal.SIGINT) == 0
    assert "Traceback" not in server.log.read_text()


def test_an_open_server_on_the_network_is_warned_about(start_mcp: StartMcp) -> None:
    assert "set KB_MCP_API_KEY" in start_mcp(KB_MCP_HOST="0.0.0.0").log.read_text()
    assert "set KB_MCP_API_KEY" not in start_mcp(KB_MCP_HOST="0.0.0.0", KB_MCP_API_KEY="k").log.read_text()


async def test_resources_and_prompts(kb: Agent) -> None:
    added = await kb("kb_addnote", text="As a resource", tags=["resource"])
    uri = f"kb://documents/{added['document_id']}"
    listed = await kb.client.list_resources()
    assert uri in [resource.uri for resource in listed.resources]
    templates = await kb.client.list_resource_templates()
    assert [template.uri_template for template in templates.resource_templates] == ["kb://documents/{id}"]
    text, link = (await kb.client.read_resource(uri)).contents
    assert text.text == "As a resource"  # type: ignore[union-attr]
    assert link.text.endswith(f"/api/v1/documents/{added['document_id']}/original")  # type: ignore[union-attr]
    with pytest.raises(Exception, match="There is no resource"):
        await kb.client.read_resource("kb://documents/999999999")
    names = [prompt.name for prompt in (await kb.client.list_prompts()).prompts]
    assert names == ["search-thoroughly", "remember"]
    for name, argument in (("search-thoroughly", "question"), ("remember", "fact")):
        message = (await kb.client.get_prompt(name, {argument: "the {boiler}"})).messages[0]
        assert "the {boiler}" in message.content.text  # type: ignore[union-attr]
        with pytest.raises(Exception, match="is required"):
            await kb.client.get_prompt(name, {})
