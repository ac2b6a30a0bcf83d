"""What is in a folder on the disk: its files, and what is left out of it and why.

Links are never followed, whether they lead to a file or to a folder: what lies inside the watched folder is found at
its own path, and what lies outside was not asked for. So no loop can occur, and no file is read twice.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property

from kb.core import ignored
from kb.core.folders import FolderOptions
from kb.engine.folders.files import DENIED, GONE, stamp_of
from kb.store.watched import Stamp

TOO_LONG = "its path is too long"
NO_TEXT = "its name is no UTF-8 text"
HIDDEN = "hidden"
EMPTY = "empty"
TOO_LARGE = "too large"
NOT_INCLUDED = "not included"
DENIED_REASON = "permission denied"
OWN_DATA = "the data folder of kb"
TEMPORARY = ignored.patterns(
    ["*~", "~$*", "#*#", "*.tmp", "*.swp", "*.part", "*.partial", "*.crdownload", "*.download", "*___jb_*___"]
)


@dataclass(slots=True)
class Listing:
    """What a walk found. Paths are below the root; those of folders that are left out end with a slash."""

    files: dict[str, Stamp] = field(default_factory=dict)
    ignored: dict[str, str] = field(default_factory=dict)  # and why
    failed: dict[str, str] = field(default_factory=dict)
    folders: dict[str, tuple[int, int]] = field(default_factory=dict)  # device and inode; "" is the root
    unknown: list[str] = field(default_factory=list)  # paths that could not be looked at: they are as they were


class Unreachable(Exception):
    """The root cannot be read: it is missing, no folder, or not for us. The message says which."""


@dataclass(frozen=True)
class Walker:
    """`pause` is called before each folder is read, to let searches go first."""

    root: str
    options: FolderOptions
    own_data: str  # that is never walked: kb would read what it wrote
    max_bytes: int
    pause: Callable[[], object] = lambda: None

    @cached_property
    def _include(self) -> tuple[ignored.Pattern, ...]:
        return ignored.patterns(self.options.include)

    def everything(self) -> Listing:
        return self.at([""])

    def at(self, paths: Iterable[str]) -> Listing:
        """What is at these paths, and below those that are folders; the empty path is the root."""
        listing = Listing()
        rules = self._root_rules()
        for path in sorted(set(paths)):
            self._descend(path, rules, listing)
        return listing

    def _root_rules(self) -> tuple[ignored.Rules, ...]:
        try:
            if not stat.S_ISDIR(os.stat(self.root).st_mode):
                raise Unreachable(f"{self.root} is not a folder any longer.")
        except OSError as wrong:
            raise Unreachable(f"{self.root} cannot be reached: {wrong.strerror}.") from wrong
        temporary = ignored.Rules(self.root, "the list of temporary files", TEMPORARY)  # a rule of the user is stronger
        given = ignored.Rules(self.root, "exclude", ignored.patterns(self.options.exclude))
        return (temporary, *ignored.above(self.root), *([given] if given.patterns else []))

    def _descend(self, path: str, rules: tuple[ignored.Rules, ...], listing: Listing) -> None:
        """Go from the root to one path; an ancestor that is left out is what is found."""
        above = ""
        for name in path.split("/") if path else ():
            rules = ignored.inside(self._place(above), rules)
            if not self._is_folder(above, name, rules, listing):
                return
            above = f"{above}{name}/"
        self._walk(above, rules, listing)

    def _walk(self, above: str, rules: tuple[ignored.Rules, ...], listing: Listing) -> None:
        """All below one folder; `above` is its path with a slash, or empty for the root."""
        waiting = [(above, rules)]
        while waiting:
            above, rules = waiting.pop()
            self.pause()
            place = self._place(above)
            try:
                found = os.stat(place)
                with os.scandir(place) as entries:
                    names = [entry.name for entry in entries]
            except OSError as wrong:
                self._unreadable(above, wrong, listing)
                continue
            listing.folders[above.rstrip("/")] = (found.st_dev, found.st_ino)
            rules = ignored.inside(place, rules)
            waiting += [(f"{above}{name}/", rules) for name in names if self._is_folder(above, name, rules, listing)]

    def _unreadable(self, above: str, wrong: OSError, listing: Listing) -> None:
        """A folder without permission has no files for us; another error says nothing about what is in it."""
        if not above:
            raise Unreachable(f"{self.root} cannot be read: {wrong.strerror}.") from wrong
        if wrong.errno in (*DENIED, errno.ENAMETOOLONG):
            listing.failed[above] = DENIED_REASON if wrong.errno in DENIED else TOO_LONG
        elif wrong.errno not in GONE:
            listing.unknown.append(above.rstrip("/"))

    def _is_folder(self, above: str, name: str, rules: tuple[ignored.Rules, ...], listing: Listing) -> bool:
        """Note one entry of a folder, unless it is a folder that is not left out: then return True."""
        path = f"{above}{name}"
        place = f"{self.root}/{path}"
        try:
            found = os.lstat(place)
        except OSError as wrong:
            if wrong.errno == errno.ENAMETOOLONG:
                listing.failed[readable(path)] = TOO_LONG
            elif wrong.errno not in GONE:
                listing.unknown.append(path)
            return False
        is_folder = stat.S_ISDIR(found.st_mode)
        if not is_text(name):
            listing.failed[readable(path) + "/" * is_folder] = NO_TEXT
            return False
        if reason := self._left_out(path, name, place, found.st_mode, rules):
            listing.ignored[path + "/" * is_folder] = reason
        elif is_folder:
            return True
        elif found.st_size == 0:
            listing.ignored[path] = EMPTY
        elif found.st_size > self.max_bytes:
            listing.failed[path] = TOO_LARGE
        else:
            listing.files[path] = stamp_of(found)
        return False

    def _left_out(self, path: str, name: str, place: str, mode: int, rules: tuple[ignored.Rules, ...]) -> str | None:
        """Why an entry is left out, if it is."""
        is_folder = stat.S_ISDIR(mode)
        if name.startswith("."):
            return HIDDEN
        if is_folder and place == self.own_data:
            return OWN_DATA
        if not is_folder and not stat.S_ISREG(mode):
            return self._linked(place) if stat.S_ISLNK(mode) else "not a regular file"
        if decided := ignored.rule_for(place, rules, folder=is_folder):
            pattern, of = decided
            where = os.path.relpath(of.file, self.root) if os.path.isabs(of.file) else of.file
            return f"{pattern.text} in {where}"
        return None if is_folder or self._is_included(path) else NOT_INCLUDED

    def _is_included(self, path: str) -> bool:
        """Whether a pattern names the file or a folder above it; without patterns all are."""
        if not self._include:
            return True
        parts = path.split("/")
        places = ["/".join(parts[: number + 1]) for number in range(len(parts))]
        return any(
            pattern.matches.fullmatch(place)
            for pattern in self._include
            for place in (places[:-1] if pattern.folders_only else places)
        )

    def _linked(self, place: str) -> str:
        inside = os.path.realpath(place).startswith(f"{self.root}/")
        return "a link; its target is found at its own path" if inside else "a link that leads out of the folder"

    def _place(self, above: str) -> str:
        return f"{self.root}/{above}".rstrip("/")


def readable(path: str) -> str:
    """The path with what is no UTF-8 text in it escaped."""
    return path.encode("utf-8", "backslashreplace").decode()


def is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
