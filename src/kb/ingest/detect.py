"""What kind of file this is: by its content first, by its name only where the content cannot tell."""

import codecs
from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal

from kb.errors import UnsupportedFormat
from kb.nouns import DocType

TextKind = Literal["markdown", "text", "code"]

SUPPORTED = "Markdown, plain text (txt, csv, tsv, json, xml, yaml, log) and program sources"

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
MEDIA_TYPES = {
    "csv": "text/csv",
    "tsv": "text/tab-separated-values",
    "json": "application/json",
    "xml": "application/xml",
    "yaml": "application/yaml",
    "yml": "application/yaml",
}

# First bytes of what is certainly not text, and how to call it.
SIGNATURES: tuple[tuple[bytes, str], ...] = (
    (b"%PDF-", "PDF"),
    (b"PK\x03\x04", "ZIP-based (DOCX, PPTX, XLSX, ...)"),
    (b"\xd0\xcf\x11\xe0", "old Office"),
    (b"\x89PNG", "PNG"),
    (b"\xff\xd8\xff", "JPEG"),
    (b"GIF8", "GIF"),
    (b"\x1f\x8b", "gzip"),
    (b"7z\xbc\xaf", "7z"),
    (b"Rar!", "RAR"),
    (b"\x7fELF", "ELF program"),
)
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
class Format:
    doc_type: DocType
    media_type: str


def detect(head: bytes, filename: str) -> Format:
    """The format of a file from its first bytes and its name."""
    for signature, name in SIGNATURES:
        if head.startswith(signature):
            raise unsupported(filename, f"it is a {name} file")
    if encoding_of(head, complete=False) is None:
        raise unsupported(filename, "it is not text")
    suffix = PurePath(filename).suffix.lower().lstrip(".")
    if suffix in MARKDOWN:
        return Format("markdown", "text/markdown")
    if suffix in CODE or PurePath(filename).name.lower() in CODE_NAMES or head.startswith(b"#!"):
        return Format("code", "text/plain")
    return Format("text", MEDIA_TYPES.get(suffix, "text/plain"))


def encoding_of(data: bytes, *, complete: bool) -> str | None:
    """How these bytes spell text, or None. An incomplete head may end in the middle of a character."""
    for bom, encoding in BOMS:
        if data.startswith(bom):
            return encoding
    if data.translate(None, NEVER_IN_TEXT) != data:
        return None
    try:
        codecs.getincrementaldecoder("utf-8")().decode(data, final=complete)
    except UnicodeDecodeError:
        # Not UTF-8, but without control characters: text of an older kind, where each byte is a character.
        return "cp1252"
    return "utf-8"


def unsupported(filename: str, why: str) -> UnsupportedFormat:
    return UnsupportedFormat(
        f"{filename!r} cannot be read: {why}. Supported: {SUPPORTED}.",
        supported_formats=["markdown", "text", "code"],
    )
