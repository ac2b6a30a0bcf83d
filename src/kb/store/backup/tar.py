"""A tar archive as a stream of blocks: made while it is sent, never whole in memory or on disk."""

import hashlib
import tarfile
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from kb.core.sizes import readable_size

BLOCK = 2**18
RECORD = tarfile.BLOCKSIZE  # what a member is padded to
END = bytes(2 * RECORD)


@dataclass(frozen=True, slots=True)
class TarMember:
    """One file of an archive."""

    name: str
    size: int
    sha256: str


def data_member(name: str, data: bytes) -> Iterator[bytes]:
    yield header(name, len(data)) + data + padding(len(data))


def file_member(name: str, path: Path) -> Generator[bytes, None, TarMember | None]:
    """Yield the blocks of one file. Return its member, or None if there is no such file."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return None
    with file:
        size = file.seek(0, 2)
        file.seek(0)
        digest = hashlib.sha256()
        yield header(name, size)
        for block in exactly(file, size):
            digest.update(block)
            yield block
        yield padding(size)
    return TarMember(name, size, digest.hexdigest())


def header(name: str, size: int) -> bytes:
    info = tarfile.TarInfo(name)
    info.size = size
    info.mode = 0o600
    info.mtime = int(time.time())
    return info.tobuf(tarfile.PAX_FORMAT)


def padding(size: int) -> bytes:
    return bytes(-size % RECORD)


def exactly(file: BinaryIO, size: int) -> Iterator[bytes]:
    """Exactly as many bytes as the header announced; otherwise the archive breaks off."""
    left = size
    while left:
        block = file.read(min(BLOCK, left))
        if not block:
            raise OSError(f"{readable_size(left)} of {file.name} are missing")
        left -= len(block)
        yield block
