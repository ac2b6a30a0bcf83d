"""One extractor per format. Each yields the parts of a file in order, so that memory stays flat on large files.

A process that extracts imports all of them at its start; the engine itself never loads a parser.
"""

import codecs
import encodings
import pkgutil
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING

from kb.core.errors import JobFailure
from kb.core.values import DocType
from kb.ingest.extract.encoded import encoded_spans
from kb.ingest.extract.member import Member
from kb.ingest.extract.part import Part
from kb.ingest.extract.tools import Ocr, Source

if TYPE_CHECKING:  # a process that extracts needs no chunker
    from kb.ingest.chunking.chunker import Kind

__all__ = ["FORMATS", "Format", "Ocr", "Part", "Source", "load_all", "members", "parts"]


@dataclass(frozen=True, slots=True)
class Format:
    """How one document type is read, and how its text is chunked."""

    module: str  # in this package, with a function `parts(source, ocr)`; in `containers` also with `members(source)`
    kind: "Kind"


FORMATS: dict[DocType, Format] = {
    "pdf": Format("pdf", "text"),
    "docx": Format("docx", "markdown"),
    "pptx": Format("pptx", "markdown"),
    "xlsx": Format("xlsx", "text"),
    "html": Format("html", "markdown"),
    "image": Format("image", "text"),
    "svg": Format("svg", "text"),
    "markdown": Format("markdown", "markdown"),
    "text": Format("text", "text"),
    "code": Format("code", "code"),
    "odt": Format("odt", "markdown"),
    "odp": Format("odp", "markdown"),
    "ods": Format("ods", "text"),
    "xls": Format("xls", "text"),
    "xlsb": Format("xlsb", "text"),
    "epub": Format("epub", "markdown"),
    "notebook": Format("notebook", "text"),
    "conversation": Format("conversation", "markdown"),
    "rtf": Format("rtf", "markdown"),
    "archive": Format("containers.archive", "text"),
    "mail": Format("containers.mail", "text"),
    "mailbox": Format("containers.mailbox", "text"),
    "doc": Format("doc", "markdown"),
    "ppt": Format("ppt", "markdown"),
}

# What libraries import inside a function: `Counter.most_common`, Pillow with the first picture of a kind, `email`.
PILLOW = "Avif Bmp Gif Jpeg Mpo Png Ppm Tiff WebP".split()
LATE = ("heapq", "email.parser", "email.generator", *(f"PIL.{form}ImagePlugin" for form in PILLOW))


def load_all() -> None:
    """Import every extractor with its libraries: inside the sandbox nothing can be imported later."""
    load(*(form.module for form in FORMATS.values()))
    import_module(f"{__name__}.encoding").prepare()
    import_module(f"{__name__}.languages").load_all()


def load(*modules: str) -> None:
    """Import some modules of this package with what libraries import late."""
    for name in (*(f"{__name__}.{module}" for module in modules), *LATE):
        import_module(name)
    for encoding in pkgutil.iter_modules(encodings.__path__):  # a text may be written in any of them
        with suppress(LookupError):
            codecs.lookup(encoding.name)


def parts(doc_type: DocType, source: Source, ocr: Ocr) -> Iterator[Part]:
    """Yield the parts of a file. If none of them has any text, raise a failure that says what was found instead."""
    module = import_module(f"{__name__}.{FORMATS[doc_type].module}")
    textless: list[Part] = []
    found = False
    for part in module.parts(source, ocr):
        found = found or bool(part.text.strip())
        if not found:
            textless.append(part)
        encoded = encoded_spans(part.text)
        yield replace(part, encoded=encoded) if encoded else part
    if not found:
        raise nothing_found(textless)


def members(doc_type: DocType, source: Source) -> Iterator[Member]:
    """Yield the files in an archive, a mail or a mailbox."""
    found: Iterator[Member] = import_module(f"{__name__}.{FORMATS[doc_type].module}").members(source)
    return found


def nothing_found(parts: list[Part]) -> JobFailure:
    """ "No text found: 12 pages, OCR off." """
    # What is read of one part in several pieces counts once.
    units = Counter(
        unit for unit, _ in dict.fromkeys((part.name.split()[0], part.number) for part in parts if " " in part.name)
    )
    counted = [f"{count} {unit}{'s' if count > 1 else ''}" for unit, count in units.items()]
    failed = Counter(part.outcome for part in parts if part.outcome.state == "failed")
    if not failed:
        return JobFailure("no_text", f"No text found: {', '.join(counted) or 'there is nothing to read in it'}.")
    worst = failed.most_common(1)[0][0]
    return JobFailure(worst.code, f"No text found: {', '.join([*counted, worst.reason or ''])}.")
