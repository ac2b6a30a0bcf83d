"""The ZIP archive that an Office file, an OpenDocument or a book is: members by name, and refused if it is a bomb."""

import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from lxml import etree

from kb.core.errors import JobFailure
from kb.ingest.extract.tools import Source
from kb.ingest.extract.xml import parse

# Refused by what the archive declares. Sizes can lie, so memory is limited too.
MAX_MEMBERS = 10_000
MAX_BYTES = 300 * 2**20
MAX_RATIO = 200
RATIO_FROM = 10 * 2**20  # bytes: a small file may be all white space
HEAD_BYTES = 4096  # entities are declared at the start
ENCRYPTED_FLAG = 1
BAD_ARCHIVE = (zipfile.BadZipFile, OSError, ValueError, RuntimeError, struct.error)  # what zipfile raises


class Archive:
    def __init__(self, source: Source) -> None:
        try:
            self._zip = zipfile.ZipFile(source.open())
        except BAD_ARCHIVE as error:
            raise JobFailure("corrupt", f"The file is cut off or damaged: {error}") from None
        refuse_bomb(self._zip.infolist())
        self._names = {name.lower(): name for name in self._zip.namelist()}
        self._refuse_entities()

    def has(self, name: str) -> bool:
        return name.lower() in self._names

    def names(self, folder: str) -> list[str]:
        """The members in a folder, and in those inside of it."""
        return [name for name in self._zip.namelist() if name.startswith(f"{folder}/") and not name.endswith("/")]

    def read(self, name: str) -> bytes:
        with self._opened(name) as member:
            return member.read()

    def xml(self, name: str) -> etree._Element:
        return parse(self.read(name))

    @contextmanager
    def _opened(self, name: str) -> Iterator[IO[bytes]]:
        try:
            with self._zip.open(self._names[name.lower()]) as member:
                yield member
        except (KeyError, zlib.error, EOFError, *BAD_ARCHIVE) as error:
            raise JobFailure("corrupt", f"A part of the file, {name!r}, cannot be read: {error}") from None

    def _refuse_entities(self) -> None:
        """Refuse a file that declares XML entities: other libraries parse some parts, and may not limit them."""
        for name in self._zip.namelist():
            if name.endswith((".xml", ".rels")):
                with self._opened(name) as member:
                    head = member.read(HEAD_BYTES)
                if b"<!ENTITY" in head:
                    self.xml(name)


def refuse_bomb(members: list[zipfile.ZipInfo]) -> None:
    size = sum(member.file_size for member in members)
    packed = sum(member.compress_size for member in members)
    if len(members) > MAX_MEMBERS:
        raise JobFailure("too_complex", f"The file is an archive of {len(members)} parts.")
    if size > MAX_BYTES or (size > RATIO_FROM and size > MAX_RATIO * packed):
        raise JobFailure("too_complex", f"The file of {packed // 1024} KB would unpack to {size // 2**20} MB.")
    if any(member.flag_bits & ENCRYPTED_FLAG for member in members):
        raise JobFailure("encrypted", "The file is protected with a password.")
