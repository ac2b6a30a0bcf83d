"""Text in images: which engine reads it, and how what it found becomes lines.

Tesseract is used where it is installed with its data, because it is faster and smaller; RapidOCR comes with pip alone.
An engine is loaded inside a sandboxed process, never in the engine of kb.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from typing import Literal, Protocol

from kb.core.errors import JobFailure
from kb.core.values import FailureCode
from kb.ingest.extract.tools import Box, ReadLine
from kb.ingest.sandbox.confine import Needs, die_with

TESSERACT = "tesseract"
WITH_PLACES = ("-c", "tessedit_create_tsv=1")
TABLE = "level\tpage_num\t"  # how the table of words begins
COLUMNS = 12
WORD = "5"  # the level of a word
# What `ldd` says of a program: its libraries, and the loader that the kernel runs it with.
LIBRARY = re.compile(r"\s*\S+ => (/\S+)")
LOADER = re.compile(r"\s*(/\S+) \(")
LOADER_CACHE = Path("/etc/ld.so.cache")
DATA_FOLDER = re.compile(r'.* in "(/.*)"')
MAX_LANGUAGES = 4  # each makes reading slower


@dataclass(frozen=True, slots=True)
class OcrChoice:
    engine: Literal["tesseract", "rapidocr"] | None = None
    missing: str | None = None  # why there is none
    missing_code: FailureCode = "ocr_failed"  # what a document fails with that only OCR could have read


class Reader(Protocol):
    needs: Needs  # for reading, once it is loaded

    def read(self, pixels: bytes, width: int, height: int) -> list[ReadLine]:
        """The lines in a gray image; an empty one parts paragraphs."""


def choose(setting: str) -> OcrChoice:
    """What `KB_OCR` asks for, as far as it is installed."""
    if setting == "off":
        return OcrChoice(missing="OCR off", missing_code="no_text")
    if setting in ("auto", "tesseract") and spoken(tesseract_data()):  # installed, with data of some language
        return OcrChoice("tesseract")
    if setting in ("auto", "rapidocr") and find_spec("rapidocr"):
        return OcrChoice("rapidocr")
    missing = {"tesseract": "Tesseract not found", "rapidocr": "RapidOCR not installed"}
    return OcrChoice(missing=f"OCR failed: {missing.get(setting, 'neither Tesseract nor RapidOCR is installed')}")


def tesseract_data() -> list[str]:
    """What Tesseract has data for: languages, and `osd`, which tells how a page is turned."""
    return [line.strip() for line in told([TESSERACT, "--list-langs"])[1:] if line.strip()]


def told(command: list[str]) -> list[str]:
    """The lines that a program prints; none if it cannot be run."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return done.stdout.splitlines()


def spoken(data: list[str]) -> list[str]:
    """The languages, English first."""
    return sorted(set(data) - {"osd", "equ"}, key=lambda language: (language != "eng", language))


def load_reader(engine: str) -> Reader:
    if engine == "tesseract":
        return Tesseract()
    from kb.ingest.sandbox.rapid import RapidReader  # noqa: PLC0415 - heavy, and only needed with a first image

    return RapidReader()


class Tesseract:
    """The program, over pipes: it writes no file, and reads none but its own."""

    def __init__(self) -> None:
        data = tesseract_data()
        self._program = shutil.which(TESSERACT) or TESSERACT
        self._languages = "+".join(spoken(data)[:MAX_LANGUAGES])
        self._layout = "1" if "osd" in data else "3"  # whole pages, turned upright where that can be told
        libraries = told(["ldd", self._program])
        self.needs = Needs(
            readable=[LOADER_CACHE, *tessdata(), *paths(LIBRARY, libraries)],
            programs=[Path(self._program), *paths(LOADER, libraries)],
        )

    def read(self, pixels: bytes, width: int, height: int) -> list[ReadLine]:
        image = b"P5 %d %d 255\n" % (width, height) + pixels
        me = os.getpid()
        done = subprocess.run(
            [self._program, "stdin", "stdout", "-l", self._languages, "--psm", self._layout, *WITH_PLACES],
            input=image,
            capture_output=True,
            check=False,
            preexec_fn=lambda: die_with(me),
        )
        if done.returncode:
            raise JobFailure("ocr_failed", done.stderr.decode(errors="replace").strip()[-300:] or "Tesseract failed.")
        return lines(done.stdout.decode(errors="replace"))


def lines(told: str) -> list[ReadLine]:
    """The lines in what Tesseract tells: a table with a row for each word; from an old version, the text alone."""
    if not told.startswith(TABLE):
        return [ReadLine(line) for line in told.splitlines()]
    found: list[ReadLine] = []
    rows = [row.split("\t") for row in told.split("\n")[1:]]
    words = [row for row in rows if len(row) == COLUMNS and row[0] == WORD and row[-1].strip()]
    paragraph: list[str] = []
    for place, line in groupby(words, key=lambda row: row[1:5]):  # page, block, paragraph and line
        if found and place[:3] != paragraph:
            found.append(ReadLine(""))
        paragraph = place[:3]
        texts, boxes = [], []
        for row in line:
            left, top, width, height = (max(0, int(value)) for value in row[6:10])
            texts.append(row[-1])
            boxes.append((left, top, left + width, top + height))
        found.append(ReadLine(" ".join(texts), around(boxes)))
    return found


def around(boxes: Sequence[Box]) -> Box:
    """The smallest box that holds all of them."""
    left, top, right, bottom = zip(*boxes, strict=True)
    return min(left), min(top), max(right), max(bottom)


def paths(pattern: re.Pattern[str], lines: list[str]) -> list[Path]:
    return [Path(found[1]) for line in lines if (found := pattern.match(line))]


def tessdata() -> list[Path]:
    """The folders of Tesseract's data: the one that it names; version 3 names none."""
    named = paths(DATA_FOLDER, told([TESSERACT, "--list-langs"])[:1])
    return named or [Path(os.environ.get("TESSDATA_PREFIX", "/usr/share/tesseract-ocr"))]
