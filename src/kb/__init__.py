"""kb: a private knowledge base that people and AI agents share."""

# The version of engine, client and MCP server alike; pyproject.toml says the same and a test compares them.
__version__ = "3.0.0"
