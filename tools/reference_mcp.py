"""docs/mcp.md: every contract as agents see it."""

from collections.abc import Mapping

from mcp_types import Tool

from kb.mcp.app import CONTRACTS
from kb.mcp.contracts.contract import Contract
from tools.reference import anchor, field_table, page, table

INTRODUCTION = """\
The MCP server (`kb mcp`, or `kb up` together with the engine) offers contracts, each at
`http://127.0.0.1:3000/mcp/<name>`; the first of `KB_MCP_CONTRACTS` is at `/mcp` too. The transport is Streamable
HTTP; the same paths take a WebSocket with the same JSON-RPC messages, one to a frame; a single POST without a session
is answered as JSON. With `KB_MCP_API_KEY` set, every request needs `Authorization: Bearer <key>`; only `GET /health`
is open.

A tool answers with `structuredContent` and the same as compact JSON text. What the caller can mend is a result with
`isError`; what is wrong with the protocol is a JSON-RPC error: -32700 not JSON, -32600 not a request, -32601 unknown
method, -32602 unknown tool or malformed parameters, each with `data: {error_type, details}`. An argument that a tool
does not know is refused by name. Messages are at most 4 MB.

An argument that is not required may be null, which is the same as leaving it out, as is an empty string where a string
is expected: clients in strict mode have to give every argument. Numbers and booleans may come as strings (`"5"`,
`"0.2"`, `"true"`)."""


def mcp_page(contracts: Mapping[str, type[Contract]] = CONTRACTS) -> str:
    parts = [INTRODUCTION]
    parts.append(
        table(
            ("Contract", "Tools"),
            [
                (f"[`{name}`](#contract-{anchor(name)})", ", ".join(f"`{tool}`" for tool in contract.tools))
                for name, contract in contracts.items()
            ],
        )
    )
    for name, contract in contracts.items():
        parts += [f"## Contract {name}", contract.instructions]
        offered = [f"prompt `{prompt.name}`: {prompt.description}" for prompt in contract.prompts]
        if contract.resources:
            offered.append("resource `kb://documents/{id}`: a document's text, and a link to its original")
        if contract.cancels_tasks:
            offered.append("method `tools/cancel` with `taskId`, as a request or a notification: stops a task")
        parts.append("\n".join(f"- {line}" for line in offered))
        for tool in contract.tools.values():
            parts += tool_section(tool.listed)
    return page("MCP", *parts)


def tool_section(tool: Tool) -> list[str]:
    hints = tool.annotations
    assert hints is not None
    assert tool.output_schema is not None
    kind = "reads only" if hints.read_only_hint else "may destroy" if hints.destructive_hint else "adds or changes"
    again = "; calling it again changes nothing more" if hints.idempotent_hint and not hints.read_only_hint else ""
    fields = tool.input_schema["properties"]
    return [
        f"### {tool.name}",
        f"{tool.title} ({kind}{again}).",
        # Indented lines would be code to a Markdown reader; a call in an example gets a line of its own.
        (tool.description or "").replace(")\nkb_", ")  \nkb_").replace("}\nkb_", "}  \nkb_"),
        field_table(tool.input_schema) if fields else "No arguments.",
        "Answer: " + ", ".join(f"`{name}`" for name in tool.output_schema["properties"]) + ".",
    ]
