"""One mail: its headers and its text; each attachment is a document of its own."""

import re
from collections.abc import Iterator

from kb.ingest.extract.containers import eml, msg
from kb.ingest.extract.containers.letter import Letter
from kb.ingest.extract.detect import OLE, narrow
from kb.ingest.extract.member import Member
from kb.ingest.extract.part import Part
from kb.ingest.extract.tools import Ocr, Source

FIRST_LINE = re.compile(rb"From [^\n]*\n")  # of a mailbox, which some programs put before a single mail


def parts(source: Source, _: Ocr) -> Iterator[Part]:
    yield from letter(source).parts("message")


def members(source: Source) -> Iterator[Member]:
    yield from letter(source).members()


def letter(source: Source) -> Letter:
    with source.open() as file:
        is_ole = file.read(len(OLE)) == OLE
    return msg.letter_of(source) if is_ole else eml.letter_of(without_sender(narrow(source.read_bytes()).lstrip()))


def without_sender(data: bytes) -> bytes:
    return FIRST_LINE.sub(b"", data, count=1) if FIRST_LINE.match(data) else data
