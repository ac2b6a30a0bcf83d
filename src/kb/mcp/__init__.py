"""The MCP server: contracts for agents over one engine, which it reaches through the client only.

It imports `core`, `client` and `http`, never the engine's side. Start with `app.py`. `contracts/` has the tools that
agents see, `transports/` the ways in, `uploads/` files on their way to the engine, `sdk.py` what MCP's methods mean.
"""
