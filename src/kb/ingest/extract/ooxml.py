"""The package that DOCX, PPTX and XLSX files are: a ZIP archive of XML parts that point at each other."""

import posixpath
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import IO

from lxml import etree

from kb.core.errors import JobFailure
from kb.core.types import Json
from kb.ingest.extract.detect import OLE
from kb.ingest.extract.tidy import detail, real_title
from kb.ingest.extract.tools import Source
from kb.ingest.extract.xml import attribute, local, parse

# Refused by what the archive declares. Sizes can lie, so memory is limited too.
MAX_MEMBERS = 10_000
MAX_BYTES = 300 * 2**20
MAX_RATIO = 200
RATIO_FROM = 10 * 2**20  # bytes: a small file may be all white space
HEAD_BYTES = 4096  # entities are declared at the start
ENCRYPTED_FLAG = 1
BAD_ARCHIVE = (zipfile.BadZipFile, OSError, ValueError, RuntimeError, struct.error)  # what zipfile raises
PROPERTIES = {"creator": "author", "subject": "subject", "keywords": "keywords", "description": "description"}


@dataclass(frozen=True, slots=True)
class Relation:
    kind: str  # the last word of its type: "slide", "notesSlide", "footnotes"
    target: str  # the name of a member


class Package:
    def __init__(self, source: Source) -> None:
        refuse_ole(source)
        try:
            self._zip = zipfile.ZipFile(source.open())
        except BAD_ARCHIVE as error:
            raise JobFailure("corrupt", f"The file is cut off or damaged: {error}") from None
        refuse_bomb(self._zip.infolist())
        self._names = {name.lower(): name for name in self._zip.namelist()}
        self._refuse_entities()

    def has(self, name: str) -> bool:
        return name.lower() in self._names

    def read(self, name: str) -> bytes:
        with self._opened(name) as member:
            return member.read()

    def xml(self, name: str) -> etree._Element:
        return parse(self.read(name))

    def relations(self, name: str = "") -> dict[str, Relation]:
        """Where a part points, by id; without a name, where the whole package does."""
        folder, base = posixpath.split(name)
        listed = posixpath.join(folder, "_rels", f"{base}.rels")
        if not self.has(listed):
            return {}
        found = {}
        for element in self.xml(listed):
            kind, target = attribute(element, "Type"), attribute(element, "Target")
            if kind and target and attribute(element, "TargetMode") != "External":
                member = posixpath.normpath(posixpath.join("/" + folder, target)).lstrip("/")
                found[attribute(element, "Id") or ""] = Relation(kind.rpartition("/")[2], member)
        return found

    def related(self, name: str, *kinds: str) -> Iterator[str]:
        """The members of these kinds that a part points at."""
        for relation in self.relations(name).values():
            if relation.kind in kinds and self.has(relation.target):
                yield relation.target

    def main(self) -> str:
        """The part that everything starts from."""
        found = next(self.related("", "officeDocument"), None)
        if found is None:
            raise JobFailure("corrupt", "The file does not say where its content is.")
        return found

    @cached_property
    def properties(self) -> Json:
        """What the file says about itself: title, author and the like."""
        found: Json = {}
        for name in self.related("", "core-properties"):
            for element in self.xml(name):
                if value := detail(element.text):
                    found[local(element)] = value
        return found

    @property
    def title(self) -> str | None:
        return real_title(self.properties.get("title"))

    @property
    def metadata(self) -> Json:
        return {name: self.properties[key] for key, name in PROPERTIES.items() if key in self.properties}

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


def refuse_ole(source: Source) -> None:
    with source.open() as file:
        if not file.read(len(OLE)).startswith(OLE):
            return
        file.seek(0)
        data = file.read()
    if "EncryptedPackage".encode("utf-16-le") in data:
        raise JobFailure("encrypted", "The file is protected with a password.")
    raise JobFailure("unsupported_format", "It is a file of an old Office. Save it as DOCX, PPTX or XLSX.")


def refuse_bomb(members: list[zipfile.ZipInfo]) -> None:
    size = sum(member.file_size for member in members)
    packed = sum(member.compress_size for member in members)
    if len(members) > MAX_MEMBERS:
        raise JobFailure("too_complex", f"The file is an archive of {len(members)} parts.")
    if size > MAX_BYTES or (size > RATIO_FROM and size > MAX_RATIO * packed):
        raise JobFailure("too_complex", f"The file of {packed // 1024} KB would unpack to {size // 2**20} MB.")
    if any(member.flag_bits & ENCRYPTED_FLAG for member in members):
        raise JobFailure("encrypted", "The file is protected with a password.")
