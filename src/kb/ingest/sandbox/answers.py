"""What a sandboxed process may say, checked field by field before the engine believes any of it.

A parser that was taken over says what it likes. Each kind of answer has fixed fields of fixed types; everything else
counts as a crash of that process.
"""

from dataclasses import astuple, replace
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from kb.core.errors import JobFailure
from kb.core.values import FailureCode, LineBoxes, Symbol
from kb.ingest.extract import Part
from kb.ingest.extract.member import About
from kb.ingest.sandbox.frames import Frame

MAX_NUMBER = 2**31  # of a page, a slide or a character
MAX_REASON = 2000  # characters
MAX_PATH = 4096
MAX_NAME = 100  # characters


Pixel = Annotated[int, Field(ge=0, lt=MAX_NUMBER)]


@dataclass(frozen=True)
class ExtractedPart:
    """A part; its text is the payload."""

    kind: Literal["part"]
    part: Part


@dataclass(frozen=True)
class Picture:
    """An image to be read: a byte for each pixel in the payload."""

    kind: Literal["read"]
    width: Annotated[int, Field(ge=1)]
    height: Annotated[int, Field(ge=1)]


@dataclass(frozen=True)
class Text:
    """What was read in an image: the payload."""

    kind: Literal["text"]
    boxes: list[tuple[Pixel, Pixel, Pixel, Pixel] | None]  # one for each line of the payload, or none at all


@dataclass(frozen=True)
class MemberFound:
    """A member; its pieces follow."""

    kind: Literal["member"]
    about: About


@dataclass(frozen=True)
class Piece:
    """Some bytes of a member: the payload."""

    kind: Literal["piece"]
    data: bytes = b""


@dataclass(frozen=True)
class MemberEnd:
    kind: Literal["member_end"]
    failure: Annotated[str, Field(max_length=MAX_REASON)] | None  # why not all of its bytes could be read


@dataclass(frozen=True)
class End:
    kind: Literal["end"]


@dataclass(frozen=True)
class Failed:
    kind: Literal["failure"]
    code: FailureCode
    message: Annotated[str, Field(max_length=MAX_REASON)]


Extracted = ExtractedPart | Picture | MemberFound | Piece | MemberEnd | End | Failed
Read = Text | Failed
EXTRACTED: TypeAdapter[Extracted] = TypeAdapter(Annotated[Extracted, Field(discriminator="kind")])
READ: TypeAdapter[Read] = TypeAdapter(Annotated[Read, Field(discriminator="kind")])


def extracted(frame: Frame) -> Extracted:
    """An answer of a process that extracts."""
    try:
        answer = EXTRACTED.validate_json(frame.message, strict=True)
        if isinstance(answer, ExtractedPart):
            part = replace(answer.part, text=frame.payload.decode())
            check(part)
            return replace(answer, part=part)
        if isinstance(answer, Piece):
            return replace(answer, data=frame.payload)
        if isinstance(answer, MemberFound):
            check_member(answer.about)
        if isinstance(answer, Picture) and answer.width * answer.height != len(frame.payload):
            raise ValueError("The picture has another size than its pixels.")
    except ValueError as error:
        raise senseless(error) from None
    return answer


def read(frame: Frame) -> Read:
    """An answer of a process that reads images."""
    try:
        answer = READ.validate_json(frame.message, strict=True)
        if isinstance(answer, Text) and len(answer.boxes) not in (0, frame.payload.count(b"\n") + 1):
            raise ValueError("There are other boxes than lines.")
    except ValueError as error:
        raise senseless(error) from None
    return answer


def check(part: Part) -> None:
    """What the types do not say."""
    if part.anchor.metadata is not None:
        raise ValueError("Metadata has passages of its own, which the engine makes.")
    numbers = [value for value in (part.number, part.total, *astuple(part.anchor)) if isinstance(value, int)]
    if not all(0 <= number < MAX_NUMBER for number in numbers):
        raise ValueError("A number is out of range.")
    edges = [0, *(edge for span in part.encoded for edge in span), len(part.text)]
    if edges != sorted(edges):
        raise ValueError("Encoded bytes stand outside of the text.")
    if part.lines is not None:
        check_lines(part.lines, len(part.text))
    check_symbols(part.symbols, len(part.text))


def check_member(about: About) -> None:
    """Its path is never a path of a file here, but it is shown and stored."""
    for text in (about.name, about.path, about.filename, about.message or "-"):
        if not 0 < len(text) <= MAX_PATH or not text.isprintable():
            raise ValueError("A member has no proper name.")
    if not 0 < about.number <= about.total < MAX_NUMBER:
        raise ValueError("A number is out of range.")


def check_lines(found: LineBoxes, characters: int) -> None:
    edges = [found.width, found.height, *(edge for line in found.lines for edge in line)]
    if not all(0 <= edge < MAX_NUMBER for edge in edges):
        raise ValueError("A line lies nowhere.")
    if any(not start < end <= characters for start, end, *_ in found.lines):
        raise ValueError("A line has other characters than its text.")


def check_symbols(symbols: list[Symbol], characters: int) -> None:
    """Each is inside of another or apart from it, outer ones first."""
    around = [(0, characters)]
    for start, end, name in symbols:
        while len(around) > 1 and around[-1][1] <= start:
            around.pop()
        if not (around[-1][0] <= start < end <= around[-1][1] and 0 < len(name) <= MAX_NAME):
            raise ValueError("A definition stands outside of the text or across another one.")
        around.append((start, end))


def senseless(error: ValueError) -> JobFailure:
    what = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
    return JobFailure("crashed", f"The process that read it gave an answer that makes no sense: {what[:200]}")
