"""The scenarios of the later specification: the default contract knows nothing of collections."""

import json

import pytest
from mcp.shared.exceptions import MCPError

from mcp_server.agents import MODES, Agent, McpProcess, agent
from support import Http

pytestmark = pytest.mark.anyio


async def test_search_results_show_all_tags(kb: Agent, http: Http) -> None:
    http.add_note("A result with three tags", tags=["agent:mybot", "collection:documents", "draft"])
    found = await kb("kb_search", query="result with three tags", tags=["draft", "agent:mybot"])
    assert sorted(found["results"][0]["tags"]) == ["agent:mybot", "collection:documents", "draft"]


async def test_kb_set_collection_no_longer_exists(kb: Agent) -> None:
    with pytest.raises(MCPError, match="Unknown tool") as refused:
        await kb.client.session.call_tool("kb_set_collection", {"document_id": 1, "collection": "memory"})
    assert refused.value.code == -32602
    assert refused.value.data["error_type"] == "invalid_params"


async def test_filter_by_tag_instead_of_collection(kb: Agent) -> None:
    await kb("kb_addnote", text="Filtered by its tag", tags=["agent:filtered"])
    await kb("kb_addnote", text="Filtered by another tag", tags=["agent:other"])
    found = await kb("kb_search", query="filtered by its tag", tags=["agent:filtered"])
    assert [result["text"] for result in found["results"]] == ["Filtered by its tag"]
    assert "collection" not in json.dumps(found.json)


async def test_add_note_with_explicit_tags(kb: Agent, http: Http) -> None:
    added = await kb("kb_addnote", text="hello", tags=["agent:mybot", "memory"])
    tags = http("GET", f"/api/v1/documents/{added['document_id']}").json["tags"]
    assert sorted(tags) == ["agent:mybot", "memory"]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("kb_search", {"query": "x"}),
        ("kb_addnote", {"text": "x"}),
        ("kb_upload_start", {"filename": "a.txt", "total_size": 1}),
    ],
)
async def test_tools_without_collection_parameter(kb: Agent, tool: str, arguments: dict[str, object]) -> None:
    answer = await kb(tool, **arguments, collection="memory")
    assert answer.failed
    assert "'collection' is not an argument" in answer["error"]["message"]


async def test_kb_update_note_and_kb_get_without_collection_processing(kb: Agent, http: Http) -> None:
    document_id = http.add_note("As the engine has it", tags=["collection:memory", "as-is"])
    updated = await kb("kb_update_note", document_id=document_id, text="Still as the engine has it")
    read = await kb("kb_get", document_id=document_id)
    assert read.json == http("GET", f"/api/v1/documents/{document_id}").json
    for document in (updated, read):
        assert sorted(document["tags"]) == ["as-is", "collection:memory"]
        assert "collection" not in document.json


@pytest.mark.parametrize("mode", MODES)
async def test_there_is_no_trace_of_collections(mcp: McpProcess, mode: str) -> None:
    async with agent(mcp.at("kb"), mode=mode) as client:
        tools = await client.client.list_tools()
        prompts = await client.client.list_prompts()
    assert "collection" not in (tools.model_dump_json() + prompts.model_dump_json()).lower()
