"""What a file is: by its content first, by its name only where the content cannot tell."""

import pytest

from kb.core.errors import UnsupportedFormat
from kb.ingest.extract.detect import detect
from made import (
    archive,
    docx,
    encoded,
    epub,
    notebook,
    opendocument,
    paragraph,
    pdf,
    picture,
    pptx,
    shape,
    written,
    xlsx,
)

OLE = b"\xd0\xcf\x11\xe0"
OPEN = "application/vnd.oasis.opendocument."
OFFICE = "application/vnd.openxmlformats-officedocument."


@pytest.mark.parametrize(
    ("name", "data", "doc_type", "media_type"),
    [
        ("is-a-pdf.docx", pdf(["x"]), "pdf", "application/pdf"),
        ("junk-first.bin", b"\x00\x01 \n" + pdf(["x"]), "pdf", "application/pdf"),
        (
            "a.pdf",
            docx(paragraph("x")),
            "docx",
            OFFICE + "wordprocessingml.document",
        ),
        (
            "a.zip",
            pptx([shape("x")]),
            "pptx",
            OFFICE + "presentationml.presentation",
        ),
        ("a", xlsx({"S": [["x"]]}), "xlsx", OFFICE + "spreadsheetml.sheet"),
        ("a.txt", b"\x89PNG\r\n\x1a\n...", "image", "image/png"),
        ("a.txt", b"\xff\xd8\xff\xe0...", "image", "image/jpeg"),
        ("a.txt", encoded(picture(), "GIF"), "image", "image/gif"),
        ("a.txt", encoded(picture(), "WEBP"), "image", "image/webp"),
        ("a.txt", encoded(picture(), "BMP"), "image", "image/bmp"),
        ("a.txt", b"BMW is a make of cars", "text", "text/plain"),
        ("a.txt", b"\n <!doctype HTML><p>x", "html", "text/html"),
        ("a.txt", b"<?xml version='1.0'?><!-- c --><html lang=en>", "html", "text/html"),
        ("a.htm", b"just words", "html", "text/html"),
        ("a.xml", b"<?xml version='1.0'?><!DOCTYPE svg PUBLIC 'x'><svg width='1'>", "svg", "image/svg+xml"),
        ("a.xml", b"<?xml version='1.0'?><svgish/>", "text", "application/xml"),
        ("a.php", b"<html><?php ?>", "code", "text/plain"),
        ("a.zip", opendocument("text", ""), "odt", OPEN + "text"),
        ("a.zip", opendocument("text-template", ""), "odt", OPEN + "text"),
        ("a.zip", opendocument("spreadsheet", ""), "ods", OPEN + "spreadsheet"),
        ("a.zip", opendocument("presentation", ""), "odp", OPEN + "presentation"),
        ("a.odt", archive({"content.xml": "x"}), "odt", OPEN + "text"),
        ("a.zip", archive({"xl/workbook.bin": "x"}), "xlsb", "application/vnd.ms-excel.sheet.binary.macroEnabled.12"),
        ("a", OLE + bytes(600) + "\0Workbook".encode("utf-16-le"), "xls", "application/vnd.ms-excel"),
        ("a.zip", epub({"a.xhtml": "x"}), "epub", "application/epub+zip"),
        ("a.zip", archive({"x": "", "META-INF/container.xml": ""}), "epub", "application/epub+zip"),
        ("a.json", notebook(written("x")), "notebook", "application/x-ipynb+json"),
        ("a.ipynb", b"{}", "notebook", "application/x-ipynb+json"),
        ("a.json", b'{"cells": [1], "nbformat": "of another kind"}', "text", "application/json"),
        ("a.md", b"# PDF files start with %PDF-1.7", "markdown", "text/markdown"),
    ],
)
def test_the_content_decides(name: str, data: bytes, doc_type: str, media_type: str) -> None:
    found = detect(data[:65536], data[-65536:], name)
    assert (found.doc_type, found.media_type) == (doc_type, media_type)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.zip", archive({"mimetype": "application/of-another-kind"})),
        ("old.doc", OLE + "\0Workbook\0WordDocument".encode("utf-16-le")),
        ("a.zip", opendocument("graphics", "")),
        ("old.doc", b"\xd0\xcf\x11\xe0" + bytes(600)),
        ("scan.tif", b"II*\x00..."),
        ("a.docx", b"\x1f\x8b\x08\x00\x00"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_list(name: str, data: bytes) -> None:
    with pytest.raises(UnsupportedFormat, match="Supported: PDF, DOCX, PPTX, XLSX, HTML, JPG, PNG, SVG") as refused:
        detect(data, data, name)
    assert refused.value.details["supported_formats"][:8] == [
        "pdf",
        "docx",
        "pptx",
        "xlsx",
        "html",
        "jpg",
        "png",
        "svg",
    ]


MAIL = (
    b"Received: from mx.example.org by mail\r\n\tfor <a@example.org>\r\nSubject: x\r\nMIME-Version: 1.0\r\n\r\naGVsbG8="
)
CANVAS = b'{"nodes":[{"id":"1","type":"text","text":"x","x":0,"y":0,"width":9,"height":9}],"edges":[]}'


@pytest.mark.parametrize(
    ("name", "data", "what"),
    [
        ("a.rtf", rb"{\rtf1\ansi Hello}", "RTF"),
        ("a.txt", rb"{\rtf1\ansi Hello}", "RTF"),
        ("a.eml", MAIL, "EML"),
        ("a.txt", b"From: a@example.org\nDate: now\nMessage-ID: <1@example.org>\n\nHello", "EML"),
        ("a.mbox", b"From a@example.org Thu Jan  1 00:00:00 2026\n" + MAIL, "MBOX"),
        ("a.mhtml", b"From: <Saved by Blink>\r\nSubject: x\r\nMIME-Version: 1.0\r\n\r\n", "MHTML"),
        ("a.drawio", b'<?xml version="1.0"?>\n<mxfile host="x"><diagram>7V1bc6M4Fv41', "draw.io"),
        ("a.canvas", CANVAS, "Obsidian"),
        ("wide.txt", r"{\rtf1\ansi Hello}".encode("utf-16"), "RTF"),
    ],
)
def test_what_needs_a_reader_of_its_structure_is_refused_by_name(name: str, data: bytes, what: str) -> None:
    with pytest.raises(UnsupportedFormat, match=rf"{what}.*(save|export) ") as refused:
        detect(data[:65536], data[-65536:], name)
    assert what in refused.value.details["reason"]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("memo.txt", b"From: the board\nTo: all\nSubject: tea\n\nThere is none."),
        ("order.yaml", b"date: 2026-01-01\nfrom: Oslo\nreceived: true\n"),
        (
            "fix.txt",
            b"From " + b"0" * 40 + b" Mon Sep 17 00:00:00 2001\nFrom: A <a@b.c>\nDate: x\nMIME-Version: 1.0\n\n---\n",
        ),
        ("mail.py", MAIL),
        ("graph.json", b'{"nodes":[{"id":1,"width":2,"height":3}],"edges":[]}'),
        ("cells.json", b'{"cells": [1, 2, 3]}'),
        ("data.xml", b"<?xml version='1.0'?><rows><row>x</row></rows>"),
        ("about.md", rb"RTF begins with {\rtf1, mail with Received: from."),
    ],
)
def test_what_only_resembles_a_structure_is_text(name: str, data: bytes) -> None:
    assert detect(data, data, name).doc_type in ("text", "code", "markdown")
