"""A page of a PDF, or a picture, as a JPEG of a given width."""

import io
from typing import TYPE_CHECKING

import pypdfium2

from kb.core.errors import JobFailure
from kb.ingest.extract import image
from kb.ingest.extract.pdf import laid_open

if TYPE_CHECKING:
    from PIL.Image import Image

MAX_PIXELS = 16_000_000  # a page that is much higher than wide is drawn smaller
MAX_SIDE = 65_000  # pixels; a JPEG has no room for 65,536
QUALITY = 82  # of a JPEG
ROUNDED_UP = 1 - 1e-9  # a page that is a hair wider than asked for would get one more pixel


def page_of_pdf(document: pypdfium2.PdfDocument, index: int, width: int) -> bytes:
    """A page as a JPEG, with what was filled in and written onto it, as extraction reads it."""
    try:
        page, _ = laid_open(document, index)
    except pypdfium2.PdfiumError:
        raise JobFailure("corrupt", "The page cannot be read.") from None
    try:
        across, down = page.get_size()
        scale = 0.0
        if across > 0 < down:
            scale = min(width / across, (MAX_PIXELS / (across * down)) ** 0.5, MAX_SIDE / down)
        if scale <= 0 or min(across, down) * scale < 1:
            raise JobFailure("too_complex", f"The page measures {across:g} × {down:g} points, which is no picture.")
        picture: Image = page.render(scale=scale * ROUNDED_UP, rev_byteorder=True).to_pil()
        return encoded(picture)
    except pypdfium2.PdfiumError as error:
        raise JobFailure("corrupt", f"The page cannot be drawn: {error}") from None
    finally:
        page.close()


def picture(opened: "Image", width: int) -> bytes:
    """A picture as a JPEG: upright, on white; never larger than it is."""
    across, down = image.upright_size(opened)
    width = min(width, across)
    height = max(1, round(width * down / across))
    shrunk = min((MAX_PIXELS / (width * height)) ** 0.5, MAX_SIDE / height)
    if shrunk < 1:
        width = max(1, int(width * shrunk))
        height = min(MAX_SIDE, max(1, round(width * down / across)))
    drawn = image.upright(opened, width * height * 4, "RGB")
    return encoded(drawn.resize((width, height), reducing_gap=2.0))


def encoded(picture: "Image") -> bytes:
    data = io.BytesIO()
    picture.convert("RGB").save(data, "JPEG", quality=QUALITY)
    return data.getvalue()
