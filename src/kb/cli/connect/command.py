"""`kb connect`: an agent's configuration shown, written and proven; `kb bridge` for agents that only speak stdio.

The change is shown as a diff with the key hidden, and written when a person agrees or with `--yes`: a backup first,
then one rename. The proof uses what the file says now, not what was meant to be in it.
"""

import argparse
import os
import sys
from typing import TYPE_CHECKING

from kb.cli.options import Commands, command, print_json
from kb.core.errors import InvalidRequest, KBError
from kb.core.types import Json

if TYPE_CHECKING:
    from kb.cli.connect.proof import Proof
    from kb.core.mcp_clients import McpClient
    from kb.core.settings import Settings

EXAMPLES = """
kb connect
kb connect claude-code
kb connect vscode --yes
kb connect codex --print
kb connect cursor --file .cursor/mcp.json --contract knowledge
"""
BRIDGE = """
kb bridge
KB_MCP_API_KEY=secret kb bridge --url https://kb.example.org/mcp
"""
DECLINED = 1
HIDDEN = "********"


def register(commands: Commands) -> None:
    parser = command(commands, "connect", run, EXAMPLES)
    parser.add_argument("client", metavar="CLIENT", nargs="?", help="the agent; without it, all are listed")
    parser.add_argument("--yes", action="store_true", help="write without asking")
    parser.add_argument("--print", dest="show_only", action="store_true", help="show the change and write nothing")
    parser.add_argument("--file", metavar="FILE", help="the configuration to change (default: the user's own)")
    parser.add_argument("--name", metavar="NAME", default="kb", help="what the agent calls the server (default: kb)")
    parser.add_argument("--url", metavar="URL", help="the MCP server (default: the one that the settings name)")
    parser.add_argument("--contract", metavar="NAME", help="the contract to use (default: the server's first)")

    parser = command(commands, "bridge", bridge, BRIDGE, json=False)
    parser.add_argument("--url", metavar="URL", help="the MCP server (default: the one that the settings name)")


def bridge(args: argparse.Namespace) -> int:
    from kb.cli.connect.agent import McpSession
    from kb.cli.connect.bridge import Bridge
    from kb.core.mcp_clients import key_headers, mcp_url
    from kb.core.settings import read

    settings = read()
    Bridge(McpSession(args.url or mcp_url(settings), key_headers(settings.mcp_api_key))).run()
    return 0


def run(args: argparse.Namespace) -> int:
    from kb.core.mcp_clients import CLIENTS, mcp_url
    from kb.core.settings import read

    if args.client is None:
        return _list(args)
    client = CLIENTS.get(args.client)
    if client is None:
        raise InvalidRequest(f"{args.client!r} is not an agent that kb knows: {', '.join(CLIENTS)}.")
    settings = read()
    change = ConfigChange(client, args, args.url or mcp_url(settings, args.contract), settings)
    if not args.json:
        change.show()
    if args.show_only or (args.json and not args.yes):
        return _told(args, change, None)
    if change.needed and not args.yes and not _agreed(change.path):
        print("Nothing was written.", file=sys.stderr)
        return DECLINED
    change.write()
    return _told(args, change, change.proven())


def _list(args: argparse.Namespace) -> int:
    from kb.cli.screen import Screen
    from kb.core.mcp_clients import CLIENTS

    rows = [(name, client.label, client.file()) for name, client in CLIENTS.items()]
    if args.json:
        print_json([{"client": name, "label": label, "file": file} for name, label, file in rows])
    else:
        Screen(sys.stdout).table(("CLIENT", "AGENT", "FILE"), rows)
    return 0


class ConfigChange:
    """The present and the new text of a configuration file."""

    def __init__(self, client: "McpClient", args: argparse.Namespace, url: str, settings: "Settings") -> None:
        from kb.cli.connect.agent import McpSession
        from kb.cli.connect.entries import with_entry

        McpSession(url)  # what cannot be an address is not written anywhere
        self.client = client
        self.name = args.name
        self.url = url
        self.key = settings.mcp_api_key
        # Dotfiles are often links into a folder under version control: the file behind the link is the one to change.
        self.path = os.path.realpath(args.file or client.file())
        self.before = _read(self.path)
        entry = client.entry(url, self.key)
        self.after = with_entry(client.form, self.before or "", client.section, args.name, entry)
        self.needed = self.before != self.after
        self.backup: str | None = None
        self.written = False

    def show(self) -> None:
        import difflib

        from kb.cli.screen import Screen, escaped

        screen = Screen(sys.stdout)
        if not self.needed:
            screen.say(f"{self.path} says so already.")
            return
        old, new = (self._hidden(text).splitlines() for text in (self.before or "", self.after))
        if old == new:
            screen.say(f"In {self.path} only the key changes.")
        names = ("/dev/null" if self.before is None else self.path, self.path)
        for line in difflib.unified_diff(old, new, *names, lineterm=""):
            colour = {"+": "green", "-": "red"}.get(line[:1], "dim")
            screen.say(screen.style(escaped(line), colour))

    def _hidden(self, text: str) -> str:
        """The text without keys: neither ours nor those of other servers."""
        import re

        text = re.sub(r"(Bearer |KB_MCP_API_KEY\": \")[^\"'\s]+", rf"\g<1>{HIDDEN}", text)
        return text.replace(self.key, HIDDEN) if self.key else text

    def write(self) -> None:
        """Write a backup, then the new file in one rename; only the user can read a file with a key."""
        if not self.needed:
            return
        from kb.cli.connect.files import backed_up, replaced

        if self.before is not None:
            self.backup = backed_up(self.path)
        replaced(self.path, self.after, private=self.before is None or bool(self.key))
        self.written = True

    def proven(self) -> "Proof":
        """Read the file as the agent will, and try the connection."""
        from kb.cli.connect.entries import read_json, read_toml
        from kb.cli.connect.proof import proof_of

        said = (read_toml if self.client.form == "toml" else read_json)(_read(self.path) or "")
        try:
            return proof_of(said[self.client.section][self.name])
        except KBError as error:
            if self.written:
                error.message = f"{self.path} is written, but not proven: {error.message}"
            raise


def _read(path: str) -> str | None:
    try:
        # Line ends stay as they are.
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as wrong:
        raise InvalidRequest(f"{path} cannot be read: {getattr(wrong, 'strerror', None) or wrong}.") from wrong


def _agreed(path: str) -> bool:
    if not sys.stdin.isatty():
        raise InvalidRequest("Writing asks first, and nobody is there to answer: say --yes, or --print to look only.")
    print(f"Write this to {path}? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _told(args: argparse.Namespace, change: ConfigChange, proof: "Proof | None") -> int:
    if args.json:
        told: Json = {"client": args.client, "file": change.path, "url": change.url, "written": change.written}
        told |= {"backup": change.backup, "proof": proof._asdict() if proof else None}
        print_json(told)
        return 0
    if proof is None:
        return 0
    from kb.cli.screen import Screen, one_line

    screen = Screen(sys.stdout)
    if change.backup:
        screen.say(f"What was there is kept in {change.backup}.")
    works = (
        f"{change.client.label} can use kb: {proof.server} {proof.version} answered, and so did its tool {proof.tool}."
    )
    screen.say(screen.style(one_line(works), "green"))
    screen.say(change.client.hint)
    return 0
