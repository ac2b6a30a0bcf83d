"""The container that DOC and PPT files are: streams by name, and what the file says of itself."""

import struct
from contextlib import suppress

import olefile

from kb.core.errors import JobFailure
from kb.core.types import Json
from kb.ingest.extract.code_pages import page_of_number
from kb.ingest.extract.ooxml import refuse_encrypted
from kb.ingest.extract.tidy import detail
from kb.ingest.extract.titles import real_title
from kb.ingest.extract.tools import Source

MAX_BYTES = 200 * 2**20  # of a stream
BROKEN = (OSError, ValueError, struct.error, IndexError, KeyError, TypeError, OverflowError)  # what olefile raises
ABOUT = "\x05SummaryInformation"
CODE_PAGE, TITLE = 1, 2  # numbers of details
DETAILS = {4: "author", 3: "subject", 5: "keywords", 6: "description"}
MAX_DETAILS = 100
NUMBER, NARROW, WIDE = 2, 0x1E, 0x1F  # kinds of values


class Compound:
    def __init__(self, source: Source) -> None:
        refuse_encrypted(source.read_bytes())
        try:
            self._file = olefile.OleFileIO(source.open())
        except BROKEN as error:
            raise JobFailure("corrupt", f"The file is cut off or damaged: {error}") from None
        self._details: dict[int, str] = {}
        with suppress(JobFailure, struct.error):  # the text can be read without them
            self._details = details(self.stream(ABOUT))

    def stream(self, name: str) -> bytes:
        """What a stream holds; nothing if there is none."""
        try:
            if not self._file.exists(name):
                return b""
            if self._file.get_size(name) > MAX_BYTES:
                raise JobFailure("too_complex", f"A part of the file is larger than {MAX_BYTES // 2**20} MB.")
            data: bytes = self._file.openstream(name).read()
        except BROKEN as error:
            raise JobFailure("corrupt", f"A part of the file, {name!r}, cannot be read: {error}") from None
        return data

    @property
    def title(self) -> str | None:
        return real_title(self._details.get(TITLE))

    @property
    def metadata(self) -> Json:
        return {name: self._details[key] for key, name in DETAILS.items() if self._details.get(key)}


def details(data: bytes) -> dict[int, str]:
    """What a file says of itself, by number. olefile reads as many as a damaged file claims to have, for minutes."""
    if not data:
        return {}
    (start,) = struct.unpack_from("<I", data, 44)
    (count,) = struct.unpack_from("<I", data, start + 4)
    page = page_of_number(0)
    found: dict[int, str] = {}
    for number in range(min(count, MAX_DETAILS)):
        name, offset = struct.unpack_from("<II", data, start + 8 + 8 * number)
        kind, size = struct.unpack_from("<II", data, start + offset)
        value = data[start + offset + 8 :]
        if kind == NUMBER and name == CODE_PAGE:
            page = page_of_number(size & 0xFFFF)
        elif kind in (NARROW, WIDE):
            text = (
                value[:size].decode(page, "replace")
                if kind == NARROW
                else value[: 2 * size].decode("utf-16-le", "replace")
            )
            found[name] = detail(text.rstrip("\0"))
    return found
