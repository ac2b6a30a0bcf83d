"""Files of this machine that an agent names: read only below the allowed folders, whatever links say."""

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

FORMATS = ("pdf", "docx", "pptx", "xlsx", "html", "jpg", "png", "svg")
ALIASES = {"jpeg": "jpg", "htm": "html"}


class Opened(NamedTuple):
    path: str  # of the open file itself, so that it cannot be exchanged any more
    resolved: str  # where it truly lies
    size: int


class FileRefusedError(Exception):
    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind  # path_not_allowed, file_not_found, file_not_readable
        self.message = message


def file_format(name: str) -> str:
    """What the extension says; the aliases are one format."""
    extension = os.path.splitext(name)[1].lower().removeprefix(".")
    return ALIASES.get(extension, extension)


@contextmanager
def opened(name: str, roots: Sequence[Path]) -> Iterator[Opened]:
    """Opened first, checked then: a link that changes in between leads nowhere."""
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
        resolved = os.path.realpath(path)
        _check(name, resolved, roots)
        if not stat.S_ISREG(about.st_mode):
            raise FileRefusedError("file_not_readable", f"{name!r} cannot be read: it is not a file.")
        if not _is(resolved, about):
            raise FileRefusedError("file_not_readable", f"{name!r} was exchanged while it was being opened.")
        yield Opened(f"/dev/fd/{number}", resolved, about.st_size)
    finally:
        os.close(number)


def _is(resolved: str, about: os.stat_result) -> bool:
    try:
        return os.path.samestat(about, os.stat(resolved))
    except OSError:
        return False


def _check(name: str, resolved: str, roots: Sequence[Path]) -> None:
    if not any(Path(resolved).is_relative_to(os.path.realpath(root)) for root in roots):
        raise FileRefusedError(
            "path_not_allowed", f"{name!r} lies outside the folders that may be read here (KB_MCP_FILE_ROOTS)."
        )
