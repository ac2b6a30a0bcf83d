"""JPG, PNG, WebP, GIF and BMP: what can be read in the picture, and what its maker wrote about it.

A picture without any text can still be found by its name: that is the one passage it has then.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import PurePath

from PIL import ExifTags, Image, ImageOps, UnidentifiedImageError

from kb.core.errors import JobFailure
from kb.ingest.extract.part import Outcome, Part
from kb.ingest.extract.tidy import tidy
from kb.ingest.extract.tools import Ocr, Source

FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP")
ANIMATED = ("GIF", "WEBP")
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
    with opened(source) as picture:
        told = [text for text in dict.fromkeys(map(tidy, descriptions(picture))) if text]
        width, height = upright_size(picture)
        gray = upright(picture)
        found = ocr.read(gray)
        frames = getattr(picture, "n_frames", 1) if picture.format in ANIMATED else 1
    name = APART.sub(" ", PurePath(source.name).stem).strip()
    text = "\n\n".join([*told, found.text] if found.text else [name, *told])
    lines = found.boxes(len(text) - len(found.text), width / gray.width, width, height)
    outcome = NOTHING_READ if found.outcome.state == "empty" else found.outcome
    if frames > 1:
        first = f"the first of its {frames} pictures is read"
        outcome = replace(outcome, reason="; ".join(filter(None, (first, outcome.reason))))
    yield Part("image", text, outcome=outcome, lines=lines)


@contextmanager
def opened(source: Source) -> Iterator[Image.Image]:
    """The picture, not unpacked yet. What goes wrong with it inside is a failure that says so."""
    try:
        with Image.open(source.open(), formats=FORMATS) as picture:
            if picture.width * picture.height > MAX_PIXELS:
                raise JobFailure("too_complex", f"The picture has {picture.width} × {picture.height} pixels.")
            yield picture
    except Image.DecompressionBombError as error:
        raise JobFailure("too_complex", f"The picture is too large: {error}") from None
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError) as error:
        raise JobFailure("corrupt", f"The picture is cut off or damaged: {error}") from None


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
    if "A" not in picture.getbands() and "transparency" not in picture.info:
        return picture.convert(mode)
    coloured = picture.convert("RGBA")
    ground = Image.new("RGBA", coloured.size, "white")
    ground.alpha_composite(coloured)
    ground.info = picture.info
    return ground.convert(mode)


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
