"""`kb serve`: the engine itself. The only command that imports it, and only once it is asked for."""

import argparse
import os
from typing import TYPE_CHECKING, Any

from kb.cli.options import command

if TYPE_CHECKING:
    from kb.cli.options import Commands

EXAMPLES = """
kb serve
kb serve --port 8100 --data-dir ~/kb-work
KB_API_KEY=secret kb serve --host 0.0.0.0
KB_CHUNK_TOKENS=120 kb serve --reindex
"""


def register(commands: "Commands") -> None:
    parser = command(commands, "serve", run, "Run the engine: REST API and background worker.", EXAMPLES, json=False)
    parser.add_argument("--host", metavar="HOST", help="address to listen on (default: KB_HOST)")
    parser.add_argument("--port", type=_port, metavar="PORT", help="port; 0 takes a free one (default: KB_PORT)")
    parser.add_argument("--data-dir", metavar="DIR", help="folder for everything kb keeps (default: KB_DATA_DIR)")
    parser.add_argument(
        "--reindex", action="store_true", help="make the index anew, as another model or chunk size needs"
    )


def _port(text: str) -> int:
    port = int(text)
    if not 0 <= port <= 65535:
        raise argparse.ArgumentTypeError("a port is a number from 0 to 65535")
    return port


def run(args: argparse.Namespace) -> int:
    from dataclasses import replace
    from pathlib import Path

    from kb.settings import read

    given: dict[str, Any] = {
        "host": args.host,
        "port": args.port,
        "data_dir": Path(args.data_dir).expanduser().absolute() if args.data_dir else None,
    }
    settings = replace(read(), **{name: value for name, value in given.items() if value is not None})
    # Read when numpy is imported. One thread scores a question in half a millisecond; several wait for each other, and
    # for the model's threads, up to thirty times as long (docs/decisions/001-store.md).
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        from kb.api.server import serve
    except ModuleNotFoundError as missing:
        if (missing.name or "kb").partition(".")[0] == "kb":
            raise
        from kb.errors import Unavailable

        raise Unavailable(
            f"The engine is not installed here ({missing.name} is missing): pip install 'kb-server[engine]'"
        ) from missing
    return serve(settings, reindex=args.reindex)
