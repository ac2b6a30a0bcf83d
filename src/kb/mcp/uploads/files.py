"""Files of this machine that an agent names: read only below the allowed folders, whatever links say.

Where a file truly lies decides, not the name by which it was asked for: its resolved path must be below a root, hold
nothing hidden, and end in the name of a format that its content has.
"""

import fcntl
import os
import re
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

FORMATS = ("pdf", "docx", "pptx", "xlsx", "html", "jpg", "png", "svg")
ALIASES = {"jpeg": "jpg", "htm": "html"}
HEAD = 8192  # bytes in which a format shows
PDF_WITHIN = 1024  # bytes: readers accept other bytes before a PDF
# Images and Office files, new and old; which of them it is, the engine tells.
SIGNATURES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
MARKUP = ("html", "svg")
TAG = re.compile(rb"<[a-z!?/]", re.IGNORECASE)


class Opened(NamedTuple):
    path: str  # of the open file itself, so that it cannot be exchanged any more
    resolved: str  # where it truly lies
    size: int
    head: bytes


class FileRefusedError(Exception):
    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind  # path_not_allowed, file_not_found, file_not_readable
        self.message = message


def file_format(name: str) -> str:
    """What the extension says; the aliases are one format."""
    extension = os.path.splitext(name)[1].lower().removeprefix(".")
    return ALIASES.get(extension, extension)


def holds_its_format(file: Opened) -> bool:
    """Whether the content is of a format that can be added: a key or a password file under another name is not.

    Markup has no signature, so only a file that is named so may be markup, and it must hold a tag.
    An empty one passes, since it holds nothing.
    """
    head = file.head
    if head.startswith(SIGNATURES) or b"%PDF-" in head[:PDF_WITHIN]:
        return True
    text = head.replace(b"\0", b"")  # the same in UTF-16
    return file_format(file.resolved) in MARKUP and (not text.strip() or TAG.search(text) is not None)


@contextmanager
def opened(name: str, roots: Sequence[Path]) -> Iterator[Opened]:
    """Open the file, then check where the open file lies: a link that changes in between leads nowhere.

    The path is also checked before, so that nothing outside the roots is opened, nor its existence told.
    """
    if "\0" in name:
        raise FileRefusedError("file_not_found", f"There is no file {name!r}: no name holds a null character.")
    path = os.path.expanduser(name)
    _check(name, os.path.realpath(path), roots)
    try:
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError) as missing:
        raise FileRefusedError("file_not_found", f"There is no file {name!r}.") from missing
    except OSError as wrong:
        raise FileRefusedError("file_not_readable", f"{name!r} cannot be read: {wrong.strerror}.") from wrong
    try:
        about = os.fstat(number)
        resolved = path_of(number)
        _check(name, resolved, roots)
        if not stat.S_ISREG(about.st_mode):
            raise FileRefusedError("file_not_readable", f"{name!r} cannot be read: it is not a file.")
        if not _is(resolved, about):
            raise FileRefusedError("file_not_readable", f"{name!r} was exchanged while it was being opened.")
        yield Opened(f"/dev/fd/{number}", resolved, about.st_size, os.pread(number, HEAD, 0))
    finally:
        os.close(number)


def path_of(number: int) -> str:
    """Where the kernel says that an open file lies."""
    if sys.platform == "darwin":
        return os.fsdecode(fcntl.fcntl(number, fcntl.F_GETPATH, bytes(1024)).rstrip(b"\0"))
    return os.readlink(f"/proc/self/fd/{number}")


def _is(resolved: str, about: os.stat_result) -> bool:
    try:
        return os.path.samestat(about, os.stat(resolved))
    except OSError:
        return False


def _check(name: str, resolved: str, roots: Sequence[Path]) -> None:
    path = Path(resolved)
    below = [path.relative_to(root) for root in map(os.path.realpath, roots) if path.is_relative_to(root)]
    if not below:
        raise FileRefusedError(
            "path_not_allowed", f"{name!r} lies outside the folders that may be read here (KB_MCP_FILE_ROOTS)."
        )
    if all(any(part.startswith(".") for part in inside.parts) for inside in below):
        raise FileRefusedError(
            "path_not_allowed",
            f"{name!r} is hidden or lies in a hidden folder: what has a name that begins with a dot is never read. "
            "Copy the file to another folder if it is meant to be added.",
        )
