"""ODS: the cells of every sheet, and the comments on them."""

from collections.abc import Iterator

from kb.ingest.extract.opendocument import OpenDocument, note_text
from kb.ingest.extract.part import Part
from kb.ingest.extract.tools import Ocr, Source
from kb.ingest.extract.workbook import Piece, sheets
from kb.ingest.extract.xml import attribute


def parts(source: Source, _: Ocr) -> Iterator[Part]:
    document = OpenDocument(source)
    yield from sheets(source, document.title, document.metadata, comments(document))


def comments(document: OpenDocument) -> dict[str, list[Piece]]:
    """What is noted on the cells of each sheet."""
    found: dict[str, list[Piece]] = {}
    for sheet in document.body().iterchildren("{*}table"):
        texts = filter(None, map(note_text, sheet.iter("{*}annotation")))
        if text := "\n".join(texts):
            found[attribute(sheet, "name") or ""] = [(None, text)]
    return found
