"""`kb service`: kb as a service of the user, under systemd or launchd."""

import argparse
import sys
from typing import TYPE_CHECKING

from kb.cli.options import Commands, command, print_json
from kb.core.errors import Conflict, InvalidRequest, NotFound

if TYPE_CHECKING:
    from kb.core.settings import Settings

EXAMPLES = """
kb service install
kb service install --print
kb service status
kb service remove
"""


def register(commands: Commands) -> None:
    parser = command(commands, "service", run, EXAMPLES)
    parser.add_argument(
        "action",
        metavar="ACTION",
        nargs="?",
        default="status",
        choices=["install", "remove", "status"],
        help="install, remove or status (default)",
    )
    parser.add_argument("--print", dest="show_only", action="store_true", help="show what install would write")


def run(args: argparse.Namespace) -> int:
    from kb.core.settings import read

    if args.show_only and args.action != "install":
        raise InvalidRequest("--print belongs to: kb service install")
    settings = read()
    if args.action == "install":
        return _install(args, settings)
    return _remove(args) if args.action == "remove" else _status(args)


def _install(args: argparse.Namespace, settings: "Settings") -> int:
    from kb.cli.background import log, running
    from kb.cli.background.detach import await_answers
    from kb.cli.background.service import platform_service, unseen_settings
    from kb.core.settings import declared

    if unseen := unseen_settings([one.name for one in declared()]):
        raise InvalidRequest(
            f"{', '.join(unseen)}: set in this shell, which a service does not see. Put it into the file with settings "
            f"(kb config set {unseen[0]} VALUE), unset it here, and try again."
        )
    service, file = platform_service(), log.path(settings.data_dir)
    if args.show_only:
        print(f"# {service.path}", file=sys.stderr)
        print(service.text(file), end="")
        return 0
    known = running.read(settings.data_dir)
    if known and known.way != "service":
        end = "kb down" if known.way == "detach" else "Ctrl-C there"
        raise Conflict(f"kb runs already: {known.described()}. End it first: {end}")
    service.install(file)
    started = await_answers(settings.data_dir, lambda: _trouble(file))
    if args.json:
        print_json({"file": service.path, "engine_url": started.engine_url, "mcp_url": started.mcp_url})
        return 0
    print(f"kb is a service now ({service.path}) and answers at {started.engine_url}.")
    print(service.hint())
    return 0


def _trouble(file: str) -> str | None:
    """Why the service will not answer any more; None while it may still start."""
    from kb.cli.background import log
    from kb.cli.background.service import platform_service

    state = platform_service().state()
    if state.active or "activating" in state.detail:
        return None
    return f"The service did not start: {state.detail}. The end of its log:\n{log.tail(file, 15)[0]}"


def _remove(args: argparse.Namespace) -> int:
    from kb.cli.background.service import platform_service

    service = platform_service()
    if not service.state().installed:
        raise NotFound(f"kb is no service here: there is no {service.path}.")
    service.remove()
    if args.json:
        print_json({"file": service.path, "removed": True})
    else:
        print(f"kb has ended and is no service any more; {service.path} is removed. The data is where it was.")
    return 0


def _status(args: argparse.Namespace) -> int:
    from kb.cli.background.service import platform_service

    service = platform_service()
    state = service.state()
    if args.json:
        print_json({"file": service.path, **state._asdict()})
        return 0
    if not state.installed:
        print("kb is no service here. Make it one with: kb service install")
        return 0
    starts = "starts with your session" if state.enabled else "does not start by itself"
    print(f"{service.name}: {state.detail}; {starts}\n{service.path}")
    return 0
