"""The tokens of an RTF file: groups, control words, and bytes of text. What `\\bin` announces is left out."""

import re
from collections.abc import Iterator
from typing import NamedTuple

TOKEN = re.compile(
    rb"\\(?P<word>[A-Za-z]{1,32})(?P<number>-?[0-9]{1,10})?[ ]?"
    rb"|\\'(?P<hex>[0-9A-Fa-f]{2})"
    rb"|\\(?P<symbol>[^A-Za-z])"
    rb"|(?P<brace>[{}])"
    rb"|(?P<text>[^\\{}\r\n\0]+)",
    re.DOTALL,
)


class Token(NamedTuple):
    kind: str  # "{", "}", "word", "symbol", or "text"
    word: str = ""
    number: int | None = None
    text: bytes = b""
    encoded: bool = False  # a single byte, written as \'xx


def tokens(data: bytes) -> Iterator[Token]:
    at = 0
    while found := TOKEN.search(data, at):
        at = found.end()
        kind = found.lastgroup
        if kind == "text":
            yield Token("text", text=found[0])
        elif kind == "brace":
            yield Token(found[0].decode())
        elif kind == "hex":
            yield Token("text", text=bytes([int(found["hex"], 16)]), encoded=True)
        elif kind == "symbol":
            yield Token("symbol", found["symbol"].decode("latin-1"))
        else:
            word, number = found["word"].decode(), found["number"]
            value = None if number is None else int(number)
            if word == "bin":
                at += max(0, value or 0)
            else:
                yield Token("word", word, value)
