"""The entry point of `kb`: it finds the command, runs it, and returns an exit code.

An error ends as one sentence on stderr, or with `--json` as its body on stdout; the exit code is that of the
error tree. An interrupt exits 130 with one sentence, a closed pipe is quiet. Modules of commands import
next to nothing at their top, so that `kb --help` and `kb search` feel instant.
"""

import argparse
import errno
import importlib
import os
import sys
from collections.abc import Iterable, Sequence

from kb import __version__
from kb.cli.commands.table import COMMANDS
from kb.cli.options import INTERRUPTED, Formatter, Parser
from kb.core.errors import InvalidRequest, KBError

OUTPUT_LOST = 1
PIPE_CLOSED = 141  # what a shell reports for a program that SIGPIPE ended


def build_parser(words: Sequence[str] | None = None) -> Parser:
    """The parser of all commands; given a command line, only of the command in it."""
    parser = Parser(
        prog="kb",
        description="A private knowledge base that people and AI agents share.",
        epilog="examples:\n"
        "  kb up\n"
        '  kb addnote "The router is in the hall cupboard" --tags home\n'
        "  kb add ~/Documents/reports --tags work\n"
        '  kb search "where is the router"\n\n'
        "Settings are KB_* environment variables, or stand in one file: see kb config.\n"
        "KB_ENGINE_URL says where the engine is, or else KB_HOST and KB_PORT do.",
        formatter_class=Formatter,
        allow_abbrev=False,
    )
    parser.add_argument("-V", "--version", action="version", version=f"kb {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", prog="kb", required=True)
    if words is None:
        modules = list(dict.fromkeys(about.module for about in COMMANDS.values()))
    elif words and words[0] in COMMANDS:
        modules = [COMMANDS[words[0]].module]
    else:  # a list of commands is all that can be asked for
        modules = []
        for name, about in COMMANDS.items():
            commands.add_parser(name, help=about.summary, add_help=False)
    for module in modules:
        importlib.import_module(f"kb.cli.{module}").register(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line. Return the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        # Names may hold bytes that are no text; they are shown as escapes instead of stopping the command.
        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
        code = _run(words)
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("\nkb: interrupted; what the engine has accepted goes on there.", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        _drop_output()
        return PIPE_CLOSED
    except OSError as failed:
        if failed.errno != errno.ENOSPC:
            raise
        _drop_output()
        print(f"kb: the output cannot be written: {failed.strerror}.", file=sys.stderr)
        return OUTPUT_LOST
    return code


def _drop_output() -> None:
    """Discard buffered output, so that a closed pipe raises no error at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(words: list[str]) -> int:
    try:
        if not words:
            build_parser(words).print_help()
            return 0
        args = _parsed(words)
        return int(args.run(args))
    except SystemExit as done:  # --help and --version
        return int(done.code or 0)
    except KBError as error:
        return _report(error, as_json=bool({"-j", "--json"}.intersection(words)))


def _parsed(words: list[str]) -> argparse.Namespace:
    """Parse a command line. A wrong command or option is answered with the one that was probably meant."""
    first = words[0]
    if first not in COMMANDS and not first.startswith("-"):
        raise InvalidRequest(f"There is no command {first!r}. {meant(first, COMMANDS)}See: kb --help")
    args, unknown = build_parser(words).parse_known_args(words)
    if unknown:
        parser: Parser = args.parser
        options = [name for action in parser._actions for name in action.option_strings]
        hint = meant(unknown[0].partition("=")[0], options) if unknown[0].startswith("-") else ""
        raise InvalidRequest(f"{unknown[0]!r} was not expected. {hint}See: {parser.prog} --help")
    return args


def meant(word: str, known: Iterable[str]) -> str:
    """ "Did you mean 'search'? ", or nothing if no name is like the word."""
    from difflib import get_close_matches

    found = get_close_matches(word, known, n=1)
    return f"Did you mean {found[0]!r}? " if found else ""


def _report(error: KBError, *, as_json: bool) -> int:
    if as_json:
        from kb.cli.options import print_json

        print_json(error.body())
    else:
        from kb.cli.screen import one_line

        print(f"kb: {one_line(error.message)}", file=sys.stderr)
    return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
