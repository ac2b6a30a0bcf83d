"""mcp/uploads."""
