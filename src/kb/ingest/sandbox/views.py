"""Pages, boxes and cells of an original, made in sandboxed processes that do nothing else.

Every answer of such a process is checked field by field, as in `answers.py`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from kb.core.errors import JobFailure, Unavailable
from kb.core.types import Json
from kb.core.values import DocType
from kb.ingest.extract import Source
from kb.ingest.sandbox.answers import MAX_NUMBER, Failed, senseless
from kb.ingest.sandbox.frames import Frame
from kb.ingest.sandbox.pool import Pool
from kb.ingest.sandbox.process import PROGRAM, ProcessLimits

VIEW_LIMITS = ProcessLimits(memory_mb=768, seconds=15, output_mb=32, idle_seconds=300)
JPEG = b"\xff\xd8\xff"

Length = Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)]
Box = tuple[Length, Length, Length, Length]  # left, top, right, bottom


@dataclass(frozen=True)
class PageDrawing:
    """A JPEG: the payload."""

    kind: Literal["drawing"]


@dataclass(frozen=True)
class FoundBoxes:
    """Where a passage stands on its page, in points from its upper left corner."""

    kind: Literal["places"]
    width: Length
    height: Length
    boxes: list[Box]
    exact: bool  # the boxes hold all of it


@dataclass(frozen=True)
class Cells:
    """Rows of texts: the payload, as JSON."""

    kind: Literal["cells"]


@dataclass(frozen=True)
class Beyond:
    """The page that was asked for is not there."""

    kind: Literal["beyond"]
    pages: Annotated[int, Field(ge=0, le=MAX_NUMBER)]


@dataclass(frozen=True)
class NoSheet:
    kind: Literal["no_sheet"]


View = PageDrawing | FoundBoxes | Cells | Beyond | NoSheet
VIEW: TypeAdapter[View | Failed] = TypeAdapter(Annotated[View | Failed, Field(discriminator="kind")])
Kind = TypeVar("Kind")
ROWS: TypeAdapter[list[list[str]]] = TypeAdapter(list[list[str]])


class Viewer:
    """For several threads. What goes wrong with a file is a JobFailure."""

    def __init__(self, limits: ProcessLimits = VIEW_LIMITS, program: Sequence[str] = PROGRAM) -> None:
        self._pool = Pool(limits, "show", program)
        self._closing = False

    def image(self, doc_type: DocType, original: Path, page: int, width: int) -> bytes | Beyond:
        """A page as a JPEG."""
        frame, answer = self._ask(original, {"ask": "image", "doc_type": doc_type, "page": page, "width": width})
        if isinstance(answer, PageDrawing) and frame.payload.startswith(JPEG):
            return frame.payload
        return expected(answer, Beyond)

    def boxes(
        self, doc_type: DocType, original: Path, page: int, text: str, start: int, end: int
    ) -> FoundBoxes | Beyond:
        """Where `text[start:end]` stands on a page; `text` is what was extracted of that page."""
        request = {"ask": "boxes", "doc_type": doc_type, "page": page, "start": start, "end": end}
        _, answer = self._ask(original, request, text.encode("utf-8", "replace"))
        return answer if isinstance(answer, FoundBoxes) else expected(answer, Beyond)

    def cells(self, original: Path, sheet: str, window: tuple[int, int, int, int]) -> list[list[str]] | None:
        """Cells of a sheet; None where there is no such sheet. See `kb.ingest.extract.cells`."""
        frame, answer = self._ask(original, {"ask": "cells", "sheet": sheet, "window": window})
        if isinstance(answer, Cells):
            try:
                return ROWS.validate_json(frame.payload, strict=True)
            except ValidationError as error:
                raise senseless(error) from None
        expected(answer, NoSheet)
        return None

    def close(self) -> None:
        self._closing = True
        self._pool.close()

    def _check(self) -> None:
        if self._closing:
            raise Unavailable("The engine is stopping. Try again when it runs.")

    def _ask(self, original: Path, request: Json, payload: bytes = b"") -> tuple[Frame, View]:
        process, frame = self._pool.ask(request, payload, Source(original, original.name), self._check)
        try:
            answer = VIEW.validate_json(frame.message, strict=True)
        except ValidationError as error:
            process.kill()
            raise senseless(error) from None
        self._pool.give_back(process)
        if isinstance(answer, Failed):
            raise JobFailure(answer.code, answer.message)
        return frame, answer


def expected(answer: View, kind: type[Kind]) -> Kind:
    if not isinstance(answer, kind):
        raise senseless(ValueError(f"It answers with {type(answer).__name__}."))
    return answer
