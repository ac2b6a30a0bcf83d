"""The text of a PDF page that is shown, and the text that is not.

What is told is what pdfium knows of a character by itself: drawn invisibly, without colour, white, tiny, or outside of
the page. Two of them are ordinary: invisible text over a picture of the page is how scans are made searchable, and
white text is seen on something darker. What lies behind a text is looked for among the page's own objects, of which
pictures, forms and shadings count as darker, whatever they show. Text of the colour of what lies behind it, and text
that something else covers, is not told.
"""

import ctypes
from collections.abc import Callable, Iterator
from itertools import groupby, islice

import pypdfium2
import pypdfium2.raw as pdfium

from kb.ingest.extract.glyphs import FAINT, NAMES, PALE, Way, hidden_characters
from kb.ingest.extract.hidden import Hidden

MAX_OBJECTS = 1000  # of a page, that may lie behind a text
MAX_LOOKED_AT = 2000  # strings in white; what follows is taken to be as the last of them
COVERS = 0.5  # of the page, by images: then the page is a picture of a page
DARKER = (pdfium.FPDF_PAGEOBJ_IMAGE, pdfium.FPDF_PAGEOBJ_SHADING, pdfium.FPDF_PAGEOBJ_FORM)

Box = tuple[float, float, float, float]  # left, bottom, right, top
Run = tuple[Way, int, int]  # in which ways characters are hidden, the first of them, and the one after the last


def is_picture(page: pypdfium2.PdfPage) -> bool:
    """Whether images cover most of the page."""
    width, height = page.get_size()
    covered = 0.0  # a scan may come in strips
    for image in islice(page.get_objects([pdfium.FPDF_PAGEOBJ_IMAGE]), MAX_OBJECTS):
        if image.level:  # inside a form, whose place on the page its bounds do not tell
            return True
        left, bottom, right, top = image.get_bounds()
        covered += (right - left) * (top - bottom)
        if covered > COVERS * width * height:
            return True
    return False


def shown_and_hidden(page: pypdfium2.PdfPage, written: pypdfium2.PdfTextPage, count: int) -> tuple[str, Hidden]:
    runs = runs_of(page, written, count)
    ways = Way(0)
    texts: tuple[list[str], list[str]] = ([], [])  # shown, hidden
    for way, start, end in runs:
        piece = written.get_text_range(start, end - start)
        texts[bool(way)].append(piece)
        if piece.strip():
            ways |= way
    return "".join(texts[False]), Hidden("".join(texts[True]), {name for way, name in NAMES.items() if way in ways})


def runs_of(page: pypdfium2.PdfPage, written: pypdfium2.PdfTextPage, count: int) -> list[Run]:
    """All characters in runs, in their order; those of a page whose hidden characters say nothing are one run."""
    ways, each = hidden_characters(page, written, count)
    runs = list(truly_hidden(page, written, each)) if ways else []
    hidden = "".join(written.get_text_range(start, end - start) for way, start, end in runs if way)
    return runs if Hidden(hidden) else [(Way(0), 0, count)]


def truly_hidden(page: pypdfium2.PdfPage, written: pypdfium2.PdfTextPage, each: bytes) -> Iterator[Run]:
    """Runs of characters, and in which ways they are hidden after all."""
    behind: Backgrounds | None = None
    scanned: bool | None = None
    start = 0
    for value, run in groupby(each):
        way, end = Way(value), start + sum(1 for _ in run)
        if way == Way.INVISIBLE:
            scanned = is_picture(page) if scanned is None else scanned
            yield Way(0) if scanned else way, start, end
        elif way == Way.WHITE:
            behind = behind or Backgrounds(page, written)
            seen = [behind.shows(index) for index in range(start, end)]
            at = start
            for visible, some in groupby(seen):
                length = sum(1 for _ in some)
                yield Way(0) if visible else way, at, at + length
                at += length
        else:
            yield way, start, end
        start = end


class Backgrounds:
    """What lies behind the strings of a page, and is darker than white."""

    def __init__(self, page: pypdfium2.PdfPage, written: pypdfium2.PdfTextPage) -> None:
        self._boxes = list(darker(page))
        self._written = written
        self._last: int | None = None  # the string that was looked at last
        self._shows = False
        self._looked_at = 0

    def shows(self, index: int) -> bool:
        """Whether a white character is seen; what pdfium made up is as the one before."""
        string = pdfium.FPDFText_GetTextObject(self._written, index)
        address = ctypes.cast(string, ctypes.c_void_p).value if string else self._last
        if address != self._last and self._looked_at < MAX_LOOKED_AT:
            left, bottom, right, top = self._written.get_charbox(index)
            x, y = (left + right) / 2, (bottom + top) / 2
            self._shows = any(box[0] <= x <= box[2] and box[1] <= y <= box[3] for box in self._boxes)
            self._last = address
            self._looked_at += 1
        return self._shows


def darker(page: pypdfium2.PdfPage) -> Iterator[Box]:
    for thing in islice(page.get_objects(max_depth=1), MAX_OBJECTS):
        try:
            box = thing.get_bounds()
        except pypdfium2.PdfiumError:
            continue
        if thing.type in DARKER or (thing.type == pdfium.FPDF_PAGEOBJ_PATH and is_dark(thing, box)):
            yield box


def is_dark(path: pypdfium2.PdfObject, box: Box) -> bool:
    """Whether white is seen on a shape: on what it is filled with, or on a line so broad that it is the shape."""
    fill, stroke, width = ctypes.c_int(), ctypes.c_int(), ctypes.c_float()
    pdfium.FPDFPath_GetDrawMode(path, ctypes.byref(fill), ctypes.byref(stroke))
    if fill.value and not is_pale(path, pdfium.FPDFPageObj_GetFillColor):
        return True
    pdfium.FPDFPageObj_GetStrokeWidth(path, ctypes.byref(width))
    broad = 2 * width.value >= min(box[2] - box[0], box[3] - box[1])
    return bool(stroke.value) and broad and not is_pale(path, pdfium.FPDFPageObj_GetStrokeColor)


def is_pale(path: pypdfium2.PdfObject, colour_of: Callable[..., int]) -> bool:
    colour = [ctypes.c_uint() for _ in range(4)]
    if not colour_of(path, *map(ctypes.byref, colour)):
        return False  # a pattern
    *shades, alpha = (value.value for value in colour)
    return alpha < FAINT or min(shades) >= PALE
