"""mcp/transports."""
