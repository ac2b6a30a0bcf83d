"""What the engine and the MCP server share in front of their routes: access checks, the HTTP protocol, logs.

It imports `core` only. Start with `access.py`: Host, Origin and key are checked before anything else. `serve.py`
runs an application on a port until it is told to stop.
"""
