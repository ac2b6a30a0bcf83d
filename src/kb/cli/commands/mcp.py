"""`kb mcp`: the MCP server, which needs nothing of the engine but its address."""

import argparse

from kb.cli.options import Commands, add_address, command, installed

EXAMPLES = """
kb mcp
KB_ENGINE_URL=http://engine:8000 KB_API_KEY=secret kb mcp
KB_MCP_API_KEY=other kb mcp --host 0.0.0.0 --port 3100
"""


def register(commands: Commands) -> None:
    parser = command(commands, "mcp", run, EXAMPLES, json=False)
    add_address(parser, "KB_MCP_HOST", "KB_MCP_PORT")


def run(args: argparse.Namespace) -> int:
    from dataclasses import replace

    from kb.core.settings import read

    given = {"mcp_host": args.host, "mcp_port": args.port}
    settings = replace(read(), **{name: value for name, value in given.items() if value is not None})
    with installed("The MCP server", "mcp"):
        from kb.mcp.server import serve
    return serve(settings)
