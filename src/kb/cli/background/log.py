"""The log of a kb without a terminal: one file beside the data, and the one before it.

Both servers append to it. The supervisor keeps it bounded: it copies a full file aside and empties it in place, since
the servers hold it open. They go on logging also when the supervisor was killed.
"""

import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import IO

from kb.core.errors import NotFound

Folder = str | os.PathLike[str]

FULL_BYTES = 5 * 2**20
LOOK_SECONDS = 0.3


def path(data_dir: Folder) -> str:
    return os.path.join(data_dir, "logs", "kb.log")


def opened(file: str) -> int:
    """A descriptor that appends to the file, which only its owner can read."""
    os.makedirs(os.path.dirname(file), mode=0o700, exist_ok=True)
    return os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)


def bound(file: str, full: int = FULL_BYTES) -> None:
    """Move the content of a full file aside. A full disk or a missing file is no reason to stop the servers."""
    with suppress(OSError):
        if os.stat(file).st_size > full:
            shutil.copyfile(file, f"{file}.1")
            os.chmod(f"{file}.1", 0o600)
            os.truncate(file, 0)


def tail(file: str, lines: int) -> tuple[str, int]:
    """The last lines of the log, and the position behind them."""
    with _log(file) as stream:
        data = stream.read()
    kept = data.splitlines(keepends=True)[max(data.count(b"\n") - lines, 0) :]
    return b"".join(kept).decode("utf-8", "replace"), len(data)


def since(file: str, at: int) -> str:
    """What the log says from this position on."""
    with _log(file) as stream:
        stream.seek(at)
        return stream.read().decode("utf-8", "replace")


def follow(file: str, at: int) -> Iterator[str]:
    """What is appended behind this position, for ever; also after the file was emptied."""
    with _log(file) as stream:
        stream.seek(at)
        while True:
            if os.fstat(stream.fileno()).st_size < stream.tell():
                stream.seek(0)
            if block := stream.read():
                yield block.decode("utf-8", "replace")
            else:
                sys.stdout.flush()
                time.sleep(LOOK_SECONDS)


def _log(file: str) -> IO[bytes]:
    try:
        return open(file, "rb")
    except FileNotFoundError as missing:
        raise NotFound(
            f"There is no log at {file}: kb has not run without a terminal on this data folder. Start it with: "
            "kb up --detach"
        ) from missing
