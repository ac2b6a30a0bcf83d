"""JSON-RPC errors: what is wrong with the protocol, as opposed to what a tool cannot do. Their data has one shape."""

from typing import Any

from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR

SERVER_ERROR = -32000
ERROR_TYPES = {
    PARSE_ERROR: "parse_error",
    INVALID_REQUEST: "invalid_request",
    METHOD_NOT_FOUND: "method_not_found",
    INVALID_PARAMS: "invalid_params",
    INTERNAL_ERROR: "internal_error",
}


def wire_error(code: int, message: str, kind: str | None = None, /, **details: Any) -> MCPError:
    return MCPError(code, message, {"error_type": kind or ERROR_TYPES.get(code, "server_error"), "details": details})
