"""What kind of file this is: by its content first, by its name only where the content cannot tell."""

import codecs
import re
from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal

from kb.core.errors import UnsupportedFormat
from kb.core.values import DocType
from kb.ingest.extract.structures import PROLOG, structure_of
from kb.ingest.extract.wide import wide_encoding

OfficeType = Literal["docx", "pptx", "xlsx"]

SUPPORTED = (
    "PDF, DOCX, PPTX, XLSX, HTML, JPG, PNG, SVG, WebP, GIF, BMP, ODT, ODS, ODP, XLS, XLSB, EPUB, Jupyter notebooks, "
    "Markdown, plain text (csv, json, xml, ...) and program sources"
)
FORMAT_NAMES = (
    "pdf docx pptx xlsx html jpg png svg webp gif bmp odt ods odp xls xlsb epub ipynb markdown text code".split()
)

MARKDOWN = frozenset("md markdown mdown mkd mdx".split())
CODE = frozenset(
    """
    asm awk bash bat bzl c cc cfg clj cljs cmake coffee cpp cs css cu cxx d dart diff el elm erl ex exs f f90 fish fs
    go gradle graphql groovy h hcl hh hpp hs hxx ini java jl js jsx kt kts less lisp lua m mk ml mm nim nix pas patch
    php pl pm proto ps1 py pyi pyx r rake rb rs sass scala scm scss sh sol sql swift tcl tex tf toml ts tsx v vb vhd
    vim vue wat zig zsh
    """.split()
)
CODE_NAMES = frozenset("dockerfile makefile rakefile gemfile jenkinsfile justfile".split())
TEXT_MEDIA_TYPES = {
    "csv": "text/csv",
    "tsv": "text/tab-separated-values",
    "json": "application/json",
    "xml": "application/xml",
    "yaml": "application/yaml",
    "yml": "application/yaml",
}
OFFICE = "application/vnd.openxmlformats-officedocument."
OFFICE_MEDIA_TYPES: dict[OfficeType, str] = {
    "docx": OFFICE + "wordprocessingml.document",
    "pptx": OFFICE + "presentationml.presentation",
    "xlsx": OFFICE + "spreadsheetml.sheet",
}
OFFICE_SUFFIXES: dict[str, OfficeType] = {
    **dict.fromkeys(("docx", "docm", "dotx", "dotm"), "docx"),
    **dict.fromkeys(("pptx", "pptm", "ppsx", "ppsm", "potx", "potm"), "pptx"),
    **dict.fromkeys(("xlsx", "xlsm", "xltx", "xltm"), "xlsx"),
}
Type = tuple[DocType, str]  # with its media type
XLS: Type = ("xls", "application/vnd.ms-excel")
XLSB: Type = ("xlsb", "application/vnd.ms-excel.sheet.binary.macroEnabled.12")
EPUB: Type = ("epub", "application/epub+zip")
# The first member of a book or an OpenDocument says what it is; it is not packed.
MIMETYPE = re.compile(rb"PK\x03\x04.{22}\x08\x00..mimetype.{0,64}?application/(epub\+zip|vnd[.a-z]+)", re.DOTALL)
OPEN = "application/vnd.oasis.opendocument."
ZIPPED: dict[bytes, Type] = {
    b"epub+zip": EPUB,
    b"vnd.oasis.opendocument.text": ("odt", OPEN + "text"),
    b"vnd.oasis.opendocument.spreadsheet": ("ods", OPEN + "spreadsheet"),
    b"vnd.oasis.opendocument.presentation": ("odp", OPEN + "presentation"),
}
OPEN_SUFFIXES = {
    "odt": b"vnd.oasis.opendocument.text",
    "ods": b"vnd.oasis.opendocument.spreadsheet",
    "odp": b"vnd.oasis.opendocument.presentation",
}
# Names of members that only one kind of file has.
MEMBERS: tuple[tuple[bytes, Type], ...] = (
    (b"META-INF/container.xml", EPUB),
    (b"xl/workbook.bin", XLSB),
    (b"word/", ("docx", OFFICE_MEDIA_TYPES["docx"])),
    (b"ppt/", ("pptx", OFFICE_MEDIA_TYPES["pptx"])),
    (b"xl/", ("xlsx", OFFICE_MEDIA_TYPES["xlsx"])),
)
XLS_SUFFIXES = ("xls", "xlt")
# Names of streams in a container of old Office files. A text or a presentation may embed a workbook.
XLS_STREAMS = ("\0Workbook".encode("utf-16-le"), "\0Book".encode("utf-16-le"))
OTHER_STREAMS = ("WordDocument".encode("utf-16-le"), "PowerPoint Document".encode("utf-16-le"))
PICTURES = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "image/png"),
    (re.compile(rb"\xff\xd8\xff"), "image/jpeg"),
    (re.compile(rb"GIF8[79]a"), "image/gif"),
    (re.compile(rb"RIFF.{4}WEBP", re.DOTALL), "image/webp"),
    # Two reserved numbers that are 0, and the length of the next header.
    (re.compile(rb"BM.{4}\0{4}.{4}[\x0c\x28\x34\x38\x40\x6c\x7c]\0{3}", re.DOTALL), "image/bmp"),
)
OLE = b"\xd0\xcf\x11\xe0"  # a container of old Office files, and of new ones that are encrypted
ZIP = b"PK\x03\x04"

# First bytes of what is certainly not text and not supported, and how to call it.
SIGNATURES: tuple[tuple[bytes, str], ...] = (
    (ZIP, "ZIP"),
    (OLE, "old Office"),
    (b"II*\x00", "TIFF"),
    (b"MM\x00*", "TIFF"),
    (b"\x1f\x8b", "gzip"),
    (b"7z\xbc\xaf", "7z"),
    (b"Rar!", "RAR"),
    (b"\x7fELF", "ELF program"),
)
HTML = re.compile(PROLOG + rb"<(?:!doctype\s+html|html[\s>])", re.IGNORECASE | re.DOTALL)
SVG = re.compile(
    PROLOG + rb"(?:<!doctype\s+svg.*?>\s*(?:<!--.*?-->\s*)*)?<(?:\w+:)?svg[\s>]", re.IGNORECASE | re.DOTALL
)

NOTEBOOK_CELLS = re.compile(rb"\A(?:\xef\xbb\xbf)?\s*\{.*?\"(?:cells|worksheets)\"\s*:\s*\[", re.DOTALL)
NOTEBOOK_VERSION = re.compile(rb"\"nbformat\"\s*:\s*\d")

MARKUP_WITHIN = 8192  # bytes: a prolog is not longer
PDF_WITHIN = 1024  # bytes: readers accept other bytes before a PDF
BOMS: tuple[tuple[bytes, str], ...] = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# Control characters that text never holds: all but tab, line feeds, form feed, backspace and escape.
NEVER_IN_TEXT = bytes(set(range(32)) - {8, 9, 10, 12, 13, 27})


@dataclass(frozen=True, slots=True)
class DetectedFormat:
    doc_type: DocType
    media_type: str


def detect(head: bytes, tail: bytes, filename: str) -> DetectedFormat:
    """The format of a file from its first and last bytes and its name."""
    suffix = PurePath(filename).suffix.lower().lstrip(".")
    if found := binary_format(head, tail, suffix):
        return found
    for signature, name in SIGNATURES:
        if head.startswith(signature):
            raise unsupported(filename, f"it is a {name} file")
    if not is_text(head):
        raise unsupported(filename, "it is not text")
    if suffix == "ipynb" or is_notebook(head, tail):
        return DetectedFormat("notebook", "application/x-ipynb+json")
    start = narrow(head)
    if suffix not in CODE and (structure := structure_of(start + narrow(tail))):
        raise unsupported(filename, structure)
    return text_format(start, suffix, PurePath(filename).name.lower())


def binary_format(head: bytes, tail: bytes, suffix: str) -> DetectedFormat | None:
    if head.startswith(b"%PDF-") or (b"%PDF-" in head[:PDF_WITHIN] and not is_text(head)):
        return DetectedFormat("pdf", "application/pdf")
    for signature, media_type in PICTURES:
        if signature.match(head):
            return DetectedFormat("image", media_type)
    if head.startswith(ZIP):
        return zipped_format(head, tail, suffix)
    return old_format(head, tail, suffix) if head.startswith(OLE) else None


def zipped_format(head: bytes, tail: bytes, suffix: str) -> DetectedFormat | None:
    """What an archive is, by its first member if that says it, else by the names of its members."""
    named = MIMETYPE.match(head)
    if named and named[1] in ZIPPED:
        return DetectedFormat(*ZIPPED[named[1]])
    for member, (doc_type, media_type) in MEMBERS:
        if member in tail or member in head:
            return DetectedFormat(doc_type, media_type)
    if suffix in OPEN_SUFFIXES and b"content.xml" in tail:
        return DetectedFormat(*ZIPPED[OPEN_SUFFIXES[suffix]])
    return None


def old_format(head: bytes, tail: bytes, suffix: str) -> DetectedFormat | None:
    """What a container of old Office files is. An encrypted file of a new Office is one too: the extractors tell."""
    edges = head + tail
    has_cells = any(stream in edges for stream in XLS_STREAMS) and not any(stream in edges for stream in OTHER_STREAMS)
    if has_cells or suffix in XLS_SUFFIXES:
        return DetectedFormat(*XLS)
    if suffix == "xlsb":
        return DetectedFormat(*XLSB)
    office = OFFICE_SUFFIXES.get(suffix)
    return DetectedFormat(office, OFFICE_MEDIA_TYPES[office]) if office else None


def text_format(head: bytes, suffix: str, name: str) -> DetectedFormat:
    if suffix in CODE or name in CODE_NAMES or head.startswith(b"#!"):
        return DetectedFormat("code", "text/plain")
    start = head[:MARKUP_WITHIN]
    if SVG.match(start):
        return DetectedFormat("svg", "image/svg+xml")
    if HTML.match(start) or suffix in ("html", "htm", "xhtml"):
        return DetectedFormat("html", "text/html")
    if suffix in MARKDOWN:
        return DetectedFormat("markdown", "text/markdown")
    return DetectedFormat("text", TEXT_MEDIA_TYPES.get(suffix, "text/plain"))


def is_notebook(head: bytes, tail: bytes) -> bool:
    """Whether a JSON text is a notebook; its version stands first or last in it."""
    cells = NOTEBOOK_CELLS.search(head)
    return cells is not None and any(map(NOTEBOOK_VERSION.search, (head, tail)))


def is_text(head: bytes) -> bool:
    """Whether these bytes could be the start of a text, in whatever encoding."""
    marked = any(head.startswith(bom) for bom, _ in BOMS)
    return marked or head.translate(None, NEVER_IN_TEXT) == head or wide_encoding(head) is not None


def narrow(head: bytes) -> bytes:
    """The start of a text with its ASCII characters as single bytes, so that markup is recognised."""
    encoding = next((name for bom, name in BOMS if head.startswith(bom)), None)
    if encoding is None and head.translate(None, NEVER_IN_TEXT) != head:
        encoding = wide_encoding(head)
    return head.decode(encoding, "ignore").encode("utf-8", "ignore") if encoding else head


def unsupported(filename: str, why: str) -> UnsupportedFormat:
    return UnsupportedFormat(
        f"{filename!r} cannot be read: {why}. Supported: {SUPPORTED}.", supported_formats=FORMAT_NAMES, reason=why
    )
