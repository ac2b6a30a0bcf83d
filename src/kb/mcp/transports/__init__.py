"""The ways in to the MCP server: Streamable HTTP, one plain POST, WebSockets."""
