"""The entries of a TAR, compressed or not; a file that is merely compressed is its only entry."""

import bz2
import gzip
import io
import lzma
import os
import tarfile
from collections.abc import Callable
from functools import partial
from pathlib import PurePosixPath
from typing import IO, Any, BinaryIO

from kb.core.errors import JobFailure
from kb.ingest.extract.containers.entry import Entry, decoded_names, outcome_of, shown
from kb.ingest.extract.member import MAX_MEMBERS, PIECE, check_unpacked
from kb.ingest.extract.packed import TAR_HEADER, is_tar
from kb.ingest.extract.part import Outcome
from kb.ingest.extract.tools import Source

DECOMPRESS: dict[bytes, Callable[[BinaryIO], Any]] = {
    b"\x1f\x8b": lambda file: gzip.GzipFile(fileobj=file),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\x00": lzma.LZMAFile,
}
SUFFIXES = (".gz", ".bz2", ".xz")
LARGEST_READ = 64 * 2**20  # bytes that a header may ask for
BAD_TAR = (tarfile.TarError, OSError, ValueError, EOFError, OverflowError, lzma.LZMAError)


class Unpacked(io.RawIOBase):
    """The bytes of a compressed file, as far as they may be unpacked."""

    def __init__(self, source: Source) -> None:
        file = source.open()
        head = file.read(6)
        file.seek(0)
        self._packed = os.fstat(file.fileno()).st_size
        decompress = next((made for magic, made in DECOMPRESS.items() if head.startswith(magic)), None)
        self.is_compressed = decompress is not None
        self._stream = decompress(file) if decompress else file
        self.last = b""  # what was read last

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= LARGEST_READ:
            raise JobFailure("too_complex", "A header in the archive is too large.")
        self.last = self._stream.read(size)
        check_unpacked(self._packed, self._stream.tell())
        return self.last

    def tell(self) -> int:
        return self._stream.tell()

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go forward by reading: how much comes out counts."""
        if not self.is_compressed or offset < self._stream.tell() or whence != os.SEEK_SET:
            return self._stream.seek(offset, whence)
        while (left := offset - self._stream.tell()) > 0 and self.read(min(left, PIECE)):
            pass
        return self._stream.tell()


def tar_entries(source: Source) -> list[Entry]:
    stream = Unpacked(source)
    try:
        head = stream.read(TAR_HEADER)
        if not is_tar(head) and stream.is_compressed:
            return [Entry(unpacked_name(source.name), Outcome(), partial(rewound, stream))]
        stream.seek(0)
        archive = tarfile.TarFile(fileobj=stream, encoding="utf-8", errors="surrogateescape")
    except BAD_TAR as error:
        raise JobFailure("corrupt", f"The archive is cut off or damaged: {error}") from None
    listed, cut = all_of(archive, stream)
    files = [info for info in listed if not info.isdir()]
    names = decoded_names([info.name.encode("utf-8", "surrogateescape") for info in files], "latin-1")
    found = [
        Entry(shown(name), outcome(info, name), opener(archive, info)) for info, name in zip(files, names, strict=True)
    ]
    if cut:
        rest = Outcome("failed", "the archive is cut off or damaged here; what follows cannot be read")
        found.append(Entry("the rest of the archive", rest, io.BytesIO))
    return found


def all_of(archive: tarfile.TarFile, stream: Unpacked) -> tuple[list[tarfile.TarInfo], bool]:
    """The members, and whether the archive is cut off or damaged behind them."""
    listed: list[tarfile.TarInfo] = []
    try:
        for info in archive:
            listed.append(info)
            if len(listed) > 2 * MAX_MEMBERS:  # folders among them; more is refused
                return listed, False
    except BAD_TAR:
        return listed, True
    return listed, bool(stream.last.strip(b"\0"))  # it ends with zeros; the library takes any other header for an end


def opener(archive: tarfile.TarFile, info: tarfile.TarInfo) -> Callable[[], IO[bytes]]:
    def opened() -> IO[bytes]:
        file = archive.extractfile(info)
        assert file is not None  # it is a file
        return file

    return opened


def rewound(stream: Unpacked) -> IO[bytes]:
    stream.seek(0)
    return stream  # type: ignore[return-value]


def outcome(info: tarfile.TarInfo, path: str) -> Outcome:
    if info.issym() or info.islnk():
        return Outcome("failed", "it is a link to another file, which is not followed")
    if not info.isfile():
        return Outcome("failed", "it is a device or a pipe, not a file")
    return outcome_of(path)


def unpacked_name(name: str) -> str:
    path = PurePosixPath(name)
    return shown(path.stem if path.suffix.lower() in SUFFIXES else path.name) if path.name else "file"
