"""`kb completion`: what a shell can complete, made from the parser, so that it says neither more nor less than kb.

`install` puts it where the shell looks for it (`shells.py`).
"""

import argparse
import os
from typing import NamedTuple

from kb.cli.options import Commands, command
from kb.core.errors import InvalidRequest

EXAMPLES = """
kb completion install
kb completion install zsh
kb completion remove
kb completion bash > kb.bash
"""
SHELLS = ("bash", "zsh", "fish")


def register(commands: Commands) -> None:
    parser = command(commands, "completion", run, EXAMPLES, json=False)
    parser.add_argument(
        "action",
        metavar="ACTION",
        choices=["install", "remove", *SHELLS],
        help="install or remove; bash, zsh or fish prints the script",
    )
    parser.add_argument("shell", metavar="SHELL", nargs="?", help="bash, zsh or fish (default: the one in SHELL)")


def run(args: argparse.Namespace) -> int:
    if args.action in SHELLS:
        print(script(args.action), end="")
        return 0
    name = args.shell or os.path.basename(os.environ.get("SHELL", ""))
    if name not in SHELLS:
        raise InvalidRequest(f"{name!r} is no shell that kb can complete for: name {', '.join(SHELLS)}.")
    from kb.cli.commands.shells import shell

    if args.action == "install":
        written = shell(name).install(script(name))
        print(f"Written: {', '.join(written)}. It works in every new {name}.")
        return 0
    removed = shell(name).remove()
    print(f"Removed from: {', '.join(removed)}." if removed else f"There was nothing of kb's for {name}.")
    return 0


def script(name: str) -> str:
    """What a shell has to read."""
    from kb.cli.main import build_parser

    return {"bash": bash, "zsh": zsh, "fish": fish}[name](described(build_parser()))


class Option(NamedTuple):
    names: list[str]
    help: str
    takes: str  # what follows it; empty for a flag


class Command(NamedTuple):
    name: str
    help: str
    options: list[Option]
    words: list[str]  # what its argument can be, where that is known
    files: bool  # whether its arguments are files


FILE_ARGUMENTS = ("PATH", "FILE", "SOURCE", "DIR")
VALUES = {
    "--mode": "hybrid fts vector",
    "--sort": "recent created filename size",
    "--order": "asc desc",
}


def described(parser: argparse.ArgumentParser) -> list[Command]:
    from kb.core.mcp_clients import CLIENTS

    known = {"CLIENT": list(CLIENTS)}
    [commands] = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    told = []
    for name, inner in commands.choices.items():
        arguments = [str(action.metavar) for action in inner._actions if not action.option_strings]
        told.append(
            Command(
                name,
                inner.description or "",
                [_option(action) for action in inner._actions if action.option_strings],
                [word for argument in arguments for word in known.get(argument, [])]
                + [
                    str(word) for action in inner._actions if not action.option_strings for word in action.choices or ()
                ],
                any(argument in FILE_ARGUMENTS for argument in arguments),
            )
        )
    return told


def _option(action: argparse.Action) -> Option:
    return Option(list(action.option_strings), action.help or "", "" if action.nargs == 0 else str(action.metavar))


def _values(option: Option) -> str:
    from kb.core.values import DOC_TYPES

    if "--type" in option.names:
        return " ".join(DOC_TYPES)
    return next((VALUES[name] for name in option.names if name in VALUES), "")


def bash(commands: list[Command]) -> str:
    cases, values, files = [], {}, set()
    for told in commands:
        names = [name for option in told.options for name in option.names]
        kind = "-f" if told.files else ""
        cases.append(f"    {told.name}) options='{' '.join(names)}' words='{' '.join(told.words)}' files='{kind}' ;;")
        for option in told.options:
            if _values(option):
                values["|".join(option.names)] = _values(option)
            elif option.takes in FILE_ARGUMENTS:
                files.update(option.names)
            elif option.takes:
                values["|".join(option.names)] = ""
    chosen = [
        f"    {names}) COMPREPLY=($(compgen -W '{words}' -- \"$word\")); return ;;" for names, words in values.items()
    ]
    every = " ".join(told.name for told in commands)
    return "\n".join(
        [
            "# bash completion for kb, made by: kb completion bash",
            "_kb() {",
            '  local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" options words files',
            "  COMPREPLY=()",
            "  if ((COMP_CWORD == 1)); then",
            f"    COMPREPLY=($(compgen -W '{every} --help --version' -- \"$word\"))",
            "    return",
            "  fi",
            '  case "$before" in',
            f'    {"|".join(sorted(files))}) compopt -o filenames; COMPREPLY=($(compgen -f -- "$word")); return ;;',
            *chosen,
            "  esac",
            '  case "${COMP_WORDS[1]}" in',
            *cases,
            "    *) return ;;",
            "  esac",
            "  if [[ $word == -* ]]; then",
            '    COMPREPLY=($(compgen -W "$options" -- "$word"))',
            "  elif [[ -n $words ]]; then",
            '    COMPREPLY=($(compgen -W "$words" -- "$word"))',
            "  elif [[ -n $files ]]; then",
            "    compopt -o filenames",
            "    local IFS=$'\\n'",
            '    COMPREPLY=($(compgen -f -- "$word"))',
            "  fi",
            "}",
            "complete -F _kb kb",
            "",
        ]
    )


def zsh(commands: list[Command]) -> str:
    lines = [
        "#compdef kb",
        "# zsh completion for kb, made by: kb completion zsh",
        "_kb() {",
        "  local -a commands",
        "  commands=(",
    ]
    lines += [f"    {_quoted(f'{told.name}:{told.help}')}" for told in commands]
    lines += [
        "  )",
        "  if ((CURRENT == 2)); then",
        "    _describe command commands",
        "    return",
        "  fi",
        "  local command=$words[2]",
    ]
    lines += ["  shift words", "  ((CURRENT--))", "  case $command in"]
    for told in commands:
        specs = [_zsh_option(option, name) for option in told.options for name in option.names]
        if told.words:
            specs.append(_quoted(f"*:argument:({' '.join(told.words)})"))
        elif told.files:
            specs.append(_quoted("*:file:_files"))
        lines += [
            f"    {told.name})",
            "      _arguments \\",
            *(f"        {spec} \\" for spec in specs[:-1]),
            f"        {specs[-1]}",
            "      ;;",
        ]
    return "\n".join(
        [*lines, "  esac", "}", 'if [[ $funcstack[1] == _kb ]]; then _kb "$@"; else compdef _kb kb; fi', ""]
    )


def _zsh_option(option: Option, name: str) -> str:
    help_ = option.help.replace("[", "(").replace("]", ")").replace(":", ";")
    if not option.takes:
        return _quoted(f"{name}[{help_}]")
    values = f"({_values(option)})" if _values(option) else "_files" if option.takes in FILE_ARGUMENTS else " "
    return _quoted(f"*{name}[{help_}]:{option.takes}:{values}")


def fish(commands: list[Command]) -> str:
    every = " ".join(told.name for told in commands)
    lines = ["# fish completion for kb, made by: kb completion fish", "complete -c kb -f"]
    lines += [
        f"complete -c kb -n 'not __fish_seen_subcommand_from {every}' -a {told.name} -d {_quoted(told.help)}"
        for told in commands
    ]
    for told in commands:
        seen = f"complete -c kb -n '__fish_seen_subcommand_from {told.name}'"
        if told.files:
            lines.append(f"{seen} -F")
        if told.words:
            lines.append(f"{seen} -a '{' '.join(told.words)}'")
        for option in told.options:
            names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names)
            takes = "" if not option.takes else " -r -F" if option.takes in FILE_ARGUMENTS else " -x"
            values = f" -a '{_values(option)}'" if _values(option) else ""
            lines.append(f"{seen} {names}{takes}{values} -d {_quoted(option.help)}")
    return "\n".join([*lines, ""])


def _quoted(text: str) -> str:
    """One word for zsh and fish alike."""
    return "'" + text.replace("'", "’") + "'"
