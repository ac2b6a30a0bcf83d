"""Where the engine is, for programs that start often and must start at once.

`kb.settings` declares every setting and checks them all, which takes as long as the rest of `kb search` together. The
command line needs two of them to reach the engine.
"""

import os
from typing import NamedTuple

ENGINE_URL = "http://127.0.0.1:8000"
ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - what it listens on is not where it is reached


class Place(NamedTuple):
    engine_url: str
    api_key: str


def place() -> Place:
    """What KB_ENGINE_URL and KB_API_KEY say; an empty variable counts as unset."""
    return Place(os.environ.get("KB_ENGINE_URL") or ENGINE_URL, os.environ.get("KB_API_KEY", ""))


def reached(host: str, port: int) -> str:
    """The address under which this machine reaches a server that listens there."""
    name = ANY_ADDRESS.get(host, host)
    return f"http://{f'[{name}]' if ':' in name else name}:{port}"
