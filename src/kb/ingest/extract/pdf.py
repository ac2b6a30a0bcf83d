"""PDF: a part for every page, its text as it stands on the page, or read from the scan that it is."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

import pypdfium2
import pypdfium2.raw as pdfium

from kb.core.errors import JobFailure
from kb.core.types import Json
from kb.core.values import Anchor, LineBoxes
from kb.ingest.extract.hidden import Hidden, with_hidden
from kb.ingest.extract.pageheads import PageHeads
from kb.ingest.extract.part import EMPTY, Outcome, Part
from kb.ingest.extract.pdf_forms import Field, fields_of, told, xfa_text
from kb.ingest.extract.pdf_hidden import is_picture, shown_and_hidden
from kb.ingest.extract.tidy import one_line, tidy
from kb.ingest.extract.titles import real_title
from kb.ingest.extract.tools import Ocr, Source

if TYPE_CHECKING:
    from PIL.Image import Image

MAX_PAGES = 20_000
MAX_OUTLINE = 20_000  # entries
MAX_TITLE = 200  # characters of a heading
SEPARATOR = " > "  # between the parts of a heading path
LINE = "\n"  # between a page's own text and what was written onto it
PAGE_CHARACTERS = 5_000_000
SCANNED_BELOW = 32  # letters and digits: a page with more has a text of its own
POINTS_PER_INCH = 72
OCR_DPI = 200
OCR_PIXELS = 12_000_000  # a page whose box is huge is rendered smaller
MAX_ANNOTATIONS = 5000  # of a page
SHOWN_ANNOTATIONS = {pdfium.FPDF_ANNOT_WIDGET, pdfium.FPDF_ANNOT_FREETEXT, pdfium.FPDF_ANNOT_STAMP}
NOTE_ANNOTATIONS = {
    pdfium.FPDF_ANNOT_TEXT,
    pdfium.FPDF_ANNOT_HIGHLIGHT,
    pdfium.FPDF_ANNOT_UNDERLINE,
    pdfium.FPDF_ANNOT_STRIKEOUT,
    pdfium.FPDF_ANNOT_SQUARE,
    pdfium.FPDF_ANNOT_CIRCLE,
    pdfium.FPDF_ANNOT_CARET,
}
# How pdfium marks a word that is cut at a line end; the rest of the word follows on the next line.
CUT_WORD = re.compile("\ufffe[ \t]*(?:\r\n|\n)?|\u00ad[ \t]*(?:\r\n|\n)")
HIDDEN_FIELD = "form field"  # a way to be hidden
KEYS = {"Author": "author", "Subject": "subject", "Keywords": "keywords"}


@dataclass(frozen=True, slots=True)
class Added:
    """What was written onto a page that its text does not say."""

    notes: list[str] = field(default_factory=list)
    fields: list[Field] = field(default_factory=list)

    def beside(self, own: str) -> list[str]:
        """The notes, and what was filled in, of a page with this text."""
        return [*self.notes, *(str(one) for one in self.fields if not one.is_hidden and not one.stands_in(own))]

    @property
    def hidden(self) -> list[str]:
        return [str(one) for one in self.fields if one.is_hidden]


@dataclass(frozen=True, slots=True)
class PageText:
    text: str
    outcome: Outcome
    hidden: Hidden = field(default_factory=Hidden)
    lines: LineBoxes | None = None  # of a page that was read by OCR


def parts(source: Source, ocr: Ocr) -> Iterator[Part]:
    document = opened(source)
    total = len(document)
    if not total:
        raise JobFailure("corrupt", "The PDF has no pages.")
    if total > MAX_PAGES:
        raise JobFailure("too_complex", f"The PDF has {total} pages; {MAX_PAGES} are the most that are read.")
    details = document.get_metadata_dict()
    bookmarks, heads = outline(document), PageHeads()
    for index in range(total):
        found = page_text(document, index, source, ocr)
        heading = SEPARATOR.join(dict.fromkeys(filter(None, (bookmarks[index], heads.of(found.text)))))
        page = Part(
            name=f"page {index + 1}",
            text=found.text,
            anchor=Anchor(page=index + 1, heading=heading or None),
            outcome=found.outcome,
            lines=found.lines,
            title=real_title(details.get("Title")) if index == 0 else None,
            metadata=metadata_of(details) if index == 0 else {},
            number=index + 1,
            total=total,
        )
        yield from with_hidden(page, found.hidden)
    form = xfa_text(document)
    if form is not None:
        outcome = Outcome("ok", "what its XML says, without the layout") if form else EMPTY
        yield Part(f"page {total}, XFA form", form, Anchor(page=total), outcome, number=total, total=total)


def opened(source: Source) -> pypdfium2.PdfDocument:
    try:
        return pypdfium2.PdfDocument(source.mapped())
    except pypdfium2.PdfiumError as error:
        if error.err_code in (pdfium.FPDF_ERR_PASSWORD, pdfium.FPDF_ERR_SECURITY):
            raise JobFailure("encrypted", "The PDF is protected with a password.") from None
        raise JobFailure("corrupt", "The file starts like a PDF but cannot be read as one.") from None


def page_text(document: pypdfium2.PdfDocument, index: int, source: Source, ocr: Ocr) -> PageText:
    try:
        page, added = laid_open(document, index)
    except pypdfium2.PdfiumError:
        return PageText("", Outcome("failed", "the page cannot be read", "corrupt"))
    try:
        own, hidden = own_text(page)
        notes = added.beside(own)
        if added.hidden:
            hidden = Hidden(LINE.join(filter(None, (hidden.text, *added.hidden))), hidden.ways | {HIDDEN_FIELD})
        text = LINE.join(filter(None, (own, *notes)))
        forced = source.force_ocr or index + 1 in source.ocr_pages
        if not forced and not is_scan(page, own):
            return PageText(text, Outcome() if text else EMPTY, hidden)
        image = rendered(page)
        found = ocr.read(image)
        if text and found.outcome.state == "empty":  # what stands on the page is all there is
            return PageText(text, Outcome(), hidden)
        text = LINE.join(filter(None, (found.text or own, *notes)))
        width, height = page.get_size()
        return PageText(text, found.outcome, hidden, found.boxes(0, width / image.width, width, height))
    except pypdfium2.PdfiumError as error:
        return PageText("", Outcome("failed", f"the page cannot be read: {error}", "corrupt"))
    finally:
        page.close()


def laid_open(document: pypdfium2.PdfDocument, index: int) -> tuple[pypdfium2.PdfPage, Added]:
    """A page with what was filled in and written onto it, as far as that is drawn, and the rest of it."""
    page = document[index]
    has_more = has_fields = False
    notes: list[str] = []
    for number in range(min(pdfium.FPDFPage_GetAnnotCount(page), MAX_ANNOTATIONS)):
        annotation = pdfium.FPDFPage_GetAnnot(page, number)
        kind = pdfium.FPDFAnnot_GetSubtype(annotation)
        has_more = has_more or kind in SHOWN_ANNOTATIONS
        has_fields = has_fields or kind == pdfium.FPDF_ANNOT_WIDGET
        if kind in NOTE_ANNOTATIONS and (note := told(pdfium.FPDFAnnot_GetStringValue, annotation, b"Contents")):
            notes.append(f"[{note}]")
        pdfium.FPDFPage_CloseAnnot(annotation)
    fields = fields_of(document, page, MAX_ANNOTATIONS) if has_fields else []
    if has_more and pdfium.FPDFPage_Flatten(page, pdfium.FLAT_NORMALDISPLAY) == pdfium.FLATTEN_SUCCESS:
        page.close()
        page = document[index]
    return page, Added(notes, fields)


def own_text(page: pypdfium2.PdfPage) -> tuple[str, Hidden]:
    written = page.get_textpage()
    try:
        count = written.count_chars()
        if count > PAGE_CHARACTERS:
            raise JobFailure("too_complex", f"A page of the PDF holds {count} characters.")
        shown, hidden = shown_and_hidden(page, written, count)
        if hidden:
            hidden.text = tidy(CUT_WORD.sub("", hidden.text))
        return tidy(CUT_WORD.sub("", shown)), hidden
    finally:
        written.close()


def is_scan(page: pypdfium2.PdfPage, text: str) -> bool:
    return sum(character.isalnum() for character in text) < SCANNED_BELOW and is_picture(page)


def rendered(page: pypdfium2.PdfPage) -> "Image":
    width, height = page.get_size()
    wanted = OCR_DPI / POINTS_PER_INCH
    scale = min(wanted, (OCR_PIXELS / max(width * height, 1)) ** 0.5)
    image: Image = page.render(scale=scale, grayscale=True).to_pil()
    return image


def outline(document: pypdfium2.PdfDocument) -> list[str | None]:
    """For every page, the path of the bookmark that it stands under."""
    starts: dict[int, str] = {}  # the first bookmark of a page
    path: list[str] = []
    for entry in islice(document.get_toc(), MAX_OUTLINE):
        path[entry.level :] = [one_line(entry.get_title())[:MAX_TITLE]]
        place = entry.get_dest()
        page = place.get_index() if place else None
        if page is not None:
            starts.setdefault(page, SEPARATOR.join(filter(None, path)))
    held: str | None = None
    headings: list[str | None] = []
    for page in range(len(document)):
        held = starts.get(page, held)
        headings.append(held)
    return headings


def metadata_of(details: dict[str, str]) -> Json:
    found = {name: real_title(details.get(key)) for key, name in KEYS.items()}
    return {name: value for name, value in found.items() if value}
