"""ODS: the cells of every sheet, and the comments on them; then what OCR reads in its pictures."""

from collections.abc import Iterator
from dataclasses import replace

from kb.ingest.extract.opendocument import PICTURES, OpenDocument, note_text
from kb.ingest.extract.part import Part
from kb.ingest.extract.pictures import Pictures, Shown
from kb.ingest.extract.tools import Ocr, Source
from kb.ingest.extract.workbook import Piece, sheets
from kb.ingest.extract.xml import attribute


def parts(source: Source, ocr: Ocr) -> Iterator[Part]:
    document = OpenDocument(source)
    pictures = Pictures(document, ocr)
    found = sheets(source, document.title, document.metadata, comments(document))
    yield from pictures.beside(found, sheet_pictures(document))
    yield from pictures.elsewhere(document.names(PICTURES))


def sheet_pictures(document: OpenDocument) -> dict[str, list[Shown]]:
    """The pictures of each sheet, under its name."""
    tables = {attribute(table, "name") or "": table for table in document.body().iterchildren("{*}table")}
    return {
        name: [replace(shown, heading=name) for shown in document.pictures(table)] for name, table in tables.items()
    }


def comments(document: OpenDocument) -> dict[str, list[Piece]]:
    """What is noted on the cells of each sheet."""
    found: dict[str, list[Piece]] = {}
    for sheet in document.body().iterchildren("{*}table"):
        texts = filter(None, map(note_text, sheet.iter("{*}annotation")))
        if text := "\n".join(texts):
            found[attribute(sheet, "name") or ""] = [(None, text)]
    return found
