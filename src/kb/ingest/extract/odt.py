"""ODT: the text as Markdown, with its headings, lists, tables, notes and comments."""

from collections.abc import Iterator

from kb.ingest.extract.opendocument import OpenDocument, blocks
from kb.ingest.extract.part import EMPTY, Outcome, Part
from kb.ingest.extract.tools import Ocr, Source


def parts(source: Source, _: Ocr) -> Iterator[Part]:
    document = OpenDocument(source)
    found = list(filter(None, [*blocks(document.body()), *document.margins()]))
    heading = next((block.lstrip("# ") for block in found if block.startswith("#")), None)
    text = "\n\n".join(found)
    outcome = Outcome() if text else EMPTY
    yield Part("text", text, outcome=outcome, title=document.title or heading, metadata=document.metadata)
