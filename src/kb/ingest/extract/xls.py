"""XLS: the cells of every sheet of an old workbook, its comments and text boxes."""

from collections.abc import Iterator

from kb.core.errors import JobFailure
from kb.ingest.extract import biff
from kb.ingest.extract.compound import Compound
from kb.ingest.extract.part import Part
from kb.ingest.extract.tools import Ocr, Source
from kb.ingest.extract.workbook import sheets


def parts(source: Source, _: Ocr) -> Iterator[Part]:
    file = Compound(source)
    stream = file.stream("Workbook")
    if biff.is_encrypted(stream):
        raise JobFailure("encrypted", "The workbook is protected with a password.")
    yield from sheets(source, file.title, file.metadata, biff.remarks(stream))
