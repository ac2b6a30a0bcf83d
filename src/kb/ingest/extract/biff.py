"""The records of an old workbook (BIFF8): whether it is encrypted, and what comments and text boxes say.

The cells themselves are read by a library, which leaves both out.
"""

import struct
from collections import defaultdict
from collections.abc import Iterator

from kb.ingest.extract.columns import column_name
from kb.ingest.extract.tidy import one_line
from kb.ingest.extract.workbook import Piece

BOF, EOF, CONTINUE, FILEPASS, SHEET = 0x809, 0x0A, 0x3C, 0x2F, 0x85
NOTE, OBJECT, TEXT = 0x1C, 0x5D, 0x1B6
SAID = (NOTE, OBJECT, TEXT, CONTINUE)
NAME = 7  # where the name of a sheet begins, with the byte that says how wide it is
NOTE_HEAD = struct.Struct("<5H")
HEAD = struct.Struct("<HH")  # of a record: its kind, its length

Record = tuple[int, int, bytes]  # where it starts, its kind, what it holds


def is_encrypted(stream: bytes) -> bool:
    first = (kind for _, kind, _ in records(stream) if kind in (FILEPASS, EOF))
    return next(first, EOF) == FILEPASS


def remarks(stream: bytes) -> dict[str, list[Piece]]:
    """Comments and text boxes by the name of their sheet; those of a damaged file as far as they can be read."""
    names: dict[int, str] = {}  # of the sheets, by where they start
    own: dict[str, list[Record]] = defaultdict(list)
    sheet, depth = "", 0
    for at, kind, data in records(stream):
        if kind == BOF:
            sheet = sheet if depth else names.get(at, "")
            depth += 1
        elif kind == EOF:
            depth -= 1
        elif kind == SHEET and len(data) > NAME:
            names[int.from_bytes(data[:4], "little")] = characters(data[NAME:], data[NAME - 1])
        elif sheet and kind in SAID:
            own[sheet].append((at, kind, data))
    found = ((name, "\n".join(lines(held))) for name, held in own.items())
    return {name: [(None, text)] for name, text in found if text}


def lines(sheet: list[Record]) -> Iterator[str]:
    """The comments of a sheet, each with its cell, then the texts of its other shapes."""
    texts = shape_texts(sheet)
    for _, kind, data in sheet:
        if kind == NOTE and len(data) > NOTE_HEAD.size:
            row, column, _, shape, length = NOTE_HEAD.unpack_from(data)
            author = one_line(characters(data[NOTE_HEAD.size :], length))
            if text := texts.pop(shape, ""):
                said = f"{author}: {text}" if author else text
                yield f"{column_name(column)}{row + 1} [{said}]"
    yield from filter(None, texts.values())


def shape_texts(sheet: list[Record]) -> dict[int, str]:
    """What is written in shapes, by their numbers. A text follows its shape, in pieces."""
    texts: dict[int, str] = {}
    shape = missing = 0
    for _, kind, data in sheet:
        if kind == OBJECT:
            shape = int.from_bytes(data[6:8], "little")
        if kind == TEXT:
            missing = int.from_bytes(data[10:12], "little")
        elif kind == CONTINUE and missing > 0:
            piece = characters(data, missing)
            texts[shape] = one_line(texts.get(shape, "") + piece)
            missing -= max(len(piece.encode("utf-16-le", "surrogatepass")) // 2, 1)
        else:
            missing = 0
    return texts


def records(stream: bytes) -> Iterator[Record]:
    at = 0
    while at + HEAD.size <= len(stream):
        kind, length = HEAD.unpack_from(stream, at)
        yield at, kind, stream[at + HEAD.size : at + HEAD.size + length]
        at += HEAD.size + length


def characters(data: bytes, count: int) -> str:
    """A text behind the byte that says how wide its characters are."""
    if data[:1] == b"\x01":
        return data[1 : 1 + 2 * count].decode("utf-16-le", "replace")
    return data[1 : 1 + count].decode("latin-1")
