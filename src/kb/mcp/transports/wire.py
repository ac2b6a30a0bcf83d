"""JSON-RPC as bytes: what is a message at all, and how an error looks that belongs to none."""

import json
from collections.abc import Mapping
from typing import Any

import pydantic_core
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR

from kb.core.types import Json
from kb.mcp.errors import wire_error

MAX_MESSAGE = 4 * 2**20  # a chunk of 1 MB in base64 fits three times


def parsed(body: bytes | str) -> Json:
    """One JSON-RPC message, or the error that says why it is none."""
    try:
        message = pydantic_core.from_json(body)
    except ValueError as wrong:
        raise wire_error(PARSE_ERROR, f"This is not JSON: {wrong}") from wrong
    if not isinstance(message, dict):
        raise wire_error(INVALID_REQUEST, "A message is one JSON object; batches are not served.")
    if message.get("jsonrpc") != "2.0":
        raise wire_error(INVALID_REQUEST, 'This is not a JSON-RPC request: "jsonrpc" must be "2.0".')
    method, own_id = message.get("method"), message.get("id")
    answer = "result" in message or "error" in message
    if not answer and not isinstance(method, str):
        raise wire_error(INVALID_REQUEST, 'This is not a JSON-RPC request: "method" must be a string.')
    if "id" in message and (isinstance(own_id, bool) or not isinstance(own_id, str | int)):
        raise wire_error(INVALID_REQUEST, 'This is not a JSON-RPC request: "id" must be a string or an integer.')
    if not isinstance(message.get("params", {}), dict):
        raise wire_error(INVALID_PARAMS, "params must be an object.")
    return message


def too_large() -> MCPError:
    return wire_error(
        INVALID_REQUEST,
        f"The message is larger than {MAX_MESSAGE // 2**20} MB. Send files in chunks of 1 MB, or to an upload_url.",
    )


def answer_bytes(own_id: Any, result: Mapping[str, Any]) -> bytes:
    return _bytes({"jsonrpc": "2.0", "id": own_id, "result": result})


def error_bytes(own_id: Any, error: MCPError) -> bytes:
    body = {"code": error.code, "message": error.message, "data": error.data}
    return _bytes({"jsonrpc": "2.0", "id": own_id, "error": body})


def _bytes(message: Json) -> bytes:
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()
