"""Where on a page of a PDF its text stands: the same text as extraction makes of it, each character with its box."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pypdfium2
import pypdfium2.raw as pdfium

from kb.ingest.extract.pdf import CUT_WORD, LINE, laid_open
from kb.ingest.extract.pdf_hidden import runs_of
from kb.ingest.extract.traced import NOWHERE, Traced, joined, tidied

HIDDEN = "\n\n"  # between a page's text and what is hidden on it, which is a part of its own
SAME_LINE = 0.5  # of the lower of two boxes: what overlaps by more stands on one line
GAP = 3.0  # times the height of a line: what is farther away stands in another column
SURROGATES = range(0xD800, 0xE000)
LOW = 0xDC00  # from here on, the second half of a pair
KINDS = (False, True)  # shown, hidden
TURNS = range(4)
QUARTER = math.pi / 2

Box = tuple[float, float, float, float]  # left, top, right, bottom, from the page's upper left corner, in points


@dataclass(frozen=True, slots=True)
class Sheet:
    """A page as it is displayed: cut to its crop box, then turned."""

    width: float
    height: float
    left: float  # of what is displayed, in the page's own coordinates
    bottom: float
    right: float
    top: float
    turns: int  # to the right, a quarter each

    @staticmethod
    def of(page: pypdfium2.PdfPage) -> "Sheet":
        width, height = page.get_size()
        left, bottom, right, top = page.get_bbox()
        return Sheet(width, height, left, bottom, right, top, pdfium.FPDFPage_GetRotation(page) % len(TURNS))

    def displayed(self, left: float, bottom: float, right: float, top: float) -> Box:
        """A box of the page's own coordinates, where it is displayed."""
        corners = [self._point(left, bottom), self._point(right, top)]
        xs, ys = ([corner[axis] for corner in corners] for axis in (0, 1))
        x0, x1 = sorted(min(max(x, 0.0), self.width) for x in xs)
        y0, y1 = sorted(min(max(y, 0.0), self.height) for y in ys)
        return x0, y0, x1, y1

    def _point(self, x: float, y: float) -> tuple[float, float]:
        across, up = (x - self.left) / (self.right - self.left), (y - self.bottom) / (self.top - self.bottom)
        turned = ((across, 1 - up), (up, across), (1 - across, up), (1 - up, 1 - across))[self.turns]
        return turned[0] * self.width, turned[1] * self.height


class Places:
    """The text of one page with its places. `close` gives back what pdfium holds for it."""

    def __init__(self, document: pypdfium2.PdfDocument, index: int) -> None:
        self._page, added = laid_open(document, index)
        self._written = self._page.get_textpage()
        self.sheet = Sheet.of(self._page)
        runs = runs_of(self._page, self._written, self._written.count_chars())
        own, hidden = (self._text_of((start, end) for way, start, end in runs if bool(way) == kind) for kind in KINDS)
        shown = beneath(own, added.beside(own.text))
        hidden = beneath(hidden, added.hidden)
        self.text = joined(HIDDEN, [shown, hidden]) if hidden.text else shown

    def _text_of(self, runs: Iterable[tuple[int, int]]) -> Traced:
        written = joined("", (characters(self._written, start, end) for start, end in runs))
        return tidied(written.sub(CUT_WORD, ""))

    def close(self) -> None:
        self._written.close()
        self._page.close()

    def boxes(self, start: int, end: int) -> tuple[list[Box], bool]:
        """The boxes of a stretch of the text, one for each line, and whether they hold all that can be seen of it."""
        found: list[tuple[Box, bool]] = []
        missing = False
        for character, origin in zip(self.text.text[start:end], self.text.origins[start:end], strict=True):
            if not character.isspace():
                box = self._box(origin)
                if box is not None:
                    found.append((box, self._is_upright(origin)))
                elif character.isalnum():
                    missing = True
        return list(lines(found)), not missing

    def _is_upright(self, origin: int) -> bool:
        angle = pdfium.FPDFText_GetCharAngle(self._written, origin)  # -1 where it is not known
        return bool(angle >= 0) and (round(angle / QUARTER) + self.sheet.turns) % 2 == 1

    def _box(self, origin: int) -> Box | None:
        """Of a character, as high as its line; of one that has no height, as it was drawn."""
        if origin == NOWHERE:
            return None
        for loose in (True, False):
            try:
                edges = self._written.get_charbox(origin, loose=loose)
            except pypdfium2.PdfiumError:
                continue
            box = self.sheet.displayed(*edges)
            if box[0] < box[2] and box[1] < box[3]:
                return box
        return None


def beneath(text: Traced, lines: Iterable[str]) -> Traced:
    """A text with further lines, which stand nowhere on the page."""
    return joined(LINE, [piece for piece in (text, *map(Traced.of, lines)) if piece.text])


def characters(written: pypdfium2.PdfTextPage, start: int, end: int) -> Traced:
    """A run of characters as `get_text_range` gives it, each with its index; with none where that cannot be told."""
    text = written.get_text_range(start, end - start)
    indices: list[int] = []
    half = False  # a first half of a pair came before
    for index in range(start, end):
        if pdfium.FPDFText_GetTextIndexFromCharIndex(written, index) < 0:
            continue  # pdfium leaves it out of its texts
        code = pdfium.FPDFText_GetUnicode(written, index)
        if code not in SURROGATES:
            indices.append(index)
            half = False
        elif code < LOW:
            half = True
        elif half:  # a half without the other is left out
            indices.append(index)
            half = False
    return Traced(text, indices) if len(indices) == len(text) else Traced.of(text)


def lines(characters: Iterable[tuple[Box, bool]]) -> Iterator[Box]:
    """Boxes of characters, in the order of the text, as boxes of lines; true: their line runs up or down."""
    line: Box | None = None
    for box, is_upright in characters:
        if line is not None and (beside(flipped(line), flipped(box)) if is_upright else beside(line, box)):
            line = (min(line[0], box[0]), min(line[1], box[1]), max(line[2], box[2]), max(line[3], box[3]))
        else:
            if line is not None:
                yield line
            line = box
    if line is not None:
        yield line


def beside(line: Box, box: Box) -> bool:
    heights = line[3] - line[1], box[3] - box[1]
    overlap = min(line[3], box[3]) - max(line[1], box[1])
    gap = max(line[0], box[0]) - min(line[2], box[2])
    return overlap > SAME_LINE * min(heights) and gap < GAP * max(heights)


def flipped(box: Box) -> Box:
    return box[1], box[0], box[3], box[2]
