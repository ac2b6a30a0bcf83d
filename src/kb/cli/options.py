"""What commands share: declaration, common options, the client, JSON on stdout."""

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from kb.cli.commands.table import COMMANDS
from kb.core.errors import InvalidRequest, Unavailable

if TYPE_CHECKING:
    from kb.cli.transport import SocketClient

INTERRUPTED = 130  # what a shell reports after Ctrl-C


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Asks the terminal for its width: argparse would import shutil, and with it every archive format."""

    def __init__(self, prog: str) -> None:
        try:
            columns = int(os.environ.get("COLUMNS") or os.get_terminal_size().columns)
        except (OSError, ValueError):
            columns = 80
        super().__init__(prog, width=max(columns, 40) - 2)


class Parser(argparse.ArgumentParser):
    """A parser whose complaints are errors like any other: one sentence, or a JSON body."""

    def error(self, message: str) -> NoReturn:
        raise InvalidRequest(f"{message}; see: {self.prog} --help")


Commands: TypeAlias = "argparse._SubParsersAction[Parser]"  # in quotes: it is generic for a type checker only
Run = Callable[[argparse.Namespace], int]


def command(commands: Commands, name: str, run: Run, examples: str, *, json: bool = True) -> Parser:
    """Declare a command; its examples are part of its help and of the reference page."""
    summary = COMMANDS[name].summary
    parser = commands.add_parser(
        name,
        help=summary,
        description=summary,
        epilog="examples:\n" + "\n".join(f"  {line}" for line in examples.strip().splitlines()),
        formatter_class=Formatter,
        allow_abbrev=False,
    )
    if json:
        parser.add_argument("-j", "--json", action="store_true", help="print the engine's answer as JSON")
    parser.set_defaults(run=run, parser=parser)
    return parser


def add_tags(parser: Parser, text: str) -> None:
    """`--tags a,b --tag c`: repeatable, separated by commas; None when it was not given."""
    parser.add_argument(
        "-t", "--tags", "--tag", dest="tags", metavar="TAGS", type=split_tags, action="extend", help=text
    )


def add_filters(parser: Parser) -> None:
    """Which documents a search or a list is about."""
    add_tags(parser, "only documents that have all of these tags; repeatable, separated by commas")
    parser.add_argument("--type", dest="doc_type", metavar="TYPE", help="only this type, such as note or pdf")
    parser.add_argument("-p", "--path", metavar="PATH", help="only what came from this file, or from below this folder")
    parser.add_argument("--after", metavar="TIME", help="created at or after this time, such as 2026-01-31")
    parser.add_argument("--before", metavar="TIME", help="created before this time")


def path_filter(path: str | None) -> str | None:
    """A path of this machine as the engine knows it; a folder ends with a slash. Any other text stays as it is."""
    if path is None or not os.path.exists(path):
        return path
    whole = os.path.realpath(path)
    return f"{whole.rstrip('/')}/" if os.path.isdir(whole) else whole


def add_replacing(parser: Parser) -> None:
    """`--replace-tags` and `--force`, for commands that add what may be there already."""
    parser.add_argument(
        "--replace-tags",
        action="store_true",
        help="replace the tags of a known document by the given ones (default: add them)",
    )
    parser.add_argument(
        "--force", action="store_true", help="replace a text that was edited in kb since; its versions stay"
    )


def split_tags(text: str) -> list[str]:
    return [tag.strip() for tag in text.split(",") if tag.strip()]


def add_no_wait(parser: Parser) -> None:
    parser.add_argument(
        "--no-wait", action="store_true", help="return once the engine has accepted it, before it is searchable"
    )


def add_address(parser: Parser, host: str, port: str) -> None:
    """`--host` and `--port` of a command that serves; the settings behind them are named."""
    parser.add_argument("--host", metavar="HOST", help=f"address to listen on (default: {host})")
    parser.add_argument("--port", type=_port, metavar="PORT", help=f"port; 0 takes a free one (default: {port})")


def _port(text: str) -> int:
    from kb.core.endpoint import port_number

    try:
        return port_number(text)
    except ValueError as wrong:
        raise argparse.ArgumentTypeError(f"{text!r} cannot be used: {wrong}") from wrong


@contextmanager
def installed(what: str, extra: str) -> Iterator[None]:
    """Around the import of a server: if a package is missing, say which extra brings it."""
    try:
        yield
    except ModuleNotFoundError as missing:
        if (missing.name or "kb").partition(".")[0] == "kb":
            raise
        raise Unavailable(
            f"{what} is not installed here ({missing.name} is missing). Install kb with the extra `{extra}`, as you "
            f"installed it: uv tool install, pipx install or pip install, and then 'kb-server[{extra}]'"
        ) from missing


def connect() -> "SocketClient":
    """A client of the engine that the settings name."""
    from kb.cli.transport import SocketClient
    from kb.client.engines import Engines
    from kb.core.endpoint import place

    return SocketClient(Engines.of(place()))


def text_or_stdin(text: str) -> str:
    """The text itself, or all of standard input for a dash, exactly as it is written there."""
    if text != "-":
        return text
    if sys.stdin.isatty():
        print("kb: reading text from the terminal; end it with Ctrl-D.", file=sys.stderr)
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError as wrong:
        raise InvalidRequest(f"What was read from standard input is not UTF-8 text: {wrong}.") from wrong


def print_json(value: Any) -> None:
    """JSON for programs. Characters that a terminal would obey are escaped, which JSON allows."""
    import json
    import re

    text = json.dumps(value, ensure_ascii=False, indent=2)
    print(re.sub("[\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]", lambda c: f"\\u{ord(c[0]):04x}", text))
