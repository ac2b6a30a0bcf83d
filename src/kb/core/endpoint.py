"""The settings that the command line needs to reach the engine.

Importing `kb.core.settings`, which declares all of them, would double the time of `kb search`.
"""

import os
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from kb.core import config_file
from kb.core.errors import InvalidRequest

NAMES = {"KB_ENGINE_URL", "KB_HOST", "KB_PORT", "KB_API_KEY"}
HOST, PORT = "127.0.0.1", 8000
ENGINE_URL = f"http://{HOST}:{PORT}"
ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - what it listens on is not where it is reached

Value = TypeVar("Value")


class Place(NamedTuple):
    engine_url: str
    api_key: str


def place() -> Place:
    """What KB_ENGINE_URL and KB_API_KEY say, or else KB_HOST and KB_PORT; an empty variable counts as unset."""
    file = config_file.read()
    if not (file.values.keys() <= NAMES and file.values.get("KB_PORT", "0").isdecimal()):
        from kb.core.settings import check  # noqa: PLC0415 - see above: only a file with more in it pays for it

        check(file)

    def said(name: str) -> str:
        return os.environ.get(name) or file.values.get(name, "")

    url = said("KB_ENGINE_URL")
    if not url:
        port = said("KB_PORT")
        url = reached(said("KB_HOST") or HOST, parsed("KB_PORT", port, port_number) if port else PORT)
    return Place(url, said("KB_API_KEY"))


def parsed(name: str, text: str, parse: Callable[[str], Value]) -> Value:
    """The value of a setting; an error names the setting, what it says and what is expected."""
    try:
        return parse(text)
    except ValueError as wrong:
        raise InvalidRequest(f"{name} is {text!r}, which cannot be used: {wrong}.") from wrong


def port_number(text: str) -> int:
    if not (text.isdecimal() and text.isascii() and len(text) <= 5 and int(text) <= 65535):
        raise ValueError("a port is a number from 0 to 65535")
    return int(text)


def addresses(engine_url: str) -> list[str]:
    """Each address that KB_ENGINE_URL names."""
    return [url for part in engine_url.split(",") if (url := part.strip())] or [engine_url]


def reached(host: str, port: int) -> str:
    """The address under which this machine reaches a server that listens there."""
    name = ANY_ADDRESS.get(host, host)
    return f"http://{f'[{name}]' if ':' in name else name}:{port}"
