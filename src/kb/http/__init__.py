"""What the engine and the MCP server share in front of their routes: access checks, the HTTP protocol, logs.

It imports `core` only. Start with `guard.py`: every request passes it first. `access.py` has its checks of Host,
Origin and key. `serve.py` runs an application on a port until it is told to stop.
"""
