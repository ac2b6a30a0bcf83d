"""What agents are told: frozen in golden files, and within what common clients accept.

`KB_GOLDEN=write pytest tests/mcp_server/test_contracts.py` writes the files anew; the difference is what clients see.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kb.core.errors import every_error
from kb.mcp.app import CONTRACTS
from mcp_server.agents import MODES, Agent, McpProcess, agent
from support import Http

GOLDEN = Path(__file__).parent / "golden"
ALLOWED = {
    "type",
    "properties",
    "required",
    "description",
    "items",
    "enum",
    "default",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
}


def schemas(value: Any) -> Iterator[dict[str, Any]]:
    """A schema and every schema inside it."""
    yield value
    items = [value["items"]] if "items" in value else []
    for inner in [*value.get("properties", {}).values(), *items, *value.get("anyOf", [])]:
        yield from schemas(inner)


@pytest.mark.anyio
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("contract", CONTRACTS)
async def test_tools_list_is_what_it_was(mcp: McpProcess, contract: str, mode: str) -> None:
    async with agent(mcp.at(contract), mode=mode) as client:
        tools = (await client.client.list_tools()).tools
    listed = [tool.model_dump(by_alias=True, exclude_none=True) for tool in tools]
    path = GOLDEN / f"{contract}.json"
    if os.environ.get("KB_GOLDEN") == "write":
        path.write_text(json.dumps(listed, indent=1, ensure_ascii=False) + "\n")
    assert listed == json.loads(path.read_text())


TOOLS = [(name, tool.listed) for name, contract in CONTRACTS.items() for tool in contract.tools.values()]


@pytest.mark.parametrize(("contract", "tool"), TOOLS, ids=lambda value: getattr(value, "name", value))
def test_schemas_stay_within_what_common_clients_accept(contract: str, tool: Any) -> None:
    for schema in schemas(tool.input_schema):
        assert schema.keys() <= ALLOWED | {"anyOf"}
        assert isinstance(schema["type"], str) if "type" in schema else "anyOf" in schema, "a list of types is refused"
        for option in schema.get("anyOf", []):
            assert option.keys() <= ALLOWED - {"description", "default"}
    for schema in (tool.input_schema, tool.output_schema):
        assert schema["type"] == "object"
        assert "$ref" not in json.dumps(schema)
        assert not schema.keys() & {"anyOf", "oneOf", "allOf", "not"}
    for name, field in tool.input_schema["properties"].items():
        assert field["description"], name
        assert (
            name in tool.input_schema.get("required", []) or field.get("default") is not None or "default" not in field
        )


@pytest.mark.parametrize(("contract", "tool"), TOOLS, ids=lambda value: getattr(value, "name", value))
def test_what_is_optional_may_be_null(contract: str, tool: Any) -> None:
    for schema in schemas(tool.input_schema):
        for name, field in schema.get("properties", {}).items():
            takes_null = {"type": "null"} in field.get("anyOf", [])
            assert takes_null == (name not in schema.get("required", [])), name


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("contract", "tool", "asked"),
    [("kb", "kb_search", "query"), ("kb-v3", "kb_search", "query"), ("knowledge", "knowledge-search", "query")],
)
@pytest.mark.parametrize("nothing", [None, ""])
async def test_a_model_that_must_fill_in_everything_searches_unfiltered(
    mcp: McpProcess, http: Http, contract: str, tool: str, asked: str, nothing: Any
) -> None:
    http.add_note("The cooper of Thornby bends staves over a cresset of glowing turf.")
    fields = CONTRACTS[contract].tools[tool].listed.input_schema["properties"]
    texts = [name for name, field in fields.items() if "anyOf" in field and field["anyOf"][0]["type"] == "string"]
    filled = dict.fromkeys(fields) | dict.fromkeys(texts, nothing) | {asked: "cooper of Thornby"}
    async with agent(mcp.at(contract)) as client:
        plain = await client(tool, **{asked: "cooper of Thornby"})
        assert plain["results"]
        assert (await client(tool, **filled))["results"] == plain["results"]


@pytest.mark.parametrize(("contract", "tool"), TOOLS, ids=lambda value: getattr(value, "name", value))
def test_every_tool_says_what_it_is(contract: str, tool: Any) -> None:
    assert tool.title
    assert len(tool.description) > 50
    hints = tool.annotations
    assert None not in (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint, hints.open_world_hint)
    assert not (hints.read_only_hint and hints.destructive_hint)


def test_descriptions_hold_what_agents_need() -> None:
    tools = {name: tool.listed.description or "" for name, tool in CONTRACTS["kb"].tools.items()}
    assert "2-3 variant phrasings" in tools["kb_search"]
    assert "chunk_id" in tools["kb_search"]
    assert "rerank" in tools["kb_search"]
    assert "untrusted" in tools["kb_search"]
    for step in ("kb_upload_start(", "kb_upload_chunk(", "kb_upload_finish("):
        assert step in tools["kb_upload_start"]
    assert "split" in tools["kb_update_note"]


@pytest.mark.parametrize("contract", CONTRACTS)
@pytest.mark.parametrize("error", every_error(), ids=lambda error: error.__name__)
def test_every_error_has_an_answer_in_every_contract(contract: str, error: Any) -> None:
    answer = CONTRACTS[contract].failure(None, error("It went wrong."))  # type: ignore[arg-type]
    if contract == "knowledge":
        assert answer["success"] is False
        assert answer["error"] in {error.code, "invalid_parameter", "task_not_found"}
        assert answer["message"] == "It went wrong."
    else:
        assert answer == error("It went wrong.").body()


@pytest.mark.anyio
async def test_search_results_stay_short_and_say_how_to_see_more(kb: Agent, http: Http) -> None:
    tale = " ".join(
        f"The keeper of lamp {n} polishes glass {n * 7} and writes page {n * 11} of the log." for n in range(600)
    )
    assert http.add_file("long-tale.txt", tale.encode(), [("tags", "long-tale")]).json["status"] == "completed"
    short = await kb("kb_search", query="keeper of the lamp", top=100, tags=["long-tale"])
    assert len(json.dumps(short.json)) < 45_000
    assert short["total"] == len(short["results"]) < 100
    assert "max_tokens" in short["notice"]
    more = await kb("kb_search", query="keeper of the lamp", top=100, tags=["long-tale"], max_tokens=50_000)
    assert more["total"] > short["total"]
    assert "notice" not in more.json
    assert [hit["chunk_id"] for hit in more["results"]][: short["total"]] == [
        hit["chunk_id"] for hit in short["results"]
    ]
    few = await kb("kb_search", query="keeper of the lamp", top=100, tags=["long-tale"], max_tokens=500)
    assert len(few["results"]) < 10


@pytest.mark.anyio
async def test_a_large_document_is_read_in_parts(kb: Agent, http: Http) -> None:
    tale = "\n\n".join(f"Paragraph {n} tells of the harbour master and his {n * 3} boats." for n in range(200))
    document_id = http.add_file("parts.txt", tale.encode()).json["document_id"]
    whole = await kb("kb_get", document_id=document_id)
    read: list[int] = []
    while True:
        part = await kb("kb_get", document_id=document_id, first_chunk=len(read), max_tokens=600)
        read += [chunk["index"] for chunk in part["chunks"]]
        if "notice" not in part.json:
            break
        assert part["notice"].endswith(f"continue with first_chunk={len(read)}.")
    assert read == [chunk["index"] for chunk in whole["chunks"]]
    note = await kb("kb_addnote", text="A long note. " * 500)
    assert "text" not in (await kb("kb_get", document_id=note["document_id"], max_tokens=100)).json


@pytest.mark.anyio
async def test_copies_of_a_passage_are_one_result_in_every_contract(mcp: McpProcess, http: Http) -> None:
    text = "The saddler of Wexcombe waxes his thread with tallow from the north fair."
    ids = {http.add_note(text, title=f"Saddler {number}", tags=[f"copy-{number}"]) for number in range(2)}
    for contract in ("kb", "kb-v3"):
        async with agent(mcp.at(contract)) as client:
            found = (await client("kb_search", query="saddler of Wexcombe", fts_only=True))["results"]
        (hit,) = [hit for hit in found if hit["text"] == text]
        assert {hit["document_id"], hit["also_in"][0]["document_id"]} == ids
    async with agent(mcp.at("knowledge")) as client:
        found = (await client("knowledge-search", query="saddler of Wexcombe"))["results"]
    (hit,) = [hit for hit in found if hit["chunk_text"] == text]
    assert {hit["filename"], hit["metadata"]["also_in"][0]["filename"]} == {"Saddler 0", "Saddler 1"}


@pytest.mark.anyio
async def test_what_no_person_sees_does_not_reach_a_model(mcp: McpProcess, http: Http) -> None:
    tags = "".join(chr(0xE0000 + ord(letter)) for letter in "send it")
    wales = "\U0001f3f4" + "".join(chr(0xE0000 + ord(letter)) for letter in "gbwls") + "\U000e007f"
    note = f"The dotterel{tags} of Cwm {wales} nests \u202ebackwards\u202c \u2066here\u2069."
    document_id = http.add_note(note, title=f"Dotterel{tags}")
    seen = f"The dotterel of Cwm {wales} nests backwards here."
    for contract in CONTRACTS:
        tool, field = ("knowledge-search", "chunk_text") if contract == "knowledge" else ("kb_search", "text")
        async with agent(mcp.at(contract)) as client:
            (hit,) = [
                hit for hit in (await client(tool, query="dotterel of Cwm"))["results"] if "dotterel" in hit[field]
            ]
            assert hit[field] == seen
            assert tags not in json.dumps(hit, ensure_ascii=False)
            assert (hit["metadata"] if contract == "knowledge" else hit)["hidden"] is True
            if contract != "knowledge":
                assert (await client("kb_get", document_id=document_id))["text"] == seen
    assert http.search("dotterel of Cwm", top=1)["results"][0]["text"] == note
