"""Plain text and program sources: one part, decoded."""

from collections.abc import Iterator

from kb.ingest.extract.encoding import decoded
from kb.ingest.extract.part import Outcome, Part
from kb.ingest.extract.tools import Ocr, Source


def parts(source: Source, _: Ocr) -> Iterator[Part]:
    found = decoded(source.read_bytes())
    yield Part("text", found.text, outcome=Outcome("ok", found.reason))
