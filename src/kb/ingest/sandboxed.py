"""The program inside a sandbox: takes one request after the other, answers in frames, ends when nobody asks.

    kb.ingest.sandboxed MEMORY_BYTES IDLE_SECONDS

Requests: `extract` a file (answers: `part`s, `read` when an image has to be read, `end` or `failure`) and `read` an
image (answers: `text` or `failure`).
"""

import os
import select
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kb.errors import JobFailure
from kb.ingest.confine import confine
from kb.ingest.extract import Source, parts
from kb.ingest.extract.tools import Reading, reading, unread
from kb.ingest.frames import HEAD, Frame, pack, unpack
from kb.ingest.ocr import Reader, load_reader
from kb.nouns import FailureCode

if TYPE_CHECKING:
    from PIL.Image import Image


OUR_OWN_FAULT = (AttributeError, NameError, TypeError, AssertionError, ImportError)


class Pipe:
    """The connection to the engine: what libraries print goes nowhere near it."""

    def __init__(self) -> None:
        self._in = os.dup(0)
        self._out = os.dup(1)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1):
            os.dup2(nowhere, standard)
        os.set_blocking(2, False)  # nobody reads along: what does not fit into the pipe is dropped

    def send(self, message: dict[str, Any], payload: bytes = b"") -> None:
        data = memoryview(pack(Frame(message, payload)))
        while data:
            data = data[os.write(self._out, data) :]

    def receive(self) -> Frame:
        message_bytes, payload_bytes = HEAD.unpack(self._exactly(HEAD.size))
        return unpack(self._exactly(message_bytes + payload_bytes), message_bytes)

    def waits(self, seconds: float) -> bool:
        """Whether a request came within that time."""
        return bool(select.select([self._in], [], [], seconds)[0])

    def _exactly(self, size: int) -> bytearray:
        data = bytearray()
        while len(data) < size:
            piece = os.read(self._in, size - len(data))
            if not piece:
                sys.exit()  # the engine closed the pipe
            data += piece
        return data


class RemoteOcr:
    """Has images read in a process that holds the models, by way of the engine."""

    def __init__(self, pipe: Pipe, missing: str | None, missing_code: FailureCode) -> None:
        self._pipe = pipe
        self._missing = missing
        self._missing_code = missing_code

    def read(self, image: "Image") -> Reading:
        if self._missing:
            return unread(self._missing, self._missing_code)
        gray = image.convert("L")
        self._pipe.send({"kind": "read", "width": gray.width, "height": gray.height}, gray.tobytes())
        answer = self._pipe.receive()
        if failure := answer.message.get("failure"):
            return unread(failure, "ocr_failed")
        return reading(answer.payload.decode())


def extract(pipe: Pipe, request: dict[str, Any]) -> None:
    source = Source(Path(request["path"]), request["name"], request["force_ocr"])
    ocr = RemoteOcr(pipe, request["ocr_missing"], request["ocr_missing_code"])
    for part in parts(request["doc_type"], source, ocr):
        pipe.send({"kind": "part", "part": part.message()}, part.text.encode("utf-8", "replace"))
    pipe.send({"kind": "end"})


class Server:
    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe
        self._reader: Reader | None = None  # loaded with the first image

    def answer(self, request: Frame) -> None:
        try:
            if request.message["do"] == "extract":
                extract(self._pipe, request.message)
            else:
                self._pipe.send({"kind": "text"}, self._read(request).encode("utf-8", "replace"))
        except JobFailure as failure:
            self._fail(failure.code, failure.message)
        except MemoryError:
            self._fail("out_of_memory", "Reading it takes more memory than is allowed.")
        except RecursionError:
            self._fail("too_complex", "It is nested too deeply to be read.")
        except Exception as error:  # noqa: BLE001 - a parser that stumbles over a file says nothing about the next one
            code: FailureCode = "internal" if isinstance(error, OUR_OWN_FAULT) else "corrupt"
            self._fail(code, f"It cannot be read: {type(error).__name__}: {str(error)[:300]}")

    def _read(self, request: Frame) -> str:
        message = request.message
        self._reader = self._reader or load_reader(message["engine"])
        return self._reader.text(request.payload, message["width"], message["height"])

    def _fail(self, code: FailureCode, message: str) -> None:
        self._pipe.send({"kind": "failure", "code": code, "message": message})


def main(memory_bytes: int, idle_seconds: float) -> None:
    pipe = Pipe()
    confine(memory_bytes)
    server = Server(pipe)
    while pipe.waits(idle_seconds):
        server.answer(pipe.receive())


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
