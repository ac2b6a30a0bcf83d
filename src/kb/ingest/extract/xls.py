"""XLS: the cells of every sheet of an old workbook."""

from collections.abc import Iterator

from kb.ingest.extract.ooxml import refuse_encrypted
from kb.ingest.extract.part import Part
from kb.ingest.extract.tools import Ocr, Source
from kb.ingest.extract.workbook import sheets


def parts(source: Source, _: Ocr) -> Iterator[Part]:
    refuse_encrypted(source.read_bytes())
    yield from sheets(source, None, {}, {})
