"""RapidOCR, loaded inside a sandboxed process: boxes of text, put into reading order."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont
from rapidocr import EngineType, RapidOCR

from kb.core.errors import JobFailure
from kb.ingest.extract.tools import ReadLine
from kb.ingest.sandbox.confine import Needs

SURE = 0.9  # upright text is read more surely than that
STEEP = 0.8  # what a line that runs up or down counts
GUESS = 0.65  # below it, what was read is noise: Hebrew taken for Latin letters has .63
SAME_LINE = 0.5  # of a box's height: what overlaps by more stands on one line


@dataclass(frozen=True, slots=True)
class Box:
    left: float
    top: float
    right: float
    bottom: float
    text: str
    score: float  # how sure the recogniser is, 0..1

    @property
    def is_level(self) -> bool:
        return self.right - self.left >= self.bottom - self.top or len(self.text) == 1


class RapidReader:
    needs = Needs(compiles=True)  # OpenVINO makes code for the sizes that it meets

    def __init__(self) -> None:
        # The runtime that bulk embedding uses too.
        engine = EngineType.OPENVINO if find_spec("openvino") else EngineType.ONNXRUNTIME
        self._read = RapidOCR(
            params={
                "Global.use_cls": False,  # it turns upright lines upside down
                "Global.log_level": "critical",
                # Text is looked for in a smaller picture and read in the large one: memory grows with the first.
                "Det.limit_type": "max",
                "Det.limit_side_len": 960,
                **{f"{step}.engine_type": engine for step in ("Det", "Cls", "Rec")},
            }
        )

        self.read(*picture_of("Herons wait."))  # the models are loaded by the first picture that has words

    def read(self, pixels: bytes, width: int, height: int) -> list[ReadLine]:
        gray = np.frombuffer(pixels, np.uint8).reshape(height, width)
        best, turns = self._boxes(gray), 0
        if best and sureness(best) < SURE:  # it may lie on its side or stand on its head
            turned = [(self._boxes(np.rot90(gray, turns)), turns) for turns in (1, 2, 3)]
            best, turns = max([(best, 0), *turned], key=lambda found: sureness(found[0]))
        if best and sureness(best) < GUESS:
            raise JobFailure("ocr_failed", "there is writing, but not in a script or quality that RapidOCR can read.")
        return [
            ReadLine(" ".join(one.text for one in line), unturned(line, turns, width, height)) for line in lines(best)
        ]

    def _boxes(self, gray: NDArray[np.uint8]) -> list[Box]:
        found: Any = self._read(np.stack([gray] * 3, axis=-1))
        if not found.txts:
            return []
        read = zip(found.boxes, found.txts, found.scores, strict=True)
        return [box(corners, text, float(score)) for corners, text, score in read]


def picture_of(words: str) -> tuple[bytes, int, int]:
    picture = Image.new("L", (320, 64), "white")
    ImageDraw.Draw(picture).text((16, 8), words, "black", ImageFont.load_default(40))
    return picture.tobytes(), *picture.size


def sureness(boxes: Sequence[Box]) -> float:
    """How sure the recogniser is of what it read, letter by letter; 0 for nothing read.

    It also reads lines that run up or down, but then their order is not known: a turn that makes them level is better.
    """
    letters = sum(len(one.text) for one in boxes)
    sure = sum(one.score * len(one.text) * (1.0 if one.is_level else STEEP) for one in boxes)
    return sure / letters if letters else 0.0


def box(corners: Any, text: str, score: float) -> Box:
    xs, ys = corners[:, 0], corners[:, 1]
    return Box(float(xs.min()), float(ys.min()), float(xs.max()), float(ys.max()), text, score)


def unturned(line: Sequence[Box], turns: int, width: int, height: int) -> tuple[int, int, int, int]:
    """The box of a line in the original image. To be read, the image was turned left by `turns` quarter turns."""
    left, top = min(one.left for one in line), min(one.top for one in line)
    right, bottom = max(one.right for one in line), max(one.bottom for one in line)
    for size in ((width, height), (height, width), (width, height))[:turns][::-1]:
        left, top, right, bottom = size[0] - bottom, left, size[0] - top, right
    return round(max(left, 0)), round(max(top, 0)), round(max(right, 0)), round(max(bottom, 0))


def lines(boxes: Sequence[Box]) -> list[list[Box]]:
    """Boxes that stand beside each other make a line, read from left to right."""
    made: list[list[Box]] = []
    for one in sorted(boxes, key=lambda b: (b.top + b.bottom, b.left)):
        last = made[-1][-1] if made else None
        if last and min(last.bottom, one.bottom) - max(last.top, one.top) > SAME_LINE * min(
            last.bottom - last.top, one.bottom - one.top
        ):
            made[-1].append(one)
        else:
            made.append([one])
    return [sorted(line, key=lambda b: b.left) for line in made]
