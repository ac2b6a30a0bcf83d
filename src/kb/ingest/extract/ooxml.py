"""The package that DOCX, PPTX and XLSX files are: a ZIP archive of XML parts that point at each other."""

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from kb.core.errors import JobFailure
from kb.core.types import Json
from kb.ingest.extract.archive import Archive
from kb.ingest.extract.detect import OLE
from kb.ingest.extract.tidy import detail
from kb.ingest.extract.titles import real_title
from kb.ingest.extract.tools import Source
from kb.ingest.extract.xml import attribute, local

PROPERTIES = {"creator": "author", "subject": "subject", "keywords": "keywords", "description": "description"}


@dataclass(frozen=True, slots=True)
class Relation:
    kind: str  # the last word of its type: "slide", "notesSlide", "footnotes"
    target: str  # the name of a member


class Package(Archive):
    def __init__(self, source: Source) -> None:
        refuse_ole(source)
        super().__init__(source)

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

    def pictures(self) -> list[str]:
        """The members that are pictures, of all parts."""
        return self.names(posixpath.join(posixpath.dirname(self.main()), "media"))

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


def refuse_ole(source: Source) -> None:
    with source.open() as file:
        if not file.read(len(OLE)).startswith(OLE):
            return
        file.seek(0)
        data = file.read()
    refuse_encrypted(data)
    raise JobFailure("unsupported_format", "It is a file of an old Office. Save it as DOCX, PPTX or XLSX.")


def refuse_encrypted(data: bytes) -> None:
    """Refuse a new Office file that is encrypted: it is kept in the container of the old ones."""
    if "EncryptedPackage".encode("utf-16-le") in data:
        raise JobFailure("encrypted", "The file is protected with a password.")
