"""The files that paths, folders and globs name, each once, in order.

A file that is named is always found. In folders and globs, hidden files and those that `.gitignore` or `.kbignore`
names are skipped, and empty files are marked as such.
"""

import glob
import os
import stat
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kb.core import ignored
from kb.core.errors import InvalidRequest, KBError, NotFound


class FoundFile(NamedTuple):
    path: str
    error: KBError | None = None  # why it cannot be added
    empty: bool = False  # it was found in a folder or by a glob, and has no bytes


def find(paths: Iterable[str], *, ignore: bool = True) -> Iterator[FoundFile]:
    """Every file that the paths name, with the error for one that cannot be added."""
    seen = set()
    for path in paths:
        empty = True
        for found in _named(path, ignore):
            empty = False
            place = os.path.realpath(found.path)
            if place not in seen:
                seen.add(place)
                yield found if found.error or found.empty else FoundFile(found.path, _problem(found.path))
        if empty:
            left_out = "hidden and ignored ones are" if ignore else "hidden ones are"
            yield FoundFile(path, NotFound(f"There are no files in {path}; {left_out} left out."))


def _named(path: str, ignore: bool) -> Iterator[FoundFile]:
    if os.path.isdir(path):
        yield from _below(path, ignored.above(path) if ignore else None)
    elif os.path.lexists(path) or not glob.has_magic(path):
        yield FoundFile(path)
    else:
        # The shell passes a glob on if it is quoted or matches nothing.
        for match in sorted(glob.glob(path, recursive=True)):
            folder = os.path.isdir(match)
            if ignore and _left_out(match, folder=folder):
                continue
            if not folder:
                yield FoundFile(match, empty=_is_empty(match))
            elif not path.endswith("**"):  # which lists the content of folders by itself
                yield from _below(match, ignored.above(match) if ignore else None)


def _left_out(path: str, *, folder: bool) -> bool:
    """Whether a path, or a folder above it in its repository, is ignored."""
    place = os.path.abspath(path)
    while True:
        parent = os.path.dirname(place)
        rules = ignored.inside(parent, ignored.above(parent))
        if ignored.is_ignored(place, rules, folder=folder):
            return True
        if parent == place or os.path.exists(os.path.join(place, ".git")):
            return False
        place, folder = parent, True


def _problem(path: str) -> KBError | None:
    try:
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return NotFound(f"There is no file {path}.")
    except OSError as wrong:
        return InvalidRequest(f"{path} cannot be read: {wrong.strerror}.")
    return None if stat.S_ISREG(mode) else InvalidRequest(f"{path} is neither a file nor a folder.")


def _is_empty(path: str) -> bool:
    try:
        found = os.stat(path)
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_size == 0


def _below(folder: str, inherited: tuple[ignored.Rules, ...] | None) -> Iterator[FoundFile]:
    """The files below a folder. `inherited`: the rules of the folders above, or None to ignore nothing."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as wrong:
        yield FoundFile(folder, InvalidRequest(f"{folder} cannot be read: {wrong.strerror}."))
        return
    rules = None if inherited is None else ignored.inside(folder, inherited)
    folders = []
    for entry in entries:
        inner = entry.is_dir(follow_symlinks=False)
        if entry.name.startswith(".") or (rules and ignored.is_ignored(entry.path, rules, folder=inner)):
            continue
        if inner:
            folders.append(entry.path)
        elif entry.is_file() or (entry.is_symlink() and not os.path.isdir(entry.path)):
            # A link that leads nowhere is reported; pipes and sockets hold no document.
            yield FoundFile(entry.path, empty=_is_empty(entry.path))
    for path in folders:
        yield from _below(path, rules)
