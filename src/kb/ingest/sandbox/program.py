"""The program inside a sandbox: takes one request after the other, answers in frames, ends when it is idle.

    kb.ingest.sandbox.program WORK MEMORY_BYTES IDLE_SECONDS

WORK is what it does all its life, and no request changes it: `extract` files (answers: `part`s, `read` when an image
has to be read, or `member`s with their bytes; `end` or `failure`), `show` pages and cells of them (answers: see
`views.py`), or read images with `tesseract` or `rapidocr` (answers: `text` or `failure`).
Everything that the work needs is loaded before the first request is taken, and then the doors are closed.
"""

import json
import os
import select
import socket
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from kb.core.errors import JobFailure
from kb.core.values import FailureCode
from kb.ingest.extract import Source, load_all, members, parts
from kb.ingest.extract.member import Member
from kb.ingest.extract.tools import Reading, ReadLine, reading, unread
from kb.ingest.sandbox.confine import FONTS, Needs, bind, confine
from kb.ingest.sandbox.frames import HEAD, Frame, pack, unpack
from kb.ingest.sandbox.ocr import load_reader

if TYPE_CHECKING:
    from PIL.Image import Image


MAX_LINES = 5000  # of a page, whose places are told
OUR_OWN_FAULT = (AttributeError, NameError, TypeError, AssertionError, ImportError)


class Pipe:
    """The connection to the engine, which nothing that libraries print can reach."""

    def __init__(self) -> None:
        self._socket = socket.socket(fileno=os.dup(0))
        nowhere = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1):
            os.dup2(nowhere, standard)
        os.set_blocking(2, False)  # what does not fit into the pipe is dropped

    def send(self, message: dict[str, Any], payload: bytes = b"") -> None:
        data = memoryview(pack(message, payload))
        while data:
            data = data[os.write(self._socket.fileno(), data) :]

    def receive(self) -> tuple[Frame, list[int]]:
        """A frame, and the open files that came with it."""
        head, files, _, _ = socket.recv_fds(self._socket, HEAD.size, 1)
        message_bytes, payload_bytes = HEAD.unpack(head + self._exactly(HEAD.size - len(head)))
        return unpack(self._exactly(message_bytes + payload_bytes), message_bytes), files

    def waits(self, seconds: float) -> bool:
        """Wait this long for a request; return whether one came."""
        return bool(select.select([self._socket], [], [], seconds)[0])

    def _exactly(self, size: int) -> bytearray:
        data = bytearray()
        while len(data) < size:
            piece = self._socket.recv(size - len(data))
            if not piece:
                sys.exit()  # the engine closed the connection
            data += piece
        return data


@dataclass(frozen=True)
class RemoteOcr:
    """Asks the engine to have images read in the process that holds the OCR models."""

    _pipe: Pipe
    _missing: str | None  # why there is none
    _missing_code: FailureCode

    def read(self, image: "Image") -> Reading:
        if self._missing:
            return unread(self._missing, self._missing_code)
        gray = image.convert("L")
        self._pipe.send({"kind": "read", "width": gray.width, "height": gray.height}, gray.tobytes())
        answer, _ = self._pipe.receive()
        said = json.loads(answer.message)
        if "failure" in said:
            return unread(said["failure"], "ocr_failed")
        texts, boxes = answer.payload.decode(errors="replace").split("\n"), said["boxes"]
        return reading([ReadLine(*line) for line in zip(texts, boxes or [None] * len(texts), strict=True)])


class Service(Protocol):
    needs: Needs

    def answer(self, request: dict[str, Any], payload: bytes, files: list[int]) -> None: ...


class Extraction:
    needs = Needs(readable=FONTS)

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe
        load_all()

    def answer(self, request: dict[str, Any], payload: bytes, files: list[int]) -> None:  # noqa: ARG002
        source = Source(files[0], request["name"], request["force_ocr"], frozenset(request["ocr_pages"]))
        if request["members"]:
            for member in members(request["doc_type"], source):
                self._hand_over(member)
            self._pipe.send({"kind": "end"})
            return
        ocr = RemoteOcr(self._pipe, request["ocr_missing"], request["ocr_missing_code"])
        for part in parts(request["doc_type"], source, ocr):
            self._pipe.send({"kind": "part", "part": part.message()}, part.text.encode("utf-8", "replace"))
        self._pipe.send({"kind": "end"})

    def _hand_over(self, member: Member) -> None:
        """Send a member; a failure in the middle concerns nothing but itself."""
        self._pipe.send({"kind": "member", "about": member.about.told()})
        failure = None
        try:
            for piece in member.pieces:
                self._pipe.send({"kind": "piece"}, piece)
        except Exception as error:  # noqa: BLE001
            failure = failure_of(error)["message"]
        self._pipe.send({"kind": "member_end", "failure": failure})


class ImageReading:
    def __init__(self, pipe: Pipe, engine: str) -> None:
        self._pipe = pipe
        self._reader = load_reader(engine)
        self.needs = self._reader.needs

    def answer(self, request: dict[str, Any], payload: bytes, files: list[int]) -> None:  # noqa: ARG002
        lines = self._reader.read(payload, request["width"], request["height"])
        boxes = [line.box for line in lines] if len(lines) <= MAX_LINES else []
        text = "\n".join(line.text for line in lines)
        self._pipe.send({"kind": "text", "boxes": boxes}, text.encode("utf-8", "replace"))


def failure_of(error: Exception) -> dict[str, Any]:
    if isinstance(error, JobFailure):
        code, message = error.code, error.message
    elif isinstance(error, MemoryError):
        code, message = "out_of_memory", "Reading it takes more memory than is allowed."
    elif isinstance(error, RecursionError):
        code, message = "too_complex", "It is nested too deeply to be read."
    else:  # a parser that stumbles over a file says nothing about the next one
        code = "internal" if isinstance(error, OUR_OWN_FAULT) else "corrupt"
        message = f"It cannot be read: {type(error).__name__}: {str(error)[:300]}"
    return {"kind": "failure", "code": code, "message": message}


def load(work: str, pipe: Pipe) -> Service:
    if work == "extract":
        return Extraction(pipe)
    if work == "show":
        from kb.ingest.sandbox.showing import Showing  # noqa: PLC0415 - a process that reads images needs no PDFium

        return Showing(pipe.send)
    return ImageReading(pipe, work)


def serve(pipe: Pipe, work: Service) -> None:
    """Answer one request, also if it fails."""
    frame, files = pipe.receive()
    try:
        work.answer(json.loads(frame.message), frame.payload, files)
    except Exception as error:  # noqa: BLE001
        pipe.send(failure_of(error))
    finally:
        for descriptor in files:
            os.close(descriptor)


def main(name: str, memory_bytes: int, idle_seconds: float) -> None:
    pipe = Pipe()
    bind(memory_bytes)
    try:
        work = load(name, pipe)
    except Exception as error:  # noqa: BLE001 - a broken installation is reported as the answer
        pipe.receive()
        pipe.send(failure_of(error))
        return
    confine(work.needs)
    while pipe.waits(idle_seconds):
        serve(pipe, work)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
