"""The sandboxed program, with extractors that do what broken or hostile parsers do; the file's name says what."""

import ctypes
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent.parent))
import attacks
from kb.core.values import DocType
from kb.ingest.extract import Ocr, Part, Source
from kb.ingest.extract.tools import ReadLine
from kb.ingest.sandbox import program
from kb.ingest.sandbox.confine import Needs


def parts(_: DocType, source: Source, ocr: Ocr) -> Iterator[Part]:
    yield from BEHAVIOURS[source.name.partition(" ")[0]](source, ocr)


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
    os.write(2, b"e" * 2**20)
    yield Part("text", "all is well")


def attack(source: Source, _: Ocr) -> Iterator[Part]:
    """`attack NAME TARGET`: whether it succeeded."""
    name, target = source.name.split(" ", 2)[1:]
    try:
        attacks.ATTACKS[name](target.encode())
    except OSError:
        yield Part("text", "refused")
    else:
        yield Part("text", "succeeded")


def environment(source: Source, _: Ocr) -> Iterator[Part]:
    yield Part("text", " ".join(sorted(os.environ)))


def say(source: Source, _: Ocr) -> Iterator[Part]:
    """`say JSON`: an answer of its own making."""
    PIPES[0].send(json.loads(source.name.partition(" ")[2]), b"text")
    yield Part("text", "all is well")


def scan(source: Source, ocr: Ocr) -> Iterator[Part]:
    from PIL import Image

    for number in (1, 2, 3):
        found = ocr.read(Image.new("L", (number, 1)))
        yield Part(f"page {number}", found.text, outcome=found.outcome)


class HostileReader:
    """Dies of a picture of one pixel, tries 32-bit code at one of three."""

    needs = Needs(compiles=True)

    def read(self, pixels: bytes, width: int, height: int) -> list[ReadLine]:
        if width == 1:
            os.abort()
        if width == 3:
            attacks.int_80(b"")
        return [ReadLine("read", (0, 0, 2, 1))]


BEHAVIOURS = {
    function.__name__: function
    for function in (fine, segfault, abort, leave, hang, hog, recursion, flood, chatter, attack, environment, say, scan)
}
PIPES: list[program.Pipe] = []


class Pipe(program.Pipe):
    def __init__(self) -> None:
        super().__init__()
        PIPES.append(self)


if __name__ == "__main__":
    vars(program).update(parts=parts, load_reader=lambda _: HostileReader(), Pipe=Pipe)
    program.main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
