"""XLSB: the cells of every sheet; it is an XLSX with its sheets as binary data."""

from collections.abc import Iterator

from kb.ingest.extract.ooxml import Package
from kb.ingest.extract.part import Part
from kb.ingest.extract.tools import Ocr, Source
from kb.ingest.extract.workbook import sheets


def parts(source: Source, _: Ocr) -> Iterator[Part]:
    package = Package(source)
    yield from sheets(source, package.title, package.metadata, {})
