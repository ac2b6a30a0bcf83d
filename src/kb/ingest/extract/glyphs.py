"""Which characters of a PDF page are not shown, and why; see glyphs.c."""

import ctypes
import math
from ctypes import Structure, byref, c_double, c_int, c_uint, c_uint8, c_void_p, cast
from enum import IntFlag
from functools import cache
from pathlib import Path

import pypdfium2
import pypdfium2.raw as pdfium

LIBRARY = Path(__file__).with_name("libglyphs.so")
PALE = 250  # of 255, in red, green and blue
FAINT = 13  # of 255: a twentieth
READABLE = 1.0  # points


def loaded(path: Path) -> ctypes.CDLL | None:
    """The compiled library; None if it is missing or another machine's."""
    try:
        library = ctypes.CDLL(str(path))
        library.glyphs_hidden.argtypes = (c_void_p, c_void_p, c_void_p, c_int, c_void_p)
    except (OSError, AttributeError):
        return None
    return library


COMPILED = loaded(LIBRARY)  # with this module: once confined, a process can load nothing


class Way(IntFlag):
    """Why a character is not shown."""

    INVISIBLE = 1  # neither filled nor drawn, as the text under a scan
    TRANSPARENT = 2
    WHITE = 4  # so it is seen where something darker lies behind it
    TINY = 8
    OUTSIDE = 16  # of the page


NAMES = {
    Way.INVISIBLE: "invisible",
    Way.TRANSPARENT: "transparent",
    Way.WHITE: "white",
    Way.TINY: "tiny",
    Way.OUTSIDE: "outside of the page",
}


class GlyphLimits(Structure):
    _fields_ = (
        ("invisible_mode", c_int),
        ("pale", c_uint),
        ("faint", c_uint),
        ("size", c_double),
        ("left", c_double),
        ("bottom", c_double),
        ("right", c_double),
        ("top", c_double),
    )


class Pdfium(Structure):
    _fields_ = tuple((f"function_{number}", c_void_p) for number in range(8))  # as glyphs.c has them


def hidden_characters(page: pypdfium2.PdfPage, text: pypdfium2.PdfTextPage, count: int) -> tuple[Way, bytes]:
    """All the ways in which characters of a page are hidden, and the ways of each."""
    limits = limits_of(page)
    if COMPILED is None:
        return hidden_slowly(limits, text, count)
    handle, found = cast(text.raw, c_void_p), (c_uint8 * count)()
    ways = COMPILED.glyphs_hidden(byref(_functions()), byref(limits), handle, count, found)
    return Way(ways), bytes(found)


def hidden_slowly(limits: GlyphLimits, text: pypdfium2.PdfTextPage, count: int) -> tuple[Way, bytes]:
    """The same in Python, where the library was not built: says what glyphs.c must say."""
    found = bytearray(count)
    every = before = of_object = 0
    last = None
    box, matrix = [c_double() for _ in range(4)], pdfium.FS_MATRIX()
    for index in range(count):
        object_ = pdfium.FPDFText_GetTextObject(text, index)
        if object_:
            address = cast(object_, c_void_p).value
            if address != last:
                of_object, last = ways_of_object(limits, text, index, object_, matrix), address
            before = of_object
            if pdfium.FPDFText_GetCharBox(text, index, *map(byref, box)):
                left, right, bottom, top = (edge.value for edge in box)
                if right < limits.left or left > limits.right or top < limits.bottom or bottom > limits.top:
                    before |= Way.OUTSIDE
            every |= before
        found[index] = before
    return Way(every), bytes(found)


def ways_of_object(
    limits: GlyphLimits, text: pypdfium2.PdfTextPage, index: int, object_: object, matrix: pdfium.FS_MATRIX
) -> int:
    colour = [c_uint() for _ in range(4)]
    ways = 0
    if pdfium.FPDFTextObj_GetTextRenderMode(object_) == limits.invisible_mode:
        ways |= Way.INVISIBLE
    if pdfium.FPDFPageObj_GetFillColor(object_, *map(byref, colour)):
        *shades, alpha = (value.value for value in colour)
        ways |= Way.TRANSPARENT * (alpha < limits.faint) | Way.WHITE * (min(shades) >= limits.pale)
    if pdfium.FPDFText_GetMatrix(text, index, byref(matrix)):
        size = pdfium.FPDFText_GetFontSize(text, index) * math.hypot(matrix.c, matrix.d)
        ways |= Way.TINY * (size < limits.size)
    return ways


def limits_of(page: pypdfium2.PdfPage) -> GlyphLimits:
    seen = pdfium.FS_RECTF()
    if not pdfium.FPDF_GetPageBoundingBox(page, byref(seen)):
        seen.left = seen.bottom = -math.inf
        seen.right = seen.top = math.inf
    mode = pdfium.FPDF_TEXTRENDERMODE_INVISIBLE
    return GlyphLimits(mode, PALE, FAINT, READABLE, seen.left, seen.bottom, seen.right, seen.top)


@cache
def _functions() -> Pdfium:
    named = (
        pdfium.FPDFText_GetTextObject,
        pdfium.FPDFTextObj_GetTextRenderMode,
        pdfium.FPDFPageObj_GetFillColor,
        pdfium.FPDFText_GetFontSize,
        pdfium.FPDFText_GetMatrix,
        pdfium.FPDFText_GetCharBox,
        pdfium.FPDFPageObj_GetMatrix,
        pdfium.FPDFPageObj_GetBounds,
    )
    return Pdfium(*(cast(function, c_void_p) for function in named))
