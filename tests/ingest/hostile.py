"""The sandboxed program, with extractors that do what broken or hostile parsers do; the file's name says what."""

import ctypes
import os
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from kb.ingest import sandboxed
from kb.ingest.extract import Ocr, Part, Source
from kb.nouns import DocType


def parts(_: DocType, source: Source, ocr: Ocr) -> Iterator[Part]:
    yield from BEHAVIOURS[source.name](source, ocr)


def fine(source: Source, _: Ocr) -> Iterator[Part]:
    yield Part("text", "all is well", metadata={"pid": os.getpid()})


def segfault(source: Source, _: Ocr) -> Iterator[Part]:
    yield Part("page 1", "before")
    ctypes.string_at(0)


def abort(source: Source, _: Ocr) -> Iterator[Part]:
    yield from (os.abort() for _ in "x")


def leave(source: Source, _: Ocr) -> Iterator[Part]:
    yield Part("page 1", "before")
    os._exit(0)


def hang(source: Source, _: Ocr) -> Iterator[Part]:
    yield Part("page 1", "before", metadata={"pid": os.getpid()})
    while True:
        time.sleep(1)


def hog(source: Source, _: Ocr) -> Iterator[Part]:
    yield Part("page 1", "before")
    held = []
    while True:
        held.append(b"x" * 2**23)


def recursion(source: Source, ocr: Ocr) -> Iterator[Part]:
    yield from recursion(source, ocr)


def flood(source: Source, _: Ocr) -> Iterator[Part]:
    yield Part("text", "x" * 2**22)


def chatter(source: Source, _: Ocr) -> Iterator[Part]:
    os.write(1, b"a library prints what it likes")
    os.write(2, b"e" * 2**20) if source.path.exists() else None
    yield Part("text", "all is well")


def reach_out(source: Source, _: Ocr) -> Iterator[Part]:
    try:
        socket.socket()
        yield Part("text", "a socket was opened")
    except PermissionError:
        yield Part("text", "refused")
    if sys.platform == "linux":
        yield Part("text", "refused" if ctypes.CDLL(None).socket(2, 1, 0) < 0 else "a socket was opened below Python")


def write_out(source: Source, _: Ocr) -> Iterator[Part]:
    try:
        Path(source.path).write_text("x")
        yield Part("text", "a file was written")
    except OSError:
        yield Part("text", "refused")


def scan(source: Source, ocr: Ocr) -> Iterator[Part]:
    from PIL import Image

    for number in (1, 2):
        found = ocr.read(Image.new("L", (number, 1)))
        yield Part(f"page {number}", found.text, outcome=found.outcome)


class CrashingReader:
    """Reads nothing from a picture of one pixel, and dies of it."""

    def text(self, pixels: bytes, width: int, height: int) -> str:
        if width == 1:
            os.abort()
        return "read"


BEHAVIOURS = {
    function.__name__: function
    for function in (fine, segfault, abort, leave, hang, hog, recursion, flood, chatter, reach_out, write_out, scan)
}

if __name__ == "__main__":
    vars(sandboxed).update(parts=parts, load_reader=lambda _: CrashingReader())
    sandboxed.main(int(sys.argv[1]), float(sys.argv[2]))
