"""Files of this machine that an agent names: read only below the allowed folders, whatever links say."""

import errno
import os
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
    path = os.path.expanduser(name)
    _check(name, os.path.realpath(path), roots)
    try:
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError) as missing:
        raise FileRefusedError("file_not_found", f"There is no file {name!r}.") from missing
    except OSError as wrong:
        raise FileRefusedError("file_not_readable", f"{name!r} cannot be read: {wrong.strerror}.") from wrong
    with os.fdopen(number, "rb") as file:
        about = os.fstat(file.fileno())
        resolved = os.path.realpath(path)
        _check(name, resolved, roots)
        try:
            same = os.path.samestat(about, os.stat(resolved))
        except OSError:
            same = False
        if not same or not os.path.isfile(resolved):
            reason = os.strerror(errno.EISDIR) if os.path.isdir(resolved) else "it is not a plain file"
            raise FileRefusedError("file_not_readable", f"{name!r} cannot be read: {reason}.")
        yield Opened(f"/dev/fd/{file.fileno()}", resolved, about.st_size)


def _check(name: str, resolved: str, roots: Sequence[Path]) -> None:
    if not any(Path(resolved).is_relative_to(os.path.realpath(root)) for root in roots):
        raise FileRefusedError(
            "path_not_allowed", f"{name!r} lies outside the folders that may be read here (KB_MCP_FILE_ROOTS)."
        )
