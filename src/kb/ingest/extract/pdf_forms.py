"""What was filled into a form of a PDF: the fields of a page, and the XML of a form that Adobe's XFA draws.

What a field shows is text of the page already. A tick, a choice among all that are listed and a value that is not drawn
are not: they are told beside the text, with the name of their field.
"""

import ctypes
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import pypdfium2
import pypdfium2.raw as pdfium
from lxml import etree

from kb.core.errors import JobFailure
from kb.ingest.extract.tidy import one_line
from kb.ingest.extract.xml import attribute, local, parse

TEXTS = (pdfium.FPDF_FORMFIELD_TEXTFIELD, pdfium.FPDF_FORMFIELD_COMBOBOX)
MARKS = (pdfium.FPDF_FORMFIELD_CHECKBOX, pdfium.FPDF_FORMFIELD_RADIOBUTTON)
PASSWORD = 1 << 13  # a flag of a text field
UNSEEN = pdfium.FPDF_ANNOT_FLAG_HIDDEN | pdfium.FPDF_ANNOT_FLAG_NOVIEW
TICKS = ("1", "on", "true", "yes", "x")  # states of a box that say nothing but that it is ticked
VALUE_BYTES = 200_000
MAX_OPTIONS = 1000  # of a list
MAX_VALUES = 5000  # of a form
PACKET_BYTES = 10 * 2**20
INDEX = re.compile(r"\[\d+\]")  # of a field in a hierarchy: "form1[0].page[0].name[0]"


@dataclass(frozen=True, slots=True)
class Field:
    """A field that has a value."""

    name: str  # what its maker calls it
    value: str
    is_text: bool  # its value is drawn as it is
    is_hidden: bool  # a reader of the form does not see it

    def __str__(self) -> str:
        return f"[{self.name}: {self.value}]" if self.name else f"[{self.value}]"

    def stands_in(self, text: str) -> bool:
        """Whether a page with this text shows the value."""
        return self.is_text and re.search(rf"(?<!\w){re.escape(self.value)}(?!\w)", " ".join(text.split())) is not None


def fields_of(document: pypdfium2.PdfDocument, page: pypdfium2.PdfPage, most: int) -> list[Field]:
    """The fields of a page that have a value, of its first annotations."""
    found: list[Field] = []
    # pdfium knows the form while this is open. A page that is loaded meanwhile would be drawn anew, so none is.
    config = pdfium.FPDF_FORMFILLINFO(version=2)  # pdfium calls what it names until the form is closed
    form = pdfium.FPDFDOC_InitFormFillEnvironment(document, config)
    for number in range(min(pdfium.FPDFPage_GetAnnotCount(page), most)) if form else ():
        annotation = pdfium.FPDFPage_GetAnnot(page, number)
        if pdfium.FPDFAnnot_GetSubtype(annotation) == pdfium.FPDF_ANNOT_WIDGET and (one := field_of(form, annotation)):
            found.append(one)
        pdfium.FPDFPage_CloseAnnot(annotation)
    if form:
        pdfium.FPDFDOC_ExitFormFillEnvironment(form)
    return found


def field_of(form: Any, annotation: Any) -> Field | None:
    """The field that a widget belongs to; None if nothing was filled in, or a password."""
    kind = pdfium.FPDFAnnot_GetFormFieldType(form, annotation)
    flags = pdfium.FPDFAnnot_GetFormFieldFlags(form, annotation)
    value = ""
    if kind in MARKS:
        value = mark(annotation, is_box=kind == pdfium.FPDF_FORMFIELD_CHECKBOX)
    elif kind == pdfium.FPDF_FORMFIELD_LISTBOX:
        value = ", ".join(chosen(form, annotation))
    elif kind in TEXTS and not (kind == pdfium.FPDF_FORMFIELD_TEXTFIELD and flags & PASSWORD):
        value = ", ".join(chosen(form, annotation)) or told(pdfium.FPDFAnnot_GetFormFieldValue, form, annotation)
    if not value:
        return None
    name = told(pdfium.FPDFAnnot_GetFormFieldAlternateName, form, annotation)
    own = INDEX.sub("", told(pdfium.FPDFAnnot_GetFormFieldName, form, annotation)).rpartition(".")[2]
    hidden = bool(pdfium.FPDFAnnot_GetFlags(annotation) & UNSEEN)
    return Field(name or own, value, kind in TEXTS, hidden)


def mark(annotation: Any, *, is_box: bool) -> str:
    """The state that a box or a radio button is in, if it is set: a box may be worth only `Yes` or `On`."""
    state = told(pdfium.FPDFAnnot_GetStringValue, annotation, b"AS")
    if state in ("", "Off"):
        return ""
    return "checked" if is_box and state.lower() in TICKS else state


def chosen(form: Any, annotation: Any) -> Iterator[str]:
    """The options of a list that were chosen, as they are shown."""
    for index in range(min(pdfium.FPDFAnnot_GetOptionCount(form, annotation), MAX_OPTIONS)):
        if pdfium.FPDFAnnot_IsOptionSelected(form, annotation, index):
            yield told(pdfium.FPDFAnnot_GetOptionLabel, form, annotation, index)


def told(ask: Callable[..., int], *about: Any) -> str:
    """A text that pdfium writes into memory that the caller brings."""
    size = ask(*about, None, 0)
    if not 2 < size < VALUE_BYTES:
        return ""
    text = ctypes.create_string_buffer(size)
    ask(*about, ctypes.cast(text, ctypes.POINTER(ctypes.c_ushort)), size)
    return one_line(text.raw.decode("utf-16-le", "ignore").rstrip("\0"))


def xfa_text(document: pypdfium2.PdfDocument) -> str | None:
    """What a form says that only its XML holds: its captions and values; None if the PDF has no such form."""
    if document.get_formtype() != pdfium.FORMTYPE_XFA_FULL:
        return None
    packets = {name: data for name, data in xfa_packets(document) if name in ("template", "datasets")}
    try:
        template, data = (parse(packets[name]) if name in packets else None for name in ("template", "datasets"))
    except JobFailure:
        return ""
    values = filled_in(data) if data is not None else {}
    lines = list(captions(template, values)) if template is not None else []
    return "\n".join(islice((line for line in (*lines, *left(values)) if line), MAX_VALUES))


def xfa_packets(document: pypdfium2.PdfDocument) -> Iterator[tuple[str, bytes]]:
    for index in range(pdfium.FPDF_GetXFAPacketCount(document)):
        name = ctypes.create_string_buffer(100)
        pdfium.FPDF_GetXFAPacketName(document, index, name, len(name))
        size = ctypes.c_ulong()
        pdfium.FPDF_GetXFAPacketContent(document, index, None, 0, size)
        if 0 < size.value <= PACKET_BYTES:
            data = ctypes.create_string_buffer(size.value)
            pdfium.FPDF_GetXFAPacketContent(document, index, data, size.value, size)
            yield name.value.decode(errors="replace"), data.raw


def filled_in(data: etree._Element) -> dict[str, list[str]]:
    """The values of a form by the names of their fields, in order."""
    found: dict[str, list[str]] = defaultdict(list)
    for element in data.iter("{*}*"):
        if len(element) == 0 and (value := one_line(element.text or "")):
            parent = element.getparent()
            is_one_of_several = local(element) == "value" and parent is not None
            found[local(parent if is_one_of_several and parent is not None else element)].append(value)
    return found


def captions(template: etree._Element, values: dict[str, list[str]]) -> Iterator[str]:
    """The texts of a form in order, each field with its value, which is taken out of `values`."""
    for element in template.iter("{*}draw", "{*}field"):
        holder = "value" if local(element) == "draw" else "caption"
        pieces = (str(piece) for found in element.iterchildren(f"{{*}}{holder}") for piece in found.itertext())
        text = one_line(" ".join(pieces))
        name = attribute(element, "name") or ""
        value = values[name].pop(0) if local(element) == "field" and values.get(name) else ""
        yield ": ".join(filter(None, (text or (name if value else ""), value)))


def left(values: dict[str, list[str]]) -> Iterator[str]:
    for name, several in values.items():
        yield f"{name}: {', '.join(several)}" if several else ""
