"""`kb connect` and `kb disconnect`: an agent's configuration, shown, written and proven; `kb bridge` for stdio.

The change is shown as a diff with the key hidden, and written when a person agrees or with `--yes`: a backup first,
then one rename. The proof uses what the file says now, not what was meant to be in it.
"""

import argparse
import sys
from typing import TYPE_CHECKING

from kb.cli.connect.change import ConfigChange, text_of
from kb.cli.options import Commands, Parser, command, print_json
from kb.core.errors import InvalidRequest, KBError, NotFound
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
DISCONNECT = """
kb disconnect claude-code
kb disconnect cursor --file .cursor/mcp.json --yes
"""
BRIDGE = """
kb bridge
KB_MCP_API_KEY=secret kb bridge --url https://kb.example.org/mcp
"""
DECLINED = 1


def register(commands: Commands) -> None:
    parser = command(commands, "connect", run, EXAMPLES)
    parser.add_argument("client", metavar="CLIENT", nargs="?", help="the agent; without it, all are listed")
    _add_writing(parser)
    parser.add_argument("--url", metavar="URL", help="the MCP server (default: the one that the settings name)")
    parser.add_argument("--contract", metavar="NAME", help="the contract to use (default: the server's first)")

    parser = command(commands, "disconnect", disconnect, DISCONNECT)
    parser.add_argument("client", metavar="CLIENT", help="the agent; kb connect lists them")
    _add_writing(parser)

    parser = command(commands, "bridge", bridge, BRIDGE, json=False)
    parser.add_argument("--url", metavar="URL", help="the MCP server (default: the one that the settings name)")


def _add_writing(parser: Parser) -> None:
    parser.add_argument("--yes", action="store_true", help="write without asking")
    parser.add_argument("--print", dest="show_only", action="store_true", help="show the change and write nothing")
    parser.add_argument("--file", metavar="FILE", help="the configuration to change (default: the user's own)")
    parser.add_argument("--name", metavar="NAME", default="kb", help="what the agent calls the server (default: kb)")


def bridge(args: argparse.Namespace) -> int:
    from kb.cli.connect.agent import McpSession
    from kb.cli.connect.bridge import Bridge
    from kb.core.mcp_clients import key_headers, mcp_url
    from kb.core.settings import read

    settings = read()
    Bridge(McpSession(args.url or mcp_url(settings), key_headers(settings.mcp_api_key))).run()
    return 0


def run(args: argparse.Namespace) -> int:
    from kb.core.mcp_clients import mcp_url
    from kb.core.settings import read

    if args.client is None:
        return _list(args)
    client = _client(args.client)
    settings = read()
    change = Connection(client, args, args.url or mcp_url(settings, args.contract), settings)
    if not args.json:
        change.show()
    if args.show_only or (args.json and not args.yes):
        return _told(args, change, None)
    if change.needed and not args.yes and not change.agreed():
        print("Nothing was written.", file=sys.stderr)
        return DECLINED
    change.write()
    return _told(args, change, change.proven())


def _client(name: str) -> "McpClient":
    from kb.core.mcp_clients import CLIENTS

    if name not in CLIENTS:
        raise InvalidRequest(f"{name!r} is not an agent that kb knows: {', '.join(CLIENTS)}.")
    return CLIENTS[name]


def disconnect(args: argparse.Namespace) -> int:
    """Take out what `kb connect` wrote, and nothing else."""
    from kb.cli.connect.entries import without_entry
    from kb.core.settings import read

    client = _client(args.client)
    change = ConfigChange(
        args.file or client.file(),
        lambda text: without_entry(client.form, text, client.section, args.name),
        read().mcp_api_key,
    )
    if change.before is None or not change.needed:
        raise NotFound(f"{change.path} has no entry {args.name} for {client.label}: there is nothing to remove.")
    if not args.json:
        change.show()
    if not args.show_only and (args.yes or (not args.json and change.agreed())):
        change.write()
    if args.json:
        print_json({"client": args.client, "file": change.path, "written": change.written, "backup": change.backup})
    elif change.written:
        print(f"What was there is kept in {change.backup}.")
        print(f"{client.label} no longer has {args.name}. Start it again: most agents read their configuration once.")
    elif not args.show_only:
        print("Nothing was written.", file=sys.stderr)
        return DECLINED
    return 0


def _list(args: argparse.Namespace) -> int:
    from kb.cli.screen import Screen
    from kb.core.mcp_clients import CLIENTS

    rows = [(name, client.label, client.file()) for name, client in CLIENTS.items()]
    if args.json:
        print_json([{"client": name, "label": label, "file": file} for name, label, file in rows])
    else:
        # The client's name says which agent it is, and a path that is cut short says nothing.
        Screen(sys.stdout).table(("CLIENT", "FILE"), [(name, file) for name, _, file in rows])
    return 0


class Connection(ConfigChange):
    """The entry of kb in an agent's configuration."""

    def __init__(self, client: "McpClient", args: argparse.Namespace, url: str, settings: "Settings") -> None:
        from kb.cli.connect.agent import McpSession
        from kb.cli.connect.entries import with_entry

        McpSession(url)  # what cannot be an address is not written anywhere
        self.client = client
        self.name = args.name
        self.url = url
        entry = client.entry(url, settings.mcp_api_key)
        super().__init__(
            args.file or client.file(),
            lambda text: with_entry(client.form, text, client.section, args.name, entry),
            settings.mcp_api_key,
        )

    def proven(self) -> "Proof":
        """Read the file as the agent will, and try the connection."""
        from kb.cli.connect.entries import read_json, read_toml
        from kb.cli.connect.proof import proof_of

        said = (read_toml if self.client.form == "toml" else read_json)(text_of(self.path) or "")
        try:
            return proof_of(said[self.client.section][self.name])
        except KBError as error:
            if self.written:
                error.message = f"{self.path} is written, but not proven: {error.message}"
            raise


def _told(args: argparse.Namespace, change: Connection, proof: "Proof | None") -> int:
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
