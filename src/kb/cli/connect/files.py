"""Files of other programs: copied before they are changed, and changed in one step."""

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from kb.core.errors import StorageFull

PRIVATE = 0o600


def backed_up(path: str) -> str:
    """Copy the file, readable to its owner only. Return the path of the copy."""
    copy = f"{path}.{time.strftime('%Y%m%dT%H%M%S')}.kb-backup"
    with _written(copy), open(path, "rb") as source:
        _put(copy, source.read(), PRIVATE)
    return copy


def replaced(path: str, text: str, *, private: bool) -> None:
    """Write the text to the file in one step: it never holds a part of it."""
    with _written(path):
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        mode = PRIVATE if private else os.stat(path).st_mode & 0o777
        _put(path, text.encode(), mode)


def _put(path: str, data: bytes, mode: int) -> None:
    handle, part = tempfile.mkstemp(prefix=f".{os.path.basename(path)}.", dir=os.path.dirname(path))
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(part)
        raise


@contextmanager
def _written(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as wrong:
        raise StorageFull(f"{path} cannot be written: {wrong.strerror}. Nothing was changed.") from wrong
