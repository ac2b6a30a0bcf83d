"""`kb config`: every setting with its value and where it comes from; `set` and `unset` change the file with settings.

The file is edited by lines, so that comments and order stay. What was written is read again and must say exactly what
was there plus the change; else the file is left alone.
"""

import argparse
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from kb.cli.options import Commands, command, print_json
from kb.core import config_file
from kb.core.errors import InvalidRequest, StorageFull

if TYPE_CHECKING:
    from kb.core.settings import Declared

EXAMPLES = """
kb config
kb config set KB_PORT 8100
kb config set KB_API_KEY -
kb config unset KB_PORT
kb config path
"""
HIDDEN = "********"
PASSWORD = re.compile(r"(//[^/:@]*:).*(?=@)|(password=)[^&]*")  # in an address


class Effective(NamedTuple):
    name: str
    value: str
    source: str  # default, file or environment


def register(commands: Commands) -> None:
    parser = command(commands, "config", run, EXAMPLES)
    parser.add_argument(
        "action",
        metavar="ACTION",
        nargs="?",
        default="show",
        choices=["show", "set", "unset", "path"],
        help="show (default), set, unset, or path: where the file is",
    )
    parser.add_argument("name", metavar="NAME", nargs="?", help="the setting, such as KB_PORT")
    parser.add_argument("value", metavar="VALUE", nargs="?", help="its value; - reads it from standard input")


def run(args: argparse.Namespace) -> int:
    wanted = {"show": 0, "path": 0, "set": 2, "unset": 1}[args.action]
    if sum(given is not None for given in (args.name, args.value)) != wanted:
        usage = {0: "", 1: " NAME", 2: " NAME VALUE"}[wanted]
        raise InvalidRequest(f"It is: kb config {args.action}{usage}")
    if args.action == "path":
        print(config_file.path())
        return 0
    return _show(args) if args.action == "show" else _change(args)


def _show(args: argparse.Namespace) -> int:
    from kb.cli.screen import Screen

    rows = effective()
    if args.json:
        print_json({"file": config_file.path(), "settings": [row._asdict() for row in rows]})
        return 0
    screen = Screen(sys.stdout)
    screen.table(("SETTING", "FROM", "VALUE"), [(row.name, row.source, row.value) for row in rows])
    if exposed := _exposed(config_file.path()):
        print(exposed, file=sys.stderr)
    return 0


def effective() -> list[Effective]:
    """Every setting as it counts now; of a secret only that it is set."""
    from kb.core.settings import declared, read

    settings, file = read(), config_file.read()
    rows = []
    for one in declared():
        source = "environment" if os.environ.get(one.name) else "file" if file.values.get(one.name) else "default"
        rows.append(Effective(one.name, _shown(one, getattr(settings, one.field)), source))
    return rows


def _shown(setting: "Declared", value: Any) -> str:
    if value in (None, "", ()):
        return setting.default.replace("`", "")
    if isinstance(value, tuple):
        separator = os.pathsep if setting.name == "KB_MCP_FILE_ROOTS" else ","
        return separator.join(map(str, value))
    return _masked(setting, str(value))


def _masked(setting: "Declared", value: str) -> str:
    """The value without what is secret of it."""
    return HIDDEN if setting.secret else PASSWORD.sub(rf"\1\2{HIDDEN}", value)


def _exposed(path: str) -> str:
    """A sentence if the file holds a secret that other users of this machine can read."""
    from kb.core.settings import declared

    try:
        mode = os.stat(path).st_mode
    except OSError:
        return ""
    values = config_file.read().values
    held = [one.name for one in declared() if (text := values.get(one.name)) and _masked(one, text) != text]
    if not held or not mode & 0o077:
        return ""
    return f"kb: {path} holds {held[0]}, and other users can read it. Run: chmod 600 {path}"


def _change(args: argparse.Namespace) -> int:
    from kb.cli.options import text_or_stdin
    from kb.core.endpoint import parsed
    from kb.core.settings import named

    path, name = config_file.path(), args.name
    value = text_or_stdin(args.value).strip() if args.action == "set" else None
    shown = None
    if value is not None:  # what no setting is called can still be taken out of the file
        setting = named(name)
        parsed(name, value, setting.parse)
        shown = _masked(setting, value)
    with _locked(path):
        before = _text(path)
        after = edited(path, before, name, value)
        if after != before:
            from kb.cli.connect.files import replaced

            replaced(path, after, private=True)
    if args.json:
        print_json({"file": path, "name": name, "value": shown, "changed": after != before})
    elif after == before:
        print(f"{path} says so already.")
    else:
        print(
            f"{name} is {'unset' if value is None else f'now {shown}'} in {path}. A running kb reads it when it starts."
        )
    if os.environ.get(name):
        print(f"kb: {name} is also set in the environment, which wins.", file=sys.stderr)
    return 0


def edited(path: str, text: str, name: str, value: str | None) -> str:
    """The text with the setting changed, or without it; every other line stays."""
    wanted = config_file.parsed(path, text.encode())
    wanted.pop(name, None)
    if value is not None:
        wanted[name] = value
    own = re.compile(rf"^[ \t]*[\"']?{re.escape(name)}[\"']?[ \t]*=.*\n?", re.MULTILINE)
    line = "" if value is None else f"{name} = {_toml(value)}\n"
    if own.search(text):
        after = own.sub(lambda _: line, text, count=1)
    else:
        after = text + ("\n" if text and not text.endswith("\n") and line else "") + line
    if config_file.parsed(path, after.encode()) != wanted:
        raise InvalidRequest(f"{path} is written in a way that cannot be changed safely. Change {name} there by hand.")
    return after


def _toml(value: str) -> str:
    import json

    # A JSON text is a TOML text, but for one control character.
    return value if re.fullmatch(r"0|[1-9][0-9]{0,8}", value) else json.dumps(value, ensure_ascii=False)


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()
    except FileNotFoundError:
        return ""
    except (OSError, ValueError) as wrong:
        raise InvalidRequest(f"{path} cannot be read: {getattr(wrong, 'strerror', None) or wrong}.") from wrong


@contextmanager
def _locked(path: str) -> Iterator[None]:
    """One writer at a time: of two changes at once, neither is lost."""
    import fcntl

    folder = os.path.dirname(path)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY)
    except OSError as wrong:
        raise StorageFull(f"{folder} cannot be used: {wrong.strerror}. Name another file with KB_CONFIG.") from wrong
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
