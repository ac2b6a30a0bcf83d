"""What kind of file this is: by its content first, by its name only where the content cannot tell."""

import codecs
import re
from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal

from kb.core.errors import UnsupportedFormat
from kb.core.values import DocType
from kb.ingest.extract.dialects import COMMENTS, NAMED, PROLOG, XML_TYPE, dialect_of
from kb.ingest.extract.mails import is_mail, is_mailbox, is_saved_page
from kb.ingest.extract.packed import first_name, is_tar, zip_names
from kb.ingest.extract.wide import wide_encoding

OfficeType = Literal["docx", "pptx", "xlsx"]

SUPPORTED = (
    "PDF, DOCX, PPTX, XLSX, HTML, JPG, PNG, SVG, WebP, GIF, BMP, TIFF, AVIF, ODT, ODS, ODP, DOC, PPT, XLS, XLSB, "
    "EPUB, RTF, Jupyter notebooks, draw.io, Obsidian canvas, CSV, JSON, ZIP, TAR, EML, MSG, MBOX, MHTML, Markdown, "
    "plain text (xml, yaml, ...) and program sources"
)
FORMAT_NAMES = (
    "pdf docx pptx xlsx html jpg png svg webp gif bmp odt ods odp xls xlsb epub ipynb markdown text code rtf csv json "
    "drawio canvas tiff avif zip tar eml msg mbox mhtml doc ppt".split()
)

MARKDOWN = frozenset("md markdown mdown mkd mdx".split())
CODE = frozenset(
    """
    asm awk bash bat bzl c cc cfg cjs clj cljs cmake coffee cpp cs css cts cu cxx d dart diff el elm erl ex exs f
    f90 fish fs go gradle graphql groovy h hcl hh hpp hs hxx ini java jl js jsx kt kts less lisp lua m mjs mk ml mm mts
    nim nix pas patch php pl pm proto ps1 py pyi pyx r rake rb rs sass scala scm scss sh sol sql swift tcl tex tf
    toml ts tsx v vb vhd vim vue wat xsl xslt zig zsh
    """.split()
)
CODE_NAMES = frozenset("dockerfile makefile rakefile gemfile jenkinsfile justfile".split())
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
MEMBERS: tuple[tuple[bytes, Type], ...] = ((b"META-INF/container.xml", EPUB), (b"xl/workbook.bin", XLSB))
FOLDERS: tuple[tuple[bytes, Type], ...] = (
    (b"word/", ("docx", OFFICE_MEDIA_TYPES["docx"])),
    (b"ppt/", ("pptx", OFFICE_MEDIA_TYPES["pptx"])),
    (b"xl/", ("xlsx", OFFICE_MEDIA_TYPES["xlsx"])),
)
CONTENT_TYPES = b"[Content_Types].xml"  # every new Office file has this member
OF_APPLE = frozenset((b"Index/Document.iwa", b"index.apxl", b"index.apxl.gz", b"buildVersionHistory.plist"))
APPLE_SUFFIXES = ("pages", "key", "numbers")
ARCHIVES = (
    (b"\x1f\x8b\x08", "application/gzip"),
    (b"BZh", "application/x-bzip2"),
    (b"\xfd7zXZ\x00", "application/x-xz"),
)
MSG: Type = ("mail", "application/vnd.ms-outlook")
DOC: Type = ("doc", "application/msword")
PPT: Type = ("ppt", "application/vnd.ms-powerpoint")
# Names of streams in a container of old Office files. Each kind may embed those that stand below it.
OLD_STREAMS: tuple[tuple[bytes, Type], ...] = tuple(
    (name.encode("utf-16-le"), kind)
    for name, kind in (
        ("__substg1.0_", MSG),
        ("WordDocument", DOC),
        ("PowerPoint Document", PPT),
        ("\0Workbook", XLS),
        ("\0Book", XLS),
    )
)
OLD_SUFFIXES: dict[str, Type] = {
    **dict.fromkeys(("xls", "xlt"), XLS),
    **dict.fromkeys(("doc", "dot", "wiz"), DOC),
    **dict.fromkeys(("ppt", "pps", "pot"), PPT),
    "xlsb": XLSB,
    "msg": MSG,
}
RTF = "application/rtf"
SIGNED = (
    (re.compile(rb"\{\\rtf"), RTF),  # pictures may stand in it as bytes
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "image/png"),
    (re.compile(rb"\xff\xd8\xff"), "image/jpeg"),
    (re.compile(rb"GIF8[79]a"), "image/gif"),
    (re.compile(rb"RIFF.{4}WEBP", re.DOTALL), "image/webp"),
    (re.compile(rb"II\*\0|MM\0\*|II\+\0\x08\0|MM\0\+\0\x08"), "image/tiff"),
    (re.compile(rb"....ftyp(?:avif|avis|mif1.{4}(?:.{4}){0,8}?avif)", re.DOTALL), "image/avif"),
    # Two reserved numbers that are 0, and the length of the next header.
    (re.compile(rb"BM.{4}\0{4}.{4}[\x0c\x28\x34\x38\x40\x6c\x7c]\0{3}", re.DOTALL), "image/bmp"),
)
HEIC = re.compile(rb"....ftyp(?:hei[cmsx]|hev[cmsx]|mif1|msf1)", re.DOTALL)
OLE = b"\xd0\xcf\x11\xe0"  # a container of old Office files, and of new ones that are encrypted
ZIP = b"PK\x03\x04"

# First bytes of what is certainly not text and not supported, and how to call it.
SIGNATURES: tuple[tuple[bytes, str], ...] = (
    (ZIP, "ZIP-based office"),
    (OLE, "old Office"),
    (b"7z\xbc\xaf", "7z"),
    (b"Rar!", "RAR"),
    (b"\x7fELF", "ELF program"),
)
HTML = re.compile(PROLOG + rb"<(?:!doctype\s+html|html[\s>])", re.IGNORECASE | re.DOTALL)
XML = re.compile(
    rb"\A(?:\xef\xbb\xbf)?\s*(?:<\?xml\s|<!DOCTYPE\s+[\w:.-]+\s+(?:PUBLIC|SYSTEM)\s"
    rb"|<[A-Za-z][^<>\s]*\s[^<>]*?\bxmlns[:=])"
)
SVG = re.compile(
    PROLOG + rb"(?:<!doctype\s+svg.*?>\s*+" + COMMENTS + rb")?<(?:\w+:)?svg[\s>]", re.IGNORECASE | re.DOTALL
)

CONVERSATION = re.compile(rb"\A\s*\{\s*\"format\"\s*:\s*\"kb-conversation/1\"")  # as `kb import` writes it
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
# Control characters that text never holds: all but tab, line feeds, form feed, backspace, escape, and the end of DOS.
END_OF_DOS = b"\x1a"
NEVER_IN_TEXT = bytes(set(range(32)) - {8, 9, 10, 12, 13, 27, *END_OF_DOS})
STRAY = 500  # bytes of UTF-8 to each control character that got into it by mistake


@dataclass(frozen=True, slots=True)
class DetectedFormat:
    doc_type: DocType
    media_type: str


def detect(head: bytes, tail: bytes, filename: str) -> DetectedFormat:
    """The format of a file from its first and last bytes and its name."""
    suffix = suffix_of(filename)
    if found := binary_format(head, tail, suffix):
        return found
    if found := mail_format(head, suffix):
        return found
    refuse_binary(head, filename)
    if suffix == "ipynb" or is_notebook(head, tail):
        return DetectedFormat("notebook", "application/x-ipynb+json")
    start = narrow(head)
    if CONVERSATION.match(start):
        return DetectedFormat("conversation", "application/x-kb-conversation+json")
    if suffix not in CODE and (dialect := dialect_of(start + narrow(tail), suffix)):
        return DetectedFormat(*dialect)
    return text_format(start, suffix, PurePath(filename).name.lower())


def suffix_of(filename: str) -> str:
    return PurePath(filename).suffix.lower().lstrip(".")


def refuse_binary(head: bytes, filename: str) -> None:
    """Raise for a file that is neither of a known format nor text."""
    if HEIC.match(head):
        raise unsupported(filename, "it is a HEIC picture; save it as JPG or PNG and add that")
    if head.startswith(ZIP) and suffix_of(filename) in APPLE_SUFFIXES:
        raise unsupported(filename, "it is a document of Pages, Keynote or Numbers; export it as PDF and add that")
    for signature, name in SIGNATURES:
        if head.startswith(signature):
            raise unsupported(filename, f"it is a {name} file")
    if not is_text(head):
        raise unsupported(filename, "it is not text")


def binary_format(head: bytes, tail: bytes, suffix: str) -> DetectedFormat | None:
    if is_pdf(head):
        return DetectedFormat("pdf", "application/pdf")
    for signature, media_type in SIGNED:
        if signature.match(head):
            return DetectedFormat("rtf" if media_type == RTF else "image", media_type)
    if head.startswith(ZIP):
        return zipped_format(head, tail, suffix)
    for start, media_type in ARCHIVES:
        if head.startswith(start):
            return DetectedFormat("archive", media_type)
    if is_tar(head):
        return DetectedFormat("archive", "application/x-tar")
    return old_format(head, tail, suffix) if head.startswith(OLE) else None


def is_pdf(head: bytes) -> bool:
    """Whether these bytes begin a PDF, perhaps behind others; the first member of an archive is not meant."""
    if b"%PDF-" not in head[:PDF_WITHIN]:
        return False
    return head.startswith(b"%PDF-") or not (is_text(head) or head.startswith(ZIP) or is_tar(head))


def zipped_format(head: bytes, tail: bytes, suffix: str) -> DetectedFormat | None:
    """What an archive is, by its first member if that says it, else by the names of its members."""
    named = MIMETYPE.match(head)
    if named and named[1] in ZIPPED:
        return DetectedFormat(*ZIPPED[named[1]])
    if first_name(head) == b"mimetype":
        return None
    names = zip_names(head, tail)
    for member, (doc_type, media_type) in MEMBERS:
        if member in names:
            return DetectedFormat(doc_type, media_type)
    is_office = CONTENT_TYPES in names or suffix in OFFICE_SUFFIXES
    for folder, (doc_type, media_type) in FOLDERS:
        if is_office and any(name.startswith(folder) for name in names):
            return DetectedFormat(doc_type, media_type)
    if suffix in OPEN_SUFFIXES and b"content.xml" in names:
        return DetectedFormat(*ZIPPED[OPEN_SUFFIXES[suffix]])
    is_of_apple = suffix in APPLE_SUFFIXES or OF_APPLE & names
    return None if CONTENT_TYPES in names or is_of_apple else DetectedFormat("archive", "application/zip")


def old_format(head: bytes, tail: bytes, suffix: str) -> DetectedFormat | None:
    """What a container of old Office files is. An encrypted file of a new Office is one too: the extractors tell."""
    edges = head + tail
    held = [kind for stream, kind in OLD_STREAMS if stream in edges]
    named = OLD_SUFFIXES.get(suffix)
    if held or named:
        return DetectedFormat(*(named if named and (named in held or not held) else held[0]))
    office = OFFICE_SUFFIXES.get(suffix)
    return DetectedFormat(office, OFFICE_MEDIA_TYPES[office]) if office else None


def mail_format(head: bytes, suffix: str) -> DetectedFormat | None:
    if suffix in CODE:
        return None
    start = narrow(head)
    if is_saved_page(start, suffix):
        return DetectedFormat("html", "multipart/related")
    if is_mailbox(start, suffix):
        return DetectedFormat("mailbox", "application/mbox")
    return DetectedFormat("mail", "message/rfc822") if is_mail(start, suffix) else None


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
    if XML.match(start):
        return DetectedFormat("text", XML_TYPE)
    return DetectedFormat("text", NAMED.get(suffix, "text/plain"))


def is_notebook(head: bytes, tail: bytes) -> bool:
    """Whether a JSON text is a notebook; its version stands first or last in it."""
    cells = NOTEBOOK_CELLS.search(head)
    return cells is not None and any(map(NOTEBOOK_VERSION.search, (head, tail)))


def is_text(head: bytes) -> bool:
    """Whether these bytes could be the start of a text, in whatever encoding."""
    marked = any(head.startswith(bom) for bom, _ in BOMS)
    is_plain = head.translate(None, NEVER_IN_TEXT) == head
    return marked or is_plain or strays(head) > 0 or wide_encoding(head) is not None


def strays(data: bytes) -> int:
    """How many control characters strayed into a text in UTF-8; 0 if these bytes are none. The last one may be cut."""
    count = len(data) - len(data.translate(None, NEVER_IN_TEXT))
    if count * STRAY > len(data) or 0 in data:
        return 0
    try:
        codecs.getincrementaldecoder("utf-8")().decode(data)
    except UnicodeDecodeError:
        return 0
    return count


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
