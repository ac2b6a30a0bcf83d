"""What an extractor is given: the file, and a way to have images read."""

import ctypes
import io
import mmap
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, Protocol

from kb.core.values import TENTHS, FailureCode, Line, LineBoxes
from kb.ingest.extract.part import EMPTY, Outcome
from kb.ingest.extract.traced import NOWHERE, Traced, joined, tidied

if TYPE_CHECKING:
    from PIL.Image import Image
    from typing_extensions import Buffer

Box = tuple[int, int, int, int]  # left, top, right, bottom, in pixels


@dataclass(frozen=True, slots=True)
class Source:
    """A file to extract. Inside the sandbox it is an open descriptor: no path can be opened there."""

    file: Path | int
    name: str  # as it was called when it was added
    force_ocr: bool = False  # read every page as an image, even one that has text
    ocr_pages: frozenset[int] = frozenset()  # read these pages as images, even if they have text

    def open(self) -> BinaryIO:
        """The file, to be read from its start; each call has a position of its own."""
        return self.file.open("rb") if isinstance(self.file, Path) else io.BufferedReader(Descriptor(self.file))

    def read_bytes(self) -> bytes:
        with self.open() as file:
            return file.read()

    def mapped(self) -> "ctypes.Array[ctypes.c_char]":
        """The file as mapped memory: the system reads pages when they are used, and may drop them again."""
        with self.open() as file:
            pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        return (ctypes.c_char * len(pages)).from_buffer(pages)


class Descriptor(io.RawIOBase):
    """A file that the caller opened and closes."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._size = os.fstat(descriptor).st_size
        self._position = 0

    def fileno(self) -> int:
        return self._descriptor

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        if start + offset < 0:
            raise OSError("A file has nothing before its start.")
        self._position = start + offset
        return self._position

    def readinto(self, buffer: "Buffer") -> int:
        read = os.preadv(self._descriptor, [buffer], self._position)
        self._position += read
        return read


class ReadLine(NamedTuple):
    """A line that was read in an image."""

    text: str
    box: Box | None = None  # where it stands, in pixels; None where that is not known


@dataclass(frozen=True, slots=True)
class Reading:
    """The text of an image, or why there is none."""

    text: str
    outcome: Outcome
    lines: Sequence[Line] = ()  # edges in pixels

    def boxes(self, start: int, scale: float, width: float, height: float) -> LineBoxes | None:
        """The lines of a part in which this text starts at `start`, of a page where a pixel is `scale` wide."""
        if not self.lines:
            return None
        return LineBoxes(
            round(width, 2),
            round(height, 2),
            [
                (first + start, last + start, *(round(edge * scale * TENTHS) for edge in edges))  # type: ignore[misc]
                for first, last, *edges in self.lines
            ],
        )


class Ocr(Protocol):
    def read(self, image: "Image") -> Reading: ...


def reading(read: Sequence[ReadLine]) -> Reading:
    """The lines as one text that is put right; where each of them is in it is known afterwards."""
    text = tidied(joined("\n", (Traced.of(line.text, number) for number, line in enumerate(read))))
    return Reading(text.text, Outcome("ocr") if text.text else EMPTY, list(placed(text.origins, read)))


def placed(origins: Sequence[int], read: Sequence[ReadLine]) -> Iterator[Line]:
    start = 0
    for number, run in groupby(origins):
        end = start + sum(1 for _ in run)
        box = read[number].box if number != NOWHERE else None
        if box is not None:
            yield (start, end, *box)
        start = end


def unread(reason: str, code: FailureCode) -> Reading:
    return Reading("", Outcome("failed", reason, code))
