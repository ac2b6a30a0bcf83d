"""JPG, PNG, WebP, GIF, BMP, AVIF and TIFF: what can be read in the picture, and what its maker wrote about it.

A picture without any text can still be found by its name: that is the one passage it has then. A TIFF has pages.
"""

import re
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import PurePath
from typing import BinaryIO, cast

from PIL import ExifTags, Image, ImageOps, UnidentifiedImageError

from kb.core.errors import JobFailure
from kb.core.values import Anchor
from kb.ingest.extract.part import Outcome, Part
from kb.ingest.extract.tidy import tidy
from kb.ingest.extract.tools import Ocr, Source

FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "AVIF")
ANIMATED = ("GIF", "WEBP", "AVIF")
PAGED = "TIFF"
MAX_PAGES = 5000
# What Pillow raises over a damaged picture, depending on where it notices.
BROKEN = (
    UnidentifiedImageError,
    OSError,
    SyntaxError,
    ValueError,
    TypeError,
    KeyError,
    EOFError,
    struct.error,
    ZeroDivisionError,
)
WIDE = ("I", "F")  # modes with more shades than a byte has begin like this
MAX_PIXELS = 120_000_000  # unpacked, they must fit into the memory that is allowed
OCR_PIXELS = 12_000_000  # a larger picture is made smaller before it is read
EXIF_TEXTS = (ExifTags.Base.ImageDescription, ExifTags.Base.XPTitle, ExifTags.Base.XPSubject, ExifTags.Base.XPComment)
SIDEWAYS = (5, 6, 7, 8)  # values of EXIF's orientation
PNG_TEXTS = ("Title", "Description", "Comment")
XMP_TEXT = re.compile(r"<dc:(?:title|description)>(.*?)</dc:", re.DOTALL)
TAG = re.compile(r"<[^>]*>")
NOTHING_READ = Outcome("empty", "no readable text; found by its name and description")
APART = re.compile(r"[\W_]+")  # in a name


def parts(source: Source, ocr: Ocr) -> Iterator[Part]:
    name = APART.sub(" ", PurePath(source.name).stem).strip()
    with opened(source.open()) as picture:
        told = [text for text in dict.fromkeys(map(tidy, descriptions(picture))) if text]
        first = read(picture, ocr, name, told)
        if picture.format == PAGED:
            yield from pages(picture, ocr, first, page_count(picture))
            return
        frames = getattr(picture, "n_frames", 1) if picture.format in ANIMATED else 1
    if frames > 1:
        reason = "; ".join(filter(None, (f"the first of its {frames} pictures is read", first.outcome.reason)))
        first = replace(first, outcome=replace(first.outcome, reason=reason))
    yield first


def pages(picture: Image.Image, ocr: Ocr, first: Part, total: int) -> Iterator[Part]:
    """The pages of a TIFF; `first` is what the first one says. A damaged page does not fail the others."""
    if total > MAX_PAGES:
        raise JobFailure("too_complex", f"The file has {total} pages.")
    yield replace(first, name="page 1", anchor=Anchor(page=1), total=total)
    for number in range(2, total + 1):
        try:
            turn_to(picture, number)
            part = read(picture, ocr, "", [])
        except (*BROKEN, JobFailure) as error:
            part = Part("", "", outcome=Outcome("failed", f"the page cannot be read: {str(error)[:200]}", "corrupt"))
        yield replace(part, name=f"page {number}", anchor=Anchor(page=number), number=number, total=total)


def read(picture: Image.Image, ocr: Ocr, name: str, told: list[str]) -> Part:
    """What can be read in a picture, with what its maker wrote about it; else its name."""
    width, height = upright_size(picture)
    gray = upright(picture)
    found = ocr.read(gray)
    text = "\n\n".join([*told, found.text] if found.text else filter(None, [name, *told]))
    lines = found.boxes(len(text) - len(found.text), width / gray.width, width, height)
    outcome = NOTHING_READ if text and found.outcome.state == "empty" else found.outcome
    return Part("image", text, outcome=outcome, lines=lines)


@contextmanager
def opened(file: BinaryIO) -> Iterator[Image.Image]:
    """The picture, not unpacked yet. What goes wrong with it inside is a failure that says so."""
    try:
        with Image.open(file, formats=FORMATS) as picture:
            refuse_large(picture)
            yield picture
    except Image.DecompressionBombError as error:
        raise JobFailure("too_complex", f"The picture is too large: {error}") from None
    except BROKEN as error:
        raise JobFailure("corrupt", f"The picture is cut off or damaged: {error}") from None


def page_count(picture: Image.Image) -> int:
    return getattr(picture, "n_frames", 1) if picture.format == PAGED else 1


def turn_to(picture: Image.Image, page: int) -> bool:
    """Go to a page, from 1; return whether there is such a one."""
    if page != 1 and page > page_count(picture):
        return False
    if page != 1:
        picture.seek(page - 1)
        refuse_large(picture)
    return True


def refuse_large(picture: Image.Image) -> None:
    if picture.width * picture.height > MAX_PIXELS:
        raise JobFailure("too_complex", f"The picture has {picture.width} × {picture.height} pixels.")


def upright(picture: Image.Image, pixels: int = OCR_PIXELS, mode: str = "L") -> Image.Image:
    """The image in gray or colour, with at most this many pixels, turned as the camera was held."""
    scale = (pixels / (picture.width * picture.height)) ** 0.5
    size = (max(1, int(picture.width * scale)), max(1, int(picture.height * scale)))
    if scale < 1:
        picture.draft(mode, size)  # a JPG is unpacked at a fraction of its size
    turned = ImageOps.exif_transpose(on_white(picture, mode))
    turned.thumbnail((max(size), max(size)) if scale < 1 else turned.size)
    return turned


def upright_size(picture: Image.Image) -> tuple[int, int]:
    """Width and height once it is turned as the camera was held."""
    sideways = picture.getexif().get(ExifTags.Base.Orientation, 1) in SIDEWAYS
    return (picture.height, picture.width) if sideways else picture.size


def on_white(picture: Image.Image, mode: str) -> Image.Image:
    """Letters on a transparent ground would vanish in black."""
    if picture.mode.startswith(WIDE):
        picture = spread(picture)
    elif picture.mode == "LAB":
        picture = picture.getchannel("L")
    if "A" not in picture.getbands() and "transparency" not in picture.info:
        return picture.convert(mode)
    coloured = picture.convert("RGBA")
    ground = Image.new("RGBA", coloured.size, "white")
    ground.alpha_composite(coloured)
    ground.info = picture.info
    return ground.convert(mode)


def spread(picture: Image.Image) -> Image.Image:
    """A picture of more shades than a byte has, from the darkest to the lightest that it uses."""
    shades = picture.convert("F" if picture.mode == "F" else "I").convert("F")
    lowest, highest = cast(tuple[float, float], shades.getextrema())  # of its only band
    scale = 255 / ((highest - lowest) or 1)
    return shades.point(lambda shade: shade * scale - lowest * scale)


def descriptions(picture: Image.Image) -> Iterator[str]:
    """What EXIF, XMP and PNG's own fields say."""
    exif = picture.getexif()
    for tag in EXIF_TEXTS:
        value = exif.get(tag)
        if isinstance(value, bytes):  # Windows writes UTF-16
            yield value.decode("utf-16-le", "ignore").rstrip("\0")
        elif isinstance(value, str):
            yield value
    for key in PNG_TEXTS:
        yield str(picture.info.get(key) or "")
    xmp = picture.info.get("xmp") or picture.info.get("XML:com.adobe.xmp") or b""
    packet = xmp.decode("utf-8", "ignore") if isinstance(xmp, bytes) else str(xmp)
    for found in XMP_TEXT.finditer(packet):
        yield TAG.sub(" ", found[1])
