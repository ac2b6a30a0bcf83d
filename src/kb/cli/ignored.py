"""What `.gitignore` files leave out, by git's rules: the last pattern that matches decides, deeper files first.

Only the files of the repository are read, not the user's global excludes. Why this is not pathspec: docs/decisions/017.
"""

import os
import re
from collections.abc import Iterable
from typing import NamedTuple

_TOKEN = re.compile(
    r"(?<![^/])\*\*/|/\*\*$|\*+|\?"  # wildcards
    r"|\[[!^]?\]?(?:\\.|[^\]\\])*\]"  # a class of characters
    r"|\\.|.",
    re.DOTALL,
)
_WILDCARDS = {"**/": "(?:.*/)?", "/**": "/.+", "?": "[^/]"}


class Pattern(NamedTuple):
    matches: "re.Pattern[str]"  # the path below the folder of the file
    keeps: bool  # began with an exclamation mark
    folders_only: bool  # ended with a slash


class Rules(NamedTuple):
    """The patterns of one file, and the folder that they are relative to."""

    folder: str
    patterns: tuple[Pattern, ...]


def read(file: str, folder: str) -> Rules:
    """The rules of a file; none if it cannot be read."""
    try:
        with open(file, encoding="utf-8", errors="surrogateescape") as stream:
            lines = stream.read().split("\n")
    except OSError:
        lines = []
    return Rules(folder, tuple(pattern for line in lines if (pattern := _pattern(line))))


def above(folder: str) -> tuple[Rules, ...]:
    """The rules that a folder inherits from its repository, the outermost first; none outside a repository."""
    folder = os.path.abspath(folder)
    inherited: list[Rules] = []
    while not os.path.exists(os.path.join(folder, ".git")):
        parent = os.path.dirname(folder)
        if parent == folder:
            return ()
        inherited.append(read(os.path.join(parent, ".gitignore"), parent))
        folder = parent
    inherited.append(read(os.path.join(folder, ".git", "info", "exclude"), folder))
    return tuple(reversed(inherited))


def inside(folder: str, inherited: Iterable[Rules]) -> tuple[Rules, ...]:
    """The rules for the entries of a folder."""
    folder = os.path.abspath(folder)
    return (*inherited, read(os.path.join(folder, ".gitignore"), folder))


def is_ignored(path: str, rules: Iterable[Rules], *, folder: bool) -> bool:
    """Whether the rules leave out this path; the caller has checked the folders above it."""
    path = os.path.abspath(path)
    for one in reversed(tuple(rules)):
        below = os.path.relpath(path, one.folder)
        for pattern in reversed(one.patterns):
            if (folder or not pattern.folders_only) and pattern.matches.fullmatch(below):
                return not pattern.keeps
    return False


def _pattern(line: str) -> Pattern | None:
    """The pattern of a line; None for a comment, and for a pattern that git never matches."""
    line = re.sub(r"(?<!\\)[ \t\r]+$", "", line)  # spaces at the end count only when they are escaped
    keeps = line.startswith("!")
    text = line[keeps:].rstrip("/")
    if not text or line.startswith("#"):
        return None
    # A slash anywhere but at the end ties the pattern to the folder; without one it matches at any depth.
    parts = [] if "/" in text else ["(?:.*/)?"]
    for token in _TOKEN.findall(text.removeprefix("/")):
        if token in ("[", "\\"):  # never closed, or nothing escaped
            return None
        parts.append(_expression(token))
    try:
        return Pattern(re.compile("".join(parts), re.DOTALL), keeps, line.endswith("/"))
    except re.error:  # a range that runs backwards
        return None


def _expression(token: str) -> str:
    if token.startswith("["):
        negated = token[1] in "!^"
        return f"(?!/)[{'^' * negated}" + re.sub(r"(?<!\\)([\[\]&~|])", r"\\\1", token[1 + negated : -1]) + "]"
    if token.startswith("\\"):
        return re.escape(token[1])
    return _WILDCARDS.get(token) or ("[^/]*" if token[0] == "*" else re.escape(token))
