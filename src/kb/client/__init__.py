"""The calls of the REST API, described once for every program that talks to an engine.

It imports `core` only, and only the standard library, so that `kb search` starts at once. Start with `calls.py`.
The command line and the MCP server bring their own way to carry a call.
"""
