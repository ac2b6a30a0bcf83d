"""What `.gitignore` and `.kbignore` leave out, by git's rules: the last pattern that matches decides, deeper first.

Of two files in one folder `.kbignore` has the last word. Only the files of the repository are read, not the user's
global excludes. Why this is not pathspec: docs/decisions/017.
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
FILES = (".gitignore", ".kbignore")


class Pattern(NamedTuple):
    text: str  # as it was written
    matches: "re.Pattern[str]"  # the path below the folder of the file
    keeps: bool  # began with an exclamation mark
    folders_only: bool  # ended with a slash


class Rules(NamedTuple):
    """The patterns of one file, and the folder that they are relative to."""

    folder: str
    file: str
    patterns: tuple[Pattern, ...]


def read(file: str, folder: str) -> Rules:
    """The rules of a file; none if it cannot be read, or is a pipe, to which nobody might ever write."""
    if not os.path.isfile(file):
        return Rules(folder, file, ())
    try:
        with open(file, encoding="utf-8", errors="surrogateescape") as stream:
            lines = stream.read().split("\n")
    except OSError:
        lines = []
    return Rules(folder, file, patterns(lines))


def patterns(lines: Iterable[str]) -> tuple[Pattern, ...]:
    """The patterns of these lines; comments, and what git never matches, are left out."""
    return tuple(pattern for line in lines if (pattern := _pattern(line)))


def above(folder: str) -> tuple[Rules, ...]:
    """The rules that a folder inherits from its repository, the outermost first; none outside a repository."""
    folder = os.path.abspath(folder)
    inherited: list[Rules] = []
    while not os.path.exists(os.path.join(folder, ".git")):
        parent = os.path.dirname(folder)
        if parent == folder:
            return ()
        inherited.extend(reversed(_files_of(parent)))
        folder = parent
    inherited.append(read(os.path.join(folder, ".git", "info", "exclude"), folder))
    return tuple(reversed(inherited))


def inside(folder: str, inherited: Iterable[Rules]) -> tuple[Rules, ...]:
    """The rules for the entries of a folder."""
    return (*inherited, *_files_of(os.path.abspath(folder)))


def _files_of(folder: str) -> list[Rules]:
    found = (read(os.path.join(folder, name), folder) for name in FILES)
    return [rules for rules in found if rules.patterns]


def is_ignored(path: str, rules: Iterable[Rules], *, folder: bool) -> bool:
    """Whether the rules leave out this path; the caller has checked the folders above it."""
    return rule_for(os.path.abspath(path), rules, folder=folder) is not None


def rule_for(path: str, rules: Iterable[Rules], *, folder: bool) -> tuple[Pattern, Rules] | None:
    """The pattern that leaves out this absolute path, and whose it is; None if the path is not left out."""
    for one in reversed(tuple(rules)):
        below = path[len(one.folder.rstrip("/")) + 1 :]
        for pattern in reversed(one.patterns):
            if (folder or not pattern.folders_only) and pattern.matches.fullmatch(below):
                return None if pattern.keeps else (pattern, one)
    return None


def _pattern(line: str) -> Pattern | None:
    """The pattern of a line; None for a comment, and for a pattern that git never matches."""
    line = re.sub(r"(?<!\\)[ \t\r]+$", "", line)  # spaces at the end count only when they are escaped
    keeps = line.startswith("!")
    text = line[keeps:].rstrip("/")
    if not text or line.startswith("#"):
        return None
    tokens = [token if token.strip("*") else "*" for token in _TOKEN.findall(text.removeprefix("/"))]
    if "[" in tokens or "\\" in tokens:  # never closed, or nothing escaped
        return None
    # A slash anywhere but at the end ties the pattern to the folder; without one it matches at any depth.
    expression = _whole(tokens if "/" in text else ["**/", *tokens])
    try:
        return Pattern(line, re.compile(expression, re.DOTALL), keeps, line.endswith("/"))
    except re.error:  # a range that runs backwards
        return None


def _whole(tokens: list[str]) -> str:
    """The expression of a pattern: `**/` stands for folders, `*` for characters of one name."""
    parts = [["".join(map(_expression, part)) for part in _split(some, "*")] for some in _split(tokens, "**/")]
    return _joined([_joined(part, "[^/]*") for part in parts], "(?:.*?/)?")


def _joined(parts: list[str], wildcard: str) -> str:
    """The parts with a wildcard between each two, which takes as little as the part behind it allows.

    That part is not tried again further on (an atomic group), as no later place helps what follows: with a hostile
    pattern it would be tried for ever. The last part has to reach the end, so it alone is tried at every place.
    """
    first, *others = parts
    if not others:
        return first
    *middle, last = others
    return first + "".join(f"(?>{wildcard}?{part})" for part in middle) + wildcard + last


def _split(tokens: list[str], wildcard: str) -> list[list[str]]:
    """The tokens between those that are this wildcard."""
    parts: list[list[str]] = [[]]
    for token in tokens:
        if token == wildcard:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _expression(token: str) -> str:
    """Of what matches one character, and of `/**` at the end."""
    if token.startswith("["):
        negated = token[1] in "!^"
        return f"(?!/)[{'^' * negated}" + re.sub(r"(?<!\\)([\[\]&~|])", r"\\\1", token[1 + negated : -1]) + "]"
    if token.startswith("\\"):
        return re.escape(token[1])
    return {"/**": "/.+", "?": "[^/]"}.get(token) or re.escape(token)
