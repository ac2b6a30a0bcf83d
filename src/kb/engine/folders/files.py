"""Reading the files of a watched folder: never through a link, and only while they hold still."""

import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from kb.store.watched import Stamp

BLOCK = 2**20
SIGNED = 2**63 - 1  # some file systems number beyond what a database column holds
GONE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)  # ELOOP: a link has taken its place
DENIED = (errno.EACCES, errno.EPERM)


class Unsteady(Exception):
    """The file changed while it was read, or is not there any longer."""


def stamp_of(found: os.stat_result) -> Stamp:
    return Stamp(found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_dev & SIGNED, found.st_ino & SIGNED)


def stamp_at(root: str, path: str) -> Stamp | None:
    """The stamp of a regular file now; None if there is none."""
    try:
        found = os.lstat(os.path.join(root, path))
    except OSError:
        return None
    return stamp_of(found) if stat.S_ISREG(found.st_mode) else None


@contextmanager
def opened(root: str, path: str) -> Iterator[BinaryIO]:
    """A regular file, opened without following any link below the root: what lies elsewhere stays unread."""
    *folders, name = path.split("/")
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for one in folders:
            inner = os.open(one, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
            os.close(folder)
            folder = inner
        # Not blocking: a pipe may have taken the file's place.
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    finally:
        os.close(folder)
    with open(descriptor, "rb", buffering=0) as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise Unsteady
        yield file


def blocks(root: str, path: str, expected: Stamp) -> Iterator[bytes]:
    """The bytes of a file that has this stamp before and after it is read; else raise Unsteady.

    Raises OSError where the file is there and cannot be read.
    """
    try:
        with opened(root, path) as file:
            if stamp_of(os.fstat(file.fileno())) != expected:
                raise Unsteady
            while block := file.read(BLOCK):
                yield block
            if stamp_of(os.fstat(file.fileno())) != expected:
                raise Unsteady
    except OSError as wrong:
        if wrong.errno in GONE:
            raise Unsteady from wrong
        raise


def hash_of(root: str, path: str, expected: Stamp) -> str:
    """The sha256 of a file that has this stamp."""
    digest = hashlib.sha256()
    for block in blocks(root, path, expected):
        digest.update(block)
    return digest.hexdigest()
