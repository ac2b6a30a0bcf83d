"""What `.gitignore` files leave out, by git's rules: the last pattern that matches decides, deeper files first.

Only what git documents for the file itself; a user's global excludes are not read. A pattern becomes one regular
expression over the path below the folder of its file.
"""

import os
import re
from collections.abc import Iterable
from typing import NamedTuple


class Pattern(NamedTuple):
    matches: "re.Pattern[str]"
    keeps: bool  # began with an exclamation mark
    folders_only: bool  # ended with a slash


class Rules(NamedTuple):
    """One file's patterns, and the folder they count from."""

    folder: str
    patterns: tuple[Pattern, ...]


def read(file: str, folder: str) -> Rules:
    """The rules of a file, none when there is no such file."""
    try:
        with open(file, encoding="utf-8", errors="surrogateescape") as stream:
            lines = stream.read().split("\n")
    except OSError:
        lines = []
    return Rules(folder, tuple(pattern for line in lines if (pattern := _pattern(line))))


def above(folder: str) -> tuple[Rules, ...]:
    """The rules that a folder inherits: those of its repository from its root down, the outermost first."""
    folder = os.path.abspath(folder)
    inherited: list[Rules] = []
    while True:
        root = os.path.exists(os.path.join(folder, ".git"))
        if root:
            inherited.append(read(os.path.join(folder, ".git", "info", "exclude"), folder))
            return tuple(reversed(inherited))
        parent = os.path.dirname(folder)
        if parent == folder:
            return ()  # no repository: only what is in the folder itself counts
        inherited.append(read(os.path.join(parent, ".gitignore"), parent))
        folder = parent


def inside(folder: str, inherited: Iterable[Rules]) -> tuple[Rules, ...]:
    """The rules for what lies in a folder."""
    folder = os.path.abspath(folder)
    return (*inherited, read(os.path.join(folder, ".gitignore"), folder))


def is_ignored(path: str, rules: Iterable[Rules], *, folder: bool) -> bool:
    """Whether the rules leave this path out; that a folder above it is left out is the caller's to know."""
    path = os.path.abspath(path)
    for held in reversed(tuple(rules)):
        below = os.path.relpath(path, held.folder)
        for pattern in reversed(held.patterns):
            if (folder or not pattern.folders_only) and pattern.matches.fullmatch(below):
                return not pattern.keeps
    return False


def _pattern(line: str) -> Pattern | None:
    line = re.sub(r"(?<!\\)[ \t\r]+$", "", line)  # spaces at the end count only when they are escaped
    if not line or line.startswith("#"):
        return None
    keeps = line.startswith("!")
    text = line[keeps:]
    folders_only = text.endswith("/")
    text = text.rstrip("/") if folders_only else text
    if not text:
        return None
    # A slash anywhere but at the end ties the pattern to the folder; without one it matches at any depth.
    anchored = "/" in text
    expression = ("" if anchored else "(?:.*/)?") + _expression(text.removeprefix("/"))
    try:
        return Pattern(re.compile(expression, re.DOTALL), keeps, folders_only)
    except re.error:
        return None  # a class that is never closed matches nothing


def _expression(text: str) -> str:
    parts, at = [], 0
    while at < len(text):
        char = text[at]
        if text.startswith("**/", at) and (at == 0 or text[at - 1] == "/"):
            parts.append("(?:.*/)?")
            at += 3
        elif text[at:] == "**" and (at == 0 or text[at - 1] == "/"):
            parts.append(".+")
            at += 2
        elif char == "*":
            parts.append("[^/]*")
            at += 1
        elif char == "?":
            parts.append("[^/]")
            at += 1
        elif char == "[" and (found := re.compile(r"\[[!^]?\]?(?:\\.|[^\]\\])*\]").match(text, at)):
            parts.append(_class(found[0]))
            at = found.end()
        elif char == "\\" and at + 1 < len(text):
            parts.append(re.escape(text[at + 1]))
            at += 2
        else:
            parts.append(re.escape(char))
            at += 1
    return "".join(parts)


def _class(text: str) -> str:
    inner = text[1:-1]
    negated = inner[:1] in ("!", "^")
    inner = inner[negated:]
    inner = re.sub(r"(?<!\\)([\[\]&~|])", r"\\\1", inner)
    return f"(?!/)[{'^' if negated else ''}{inner}]"
