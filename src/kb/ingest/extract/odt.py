"""ODT: the text as Markdown, with its headings, lists, tables, notes and comments; then what OCR reads in its
pictures.
"""

from collections.abc import Iterator

from kb.ingest.extract.opendocument import PICTURES, OpenDocument, blocks
from kb.ingest.extract.part import EMPTY, Outcome, Part
from kb.ingest.extract.pictures import Pictures
from kb.ingest.extract.tools import Ocr, Source


def parts(source: Source, ocr: Ocr) -> Iterator[Part]:
    document = OpenDocument(source)
    body = document.body()
    found = list(filter(None, [*blocks(body), *document.margins()]))
    heading = next((block.lstrip("# ") for block in found if block.startswith("#")), None)
    text = "\n\n".join(found)
    outcome = Outcome() if text else EMPTY
    part = Part("text", text, outcome=outcome, title=document.title or heading, metadata=document.metadata)
    yield part
    pictures = Pictures(document, ocr)
    yield from pictures.on(part, list(document.pictures(body)))
    yield from pictures.elsewhere(document.names(PICTURES))
