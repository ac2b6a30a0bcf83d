"""One extractor per format. Each yields the parts of a file in order, so that memory stays flat on large files."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from kb.ingest.chunk import Kind
from kb.ingest.extract import text
from kb.ingest.extract.part import Part
from kb.nouns import DocType

__all__ = ["EXTRACTORS", "Extractor", "Part"]


@dataclass(frozen=True, slots=True)
class Extractor:
    """How one document type is read, and how its text is chunked."""

    parts: Callable[[Path], Iterator[Part]]
    kind: Kind = "text"


EXTRACTORS: dict[DocType, Extractor] = {
    "markdown": Extractor(text.parts, "markdown"),
    "text": Extractor(text.parts, "text"),
    "code": Extractor(text.parts, "code"),
}
