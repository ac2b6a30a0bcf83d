"""`kb serve`: the engine. The only command that imports it, inside its function."""

import argparse
from typing import Any

from kb.cli.options import Commands, add_address, command, installed

EXAMPLES = """
kb serve
kb serve --port 8100 --data-dir ~/kb-work
KB_API_KEY=secret kb serve --host 0.0.0.0
KB_CHUNK_TOKENS=120 kb serve --reindex
"""


def register(commands: Commands) -> None:
    parser = command(commands, "serve", run, EXAMPLES, json=False)
    add_address(parser, "KB_HOST", "KB_PORT")
    parser.add_argument("--data-dir", metavar="DIR", help="folder for everything kb keeps (default: KB_DATA_DIR)")
    parser.add_argument(
        "--reindex", action="store_true", help="make the index anew, as another model or chunk size needs"
    )


def run(args: argparse.Namespace) -> int:
    from dataclasses import replace
    from pathlib import Path

    from kb.core.settings import read

    given: dict[str, Any] = {
        "host": args.host,
        "port": args.port,
        "data_dir": Path(args.data_dir).expanduser().absolute() if args.data_dir else None,
    }
    settings = replace(read(), **{name: value for name, value in given.items() if value is not None})
    with installed("The engine", "engine"):
        from kb.api.server import serve
    return serve(settings, reindex=args.reindex)
