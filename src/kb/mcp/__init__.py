"""The MCP server: contracts for agents over one engine, which it reaches through the client only."""
