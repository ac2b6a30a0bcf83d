"""What an extractor is given: the file, and a way to have images read."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from kb.ingest.extract.part import EMPTY, Outcome
from kb.ingest.extract.tidy import tidy
from kb.nouns import FailureCode

if TYPE_CHECKING:
    from PIL.Image import Image


@dataclass(frozen=True, slots=True)
class Source:
    """A file to extract. Its path says nothing: originals are named by their hash."""

    path: Path
    name: str  # as it was called when it was added
    force_ocr: bool = False  # read every page as an image, even one that has text


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read in an image, and how that went."""

    text: str
    outcome: Outcome


class Ocr(Protocol):
    def read(self, image: "Image") -> Reading: ...


def reading(text: str) -> Reading:
    text = tidy(text)
    return Reading(text, Outcome("ocr") if text else EMPTY)


def unread(reason: str, code: FailureCode) -> Reading:
    return Reading("", Outcome("failed", reason, code))
