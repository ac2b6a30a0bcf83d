"""Extraction in separate processes: a crash, a hang or a lack of memory fails one job, and the next one runs at once.

Images are read in one further process, which alone holds the OCR models and has limits of its own. It ends when
no image came for a while, and its memory is free again. Nothing is started before the first file needs it.
"""

import logging
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, suppress
from functools import cache
from tempfile import TemporaryFile

from kb.core.errors import JobFailure
from kb.core.types import Interrupt, Json
from kb.core.values import DocType, Symbol
from kb.ingest.extract import Part, Source
from kb.ingest.extract.member import Member
from kb.ingest.sandbox.answers import (
    End,
    Extracted,
    ExtractedPart,
    Failed,
    MemberEnd,
    MemberFound,
    Picture,
    Piece,
    extracted,
    read,
)
from kb.ingest.sandbox.ocr import OcrChoice
from kb.ingest.sandbox.pool import Pool
from kb.ingest.sandbox.process import PROGRAM, TICK, GoneError, Process, ProcessLimits, Work

log = logging.getLogger(__name__)

EXTRACT_LIMITS = ProcessLimits(memory_mb=768, seconds=60, output_mb=128, idle_seconds=60)
OCR_LIMITS = ProcessLimits(memory_mb=1280, seconds=180, output_mb=16, idle_seconds=20)
DOCUMENT_MB = 256  # of text in all
DOCUMENT_SECONDS = 1800  # that extraction may take in all, OCR apart


class Sandbox:
    """For several threads: each extraction has a process to itself until it ends."""

    def __init__(
        self,
        choose_ocr: Callable[[], OcrChoice],
        limits: ProcessLimits = EXTRACT_LIMITS,
        ocr_limits: ProcessLimits = OCR_LIMITS,
        program: Sequence[str] = PROGRAM,
    ) -> None:
        self._choose_ocr = cache(choose_ocr)  # looking for Tesseract takes a moment: not at start
        self._ocr_limits = ocr_limits
        self._program = program
        self._pool = Pool(limits, "extract", program)
        self._reading = threading.Lock()  # one image at a time, in one process: OCR takes much memory
        self._reader: Process | None = None

    def parts(
        self, doc_type: DocType, source: Source, interrupt: Interrupt, before_ocr: Interrupt = lambda: None
    ) -> Generator[Part]:
        """Yield the parts of a file. `interrupt` raises when the work should stop, even in the middle of a page.

        `before_ocr` is called before each image is read, and may raise too.
        """
        with closing(self._answers(doc_type, source, interrupt, before_ocr)) as answers:
            for answer in answers:
                if not isinstance(answer, ExtractedPart):
                    raise out_of_place()
                part = answer.part
                del answer  # a part may be large
                yield part
                del part

    def members(self, doc_type: DocType, source: Source, interrupt: Interrupt) -> Generator[Member]:
        """Yield the members of a file. What is not read of one is dropped when the next one is asked for."""
        with closing(self._answers(doc_type, source, interrupt, members=True)) as answers:
            for answer in answers:
                if not isinstance(answer, MemberFound):
                    raise out_of_place()
                pieces = pieces_of(answers)
                yield Member(answer.about, pieces)
                with suppress(MemberFailure):
                    for _ in pieces:
                        interrupt()

    def _answers(
        self,
        doc_type: DocType,
        source: Source,
        interrupt: Interrupt,
        before_ocr: Interrupt = lambda: None,
        *,
        members: bool = False,
    ) -> Generator[Extracted]:
        """Yield what a process says about a file, but for the images that it wants to have read."""
        ocr = self._choose_ocr()
        request: Json = {
            "doc_type": doc_type,
            "members": members,
            "name": source.name,
            "force_ocr": source.force_ocr,
            "ocr_pages": sorted(source.ocr_pages),
            "ocr_missing": ocr.missing,
            "ocr_missing_code": ocr.missing_code,
        }
        process, frame = self._pool.ask(request, b"", source, interrupt)
        size = 0
        waited = 0.0
        try:
            while not isinstance(answer := extracted(frame), End | Failed):
                if isinstance(answer, Picture):
                    before_ocr()
                    process.send(*self._read(answer, frame.payload, interrupt), interrupt)
                else:
                    size += len(frame.payload) if isinstance(answer, ExtractedPart) else 0
                    if size > DOCUMENT_MB * 2**20:
                        raise JobFailure("too_complex", f"It holds more than {DOCUMENT_MB} MB of text.")
                    del frame  # the answer holds its text
                    yield answer
                    del answer
                asked = time.monotonic()
                frame = process.receive(interrupt)
                waited += time.monotonic() - asked
                if waited > DOCUMENT_SECONDS:
                    raise JobFailure("timeout", f"Reading it takes more than {DOCUMENT_SECONDS // 60} minutes.")
        except GoneError:
            raise JobFailure("crashed", "The process that read it ended in the middle.") from None
        except BaseException:
            process.kill()  # failed, cancelled, or closed before the last part
            raise
        self._pool.give_back(process)
        if isinstance(answer, Failed):
            raise JobFailure(answer.code, answer.message)

    def close(self) -> None:
        self._pool.close()
        with self._reading:
            if self._reader:
                self._reader.kill()

    def symbols(self, filename: str, text: str, interrupt: Interrupt) -> list[Symbol]:
        """The definitions in the stored text of a program; none if it cannot be read once more."""
        with TemporaryFile() as file:
            file.write(text.encode("utf-8", "replace"))
            file.flush()
            try:
                parts = list(self.parts("code", Source(file.fileno(), filename), interrupt))
            except JobFailure as failure:
                log.warning("%s is cut by lines, because its functions were not found: %s", filename, failure.message)
                return []
        return parts[0].symbols if parts[0].text == text else []

    def _read(self, picture: Picture, pixels: bytes, interrupt: Interrupt) -> tuple[Json, bytes]:
        """Read the text in an image. A failure concerns its page, not the whole document."""
        engine = self._choose_ocr().engine
        if engine is None:
            raise JobFailure("crashed", "The process that read it asked for OCR, which there is not.")
        while not self._reading.acquire(timeout=TICK):
            interrupt()
        try:
            return self._text(engine, picture, pixels, interrupt)
        except JobFailure as failure:
            return {"failure": f"OCR failed: {failure.message}"}, b""
        finally:
            self._reading.release()

    def _text(self, engine: Work, picture: Picture, pixels: bytes, interrupt: Interrupt) -> tuple[Json, bytes]:
        while True:
            process, self._reader = self._reader, None
            if process is None or not process.alive:
                process = Process(self._ocr_limits, engine, self._program)
            try:
                process.send({"width": picture.width, "height": picture.height}, pixels, interrupt)
                frame = process.receive(interrupt)
                answer = read(frame)
            except GoneError:
                continue
            except BaseException:
                process.kill()
                raise
            self._reader = process
            if isinstance(answer, Failed):
                raise JobFailure(answer.code, answer.message)
            return {"boxes": answer.boxes}, frame.payload


class MemberFailure(JobFailure):
    """A member cannot be read; those behind it can."""


def pieces_of(answers: Iterator[Extracted]) -> Iterator[bytes]:
    """The bytes of a member, up to its end."""
    for answer in answers:
        if isinstance(answer, MemberEnd):
            if answer.failure is not None:
                raise MemberFailure("corrupt", answer.failure)
            return
        if not isinstance(answer, Piece):
            raise out_of_place()
        yield answer.data
    raise out_of_place()


def out_of_place() -> JobFailure:
    return JobFailure("crashed", "The process that read it gave answers in an order that makes no sense.")
