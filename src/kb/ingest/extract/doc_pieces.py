"""The text of a DOC file as Word keeps it: pieces in any order, and runs of properties that lie beside them.

Places are bytes of the stream that holds the text. Two kinds of pages of 512 bytes say which properties hold from one
place to the next: of paragraphs, and of characters.
"""

import struct
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from kb.core.errors import JobFailure

IDENT, FIRST_VERSION = 0xA5EC, 0xC1  # of Word 97
ENCRYPTED, SECOND_TABLE = 0x0100, 0x0200
LENGTHS = 0x4C  # of the document's text, in the header
PIECES, CHARACTERS, PARAGRAPHS = 0x1A2, 0xFA, 0x102  # where the header says which bytes of the table describe them
COMPRESSED = 0x40000000
PAGE = 512
MAX_PIECES = 1_000_000
OPERAND_BYTES = {0: 1, 1: 1, 2: 2, 3: 4, 4: 2, 5: 2, 7: 3}  # by the kind of a property; 6 says it itself
LONG_OPERANDS = (0xD608, 0xC615)  # which say it in other ways; what follows them decides nothing here


class Lengths(NamedTuple):
    """How many characters each kind of text has, in the order in which they follow each other."""

    main: int
    footnotes: int
    margins: int
    macros: int
    comments: int
    endnotes: int
    boxes: int
    margin_boxes: int


@dataclass(frozen=True, slots=True)
class Run:
    end: int  # the byte after the last
    style: int
    properties: dict[int, int]


class Runs:
    """Properties by place."""

    def __init__(self, found: list[tuple[int, Run]]) -> None:
        found.sort(key=lambda run: run[0])
        self._starts = [start for start, _ in found]
        self._runs = [run for _, run in found]

    def at(self, place: int) -> Run | None:
        index = bisect_right(self._starts, place) - 1
        return self._runs[index] if index >= 0 and place < self._runs[index].end else None


class Piece(NamedTuple):
    text: str
    start: int  # its first byte
    width: int  # bytes of a character


class WordText:
    def __init__(self, main: bytes, tables: tuple[bytes, bytes]) -> None:
        if len(main) < PIECES + 8:
            raise JobFailure("corrupt", "The document is cut off or damaged: its header is missing.")
        ident, version = struct.unpack_from("<HH", main)
        (flags,) = struct.unpack_from("<H", main, 0x0A)
        if ident != IDENT or version < FIRST_VERSION:
            raise JobFailure(
                "unsupported_format", "It is a document of Word 95 or older. Save it as DOCX or PDF and add that."
            )
        if flags & ENCRYPTED:
            raise JobFailure("encrypted", "The document is protected with a password.")
        self._main = main
        self._table = tables[1 if flags & SECOND_TABLE else 0]
        self.lengths = Lengths(*(max(0, one) for one in struct.unpack_from("<8i", main, LENGTHS)))
        self.paragraphs = Runs(list(self._runs(PARAGRAPHS, is_paragraph=True)))
        self.characters = Runs(list(self._runs(CHARACTERS, is_paragraph=False)))

    def pieces(self) -> Iterator[Piece]:
        """The text in order."""
        table = self._described(PIECES)
        at = 0
        while at < len(table) and table[at] == 1:  # properties that some pieces share
            at += 3 + struct.unpack_from("<H", table, at + 1)[0]
        if at + 5 > len(table) or table[at] != 2:
            raise JobFailure("corrupt", "The document is cut off or damaged: where its text stands is not known.")
        (size,) = struct.unpack_from("<I", table, at + 1)
        count = min((min(size, len(table) - at - 5) - 4) // 12, MAX_PIECES)
        if count < 1:
            return
        ends = struct.unpack_from(f"<{count + 1}I", table, at + 5)
        left = len(self._main)  # no byte belongs to two pieces: what says so would have no end
        for number in range(count):
            (place,) = struct.unpack_from("<I", table, at + 5 + 4 * (count + 1) + 8 * number + 2)
            length = max(0, ends[number + 1] - ends[number])
            start, width = (place & ~COMPRESSED, 2) if not place & COMPRESSED else ((place & ~COMPRESSED) // 2, 1)
            data = self._main[start : start + width * length]
            left -= len(data)
            if left < 0:
                raise JobFailure("corrupt", "The document is damaged: its pieces overlap.")
            yield Piece(data.decode("cp1252" if width == 1 else "utf-16-le", "replace"), start, width)

    def _described(self, entry: int) -> bytes:
        start, size = struct.unpack_from("<II", self._main, entry)
        return self._table[start : start + size]

    def _runs(self, entry: int, *, is_paragraph: bool) -> Iterator[tuple[int, Run]]:
        listed = self._described(entry)
        count = (len(listed) - 4) // 8
        pages = struct.unpack_from(f"<{count}I", listed, 4 * (count + 1)) if count > 0 else ()
        for page in dict.fromkeys(pages):
            data = self._main[page * PAGE : (page + 1) * PAGE]
            if len(data) == PAGE:
                yield from page_runs(data, is_paragraph=is_paragraph)


def page_runs(page: bytes, *, is_paragraph: bool) -> Iterator[tuple[int, Run]]:
    count, step = page[-1], 13 if is_paragraph else 1
    if 4 * (count + 1) + step * count >= PAGE:
        return
    places = struct.unpack_from(f"<{count + 1}I", page)
    for number in range(count):
        at = 2 * page[4 * (count + 1) + step * number]
        said = described(page, at, is_paragraph=is_paragraph) if at else b""
        style = struct.unpack_from("<H", said)[0] if is_paragraph and len(said) >= 2 else 0
        yield places[number], Run(places[number + 1], style, properties(said[2:] if is_paragraph else said))


def described(page: bytes, at: int, *, is_paragraph: bool) -> bytes:
    """The bytes of a page that begin with how many they are."""
    size = page[at]
    if not is_paragraph:
        return page[at + 1 : at + 1 + size]
    if size:
        return page[at + 1 : at + 2 * size]
    return page[at + 2 : at + 2 + 2 * page[at + 1]] if at + 1 < PAGE else b""


def properties(said: bytes) -> dict[int, int]:
    """Properties and the first byte of what they are set to."""
    found: dict[int, int] = {}
    at = 0
    while at + 3 <= len(said):
        (code,) = struct.unpack_from("<H", said, at)
        if code in LONG_OPERANDS:
            break
        found[code] = said[at + 2]
        at += 2 + OPERAND_BYTES.get(code >> 13, said[at + 2] + 1)
    return found
