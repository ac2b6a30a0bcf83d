"""Plain text, and texts with a structure that is read: tables, JSON, drawings."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from kb.ingest.extract.canvas import canvas
from kb.ingest.extract.cards import cards
from kb.ingest.extract.delimited import table_of_commas, table_of_tabs
from kb.ingest.extract.detect import detect
from kb.ingest.extract.dialects import (
    CALENDAR_TYPE,
    CANVAS_TYPE,
    CARD_TYPE,
    CSV_TYPE,
    DRAWIO_TYPE,
    LINES_TYPE,
    TSV_TYPE,
    XML_TYPE,
)
from kb.ingest.extract.drawio import drawing
from kb.ingest.extract.encoding import decoded
from kb.ingest.extract.json_text import json_lines, json_value
from kb.ingest.extract.part import Outcome, Part
from kb.ingest.extract.tools import Ocr, Source
from kb.ingest.extract.unstructured import Unstructured
from kb.ingest.extract.xml_text import xml_text

EDGE_BYTES = 65536
# A reader raises Unstructured before its first part, if the text has not the structure that it reads.
READERS: dict[str, Callable[[str], Iterator[Part]]] = {
    CSV_TYPE: table_of_commas,
    TSV_TYPE: table_of_tabs,
    LINES_TYPE: json_lines,
    "application/json": json_value,
    "application/geo+json": json_value,
    "application/ld+json": json_value,
    DRAWIO_TYPE: drawing,
    CANVAS_TYPE: canvas,
    XML_TYPE: xml_text,
    CALENDAR_TYPE: cards,
    CARD_TYPE: cards,
}


def parts(source: Source, _: Ocr) -> Iterator[Part]:
    data = source.read_bytes()
    found = decoded(data)
    read = READERS.get(detect(data[:EDGE_BYTES], data[-EDGE_BYTES:], source.name).media_type)
    why = None
    if read is not None:
        try:
            for part in read(found.text):
                yield replace(part, outcome=replace(part.outcome, reason=said(found.reason, part.outcome.reason)))
        except Unstructured as error:
            why = f"read as plain text: {error}"
        else:
            return
    yield Part("text", found.text, outcome=Outcome("ok", said(found.reason, why)))


def said(*reasons: str | None) -> str | None:
    return "; ".join(filter(None, reasons)) or None
