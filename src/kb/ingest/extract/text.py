"""Plain text and program sources: one part, decoded."""

from collections.abc import Iterator

from kb.core.errors import JobFailure
from kb.ingest.extract.detect import encoding_of
from kb.ingest.extract.part import Part
from kb.ingest.extract.tools import Ocr, Source


def parts(source: Source, _: Ocr) -> Iterator[Part]:
    yield Part("text", decode(source.read_bytes()))


def decode(data: bytes) -> str:
    encoding = encoding_of(data, complete=True)
    if encoding is None:
        raise JobFailure(
            "corrupt", "The file starts like text but holds bytes that no text has. Was it cut or damaged?"
        )
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        if encoding != "cp1252":
            raise JobFailure("corrupt", f"The file says it is {encoding}, but it is not valid {encoding}.") from None
        return data.decode("latin-1")
