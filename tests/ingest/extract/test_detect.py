"""What a file is: by its content first, by its name only where the content cannot tell."""

import io
import zipfile

import pytest

from kb.core.errors import UnsupportedFormat
from kb.ingest.extract.detect import detect
from made import (
    archive,
    docx,
    encoded,
    epub,
    mailbox,
    notebook,
    opendocument,
    paragraph,
    pdf,
    picture,
    pptx,
    shape,
    tar,
    written,
    xlsx,
)

CANVAS = b'{"nodes":[{"id":"1","type":"text","text":"x","x":0,"y":0,"width":9,"height":9}],"edges":[]}'
OLE = b"\xd0\xcf\x11\xe0"
OPEN = "application/vnd.oasis.opendocument."
OFFICE = "application/vnd.openxmlformats-officedocument."


MAIL = (
    b"Received: from mx.example.org by mail\r\n\tfor <a@example.org>\r\nSubject: x\r\nMIME-Version: 1.0\r\n\r\naGVsbG8="
)


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
        ("a.txt", encoded(picture(), "TIFF"), "image", "image/tiff"),
        ("a.txt", encoded(picture(), "AVIF"), "image", "image/avif"),
        ("a.txt", rb"{\rtf1\ansi Hello}", "rtf", "application/rtf"),
        ("a.doc", b"{\\rtf1\\ansi{\\pict\\bin4 \x00\x01\x02\x03}x}", "rtf", "application/rtf"),
        ("wide.txt", r"{\rtf1\ansi Hello}".encode("utf-16"), "rtf", "application/rtf"),
        ("a.xml", b'<?xml version="1.0"?>\n<mxfile host="x"><diagram>7V1', "text", "application/vnd.jgraph.mxfile"),
        ("a.json", CANVAS, "text", "application/x-canvas+json"),
        ("a.csv", b"a,b\n1,2", "text", "text/csv"),
        ("a.jsonl", b"{}", "text", "application/x-ndjson"),
        ("a.txt", b"BMW is a make of cars", "text", "text/plain"),
        ("a.txt", b"\n <!doctype HTML><p>x", "html", "text/html"),
        ("a.txt", b"<?xml version='1.0'?><!-- c --><html lang=en>", "html", "text/html"),
        ("a.htm", b"just words", "html", "text/html"),
        ("a.xml", b"<?xml version='1.0'?><!DOCTYPE svg PUBLIC 'x'><svg width='1'>", "svg", "image/svg+xml"),
        ("a.xml", b"<?xml version='1.0'?><svgish/>", "text", "application/xml"),
        ("a.doc", b"<?xml version='1.0'?><w:wordDocument/>", "text", "application/xml"),
        ("book", b"<!DOCTYPE book PUBLIC '-//OASIS//DTD' 'docbook.dtd'><book/>", "text", "application/xml"),
        ("a.txt", b'<feed xmlns="http://www.w3.org/2005/Atom">', "text", "application/xml"),
        ("a.xsl", b"<?xml version='1.0'?><xsl:stylesheet/>", "code", "text/plain"),
        ("a.rtf", rb"{\pard \ql Hello\par}", "rtf", "application/rtf"),
        ("a.eml", b"From me@here\nReturn-Path: <me@here>\n\nx", "mail", "message/rfc822"),
        ("a.mbox", b"From me@here Mon Jun 01 10:00:00 2009\n\nx", "mailbox", "application/mbox"),
        ("a.p7s", b"MIME-Version: 1.0\nContent-Type: multipart/signed; x=y\n\nx", "mail", "message/rfc822"),
        ("wide.eml", MAIL.decode().encode("utf-16"), "mail", "message/rfc822"),
        ("a.php", b"<html><?php ?>", "code", "text/plain"),
        ("a.zip", opendocument("text", ""), "odt", OPEN + "text"),
        ("a.zip", opendocument("text-template", ""), "odt", OPEN + "text"),
        ("a.zip", opendocument("spreadsheet", ""), "ods", OPEN + "spreadsheet"),
        ("a.zip", opendocument("presentation", ""), "odp", OPEN + "presentation"),
        ("a.odt", archive({"content.xml": "x"}), "odt", OPEN + "text"),
        ("a.zip", archive({"xl/workbook.bin": "x"}), "xlsb", "application/vnd.ms-excel.sheet.binary.macroEnabled.12"),
        ("a", OLE + bytes(600) + "\0Workbook".encode("utf-16-le"), "xls", "application/vnd.ms-excel"),
        ("a", OLE + "\0Workbook\0WordDocument".encode("utf-16-le"), "doc", "application/msword"),
        ("a.doc", OLE + "PowerPoint Document".encode("utf-16-le"), "ppt", "application/vnd.ms-powerpoint"),
        ("a.ppt", OLE + "WordDocumentPowerPoint Document".encode("utf-16-le"), "ppt", "application/vnd.ms-powerpoint"),
        ("a.pps", OLE + bytes(600), "ppt", "application/vnd.ms-powerpoint"),
        ("a.zip", epub({"a.xhtml": "x"}), "epub", "application/epub+zip"),
        ("a.zip", archive({"x": "", "META-INF/container.xml": ""}), "epub", "application/epub+zip"),
        ("a.json", notebook(written("x")), "notebook", "application/x-ipynb+json"),
        ("a.ipynb", b"{}", "notebook", "application/x-ipynb+json"),
        ("a.json", b'{"cells": [1], "nbformat": "of another kind"}', "text", "application/json"),
        ("a.docx", archive({"notes/a.txt": "x"}), "archive", "application/zip"),
        ("a.zip", archive({"word/a.txt": "x", "xl/b.txt": "y"}), "archive", "application/zip"),
        ("a.zip", archive({"a.docx": docx(paragraph("x"))}), "archive", "application/zip"),
        ("a.bin", tar({"a.txt": b"x"}), "archive", "application/x-tar"),
        ("a.bin", tar({"a.txt": b"x"}, "w:gz"), "archive", "application/gzip"),
        ("a.bin", tar({"a.txt": b"x"}, "w:bz2"), "archive", "application/x-bzip2"),
        ("a.bin", tar({"a.txt": b"x"}, "w:xz"), "archive", "application/x-xz"),
        ("a.txt", MAIL, "mail", "message/rfc822"),
        ("a.txt", b"From: a@x.org\nDate: now\nMessage-ID: <1@x.org>\n\nHello", "mail", "message/rfc822"),
        ("a.eml", b"X-Sender: a@x.org\nSubject: x\n\nHello", "mail", "message/rfc822"),
        ("a", mailbox(MAIL), "mailbox", "application/mbox"),
        ("a", b"From: <Saved by Blink>\r\nSubject: x\r\nMIME-Version: 1.0\r\n\r\n", "html", "multipart/related"),
        ("a.mht", b"MIME-Version: 1.0\nContent-Type: multipart/related\n\nx", "html", "multipart/related"),
        ("a.msg", OLE + bytes(600), "mail", "application/vnd.ms-outlook"),
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
        ("a.zip", opendocument("graphics", "")),
        ("talk.key", archive({"index.apxl": "<key/>"})),
        ("pages", archive({"index.xml": "<sl/>", "buildVersionHistory.plist": "<plist/>"})),
        ("old.vsd", OLE + bytes(600)),
        ("photo.jpg", b"\0\0\0\x18ftypheic" + bytes(100)),
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


def test_an_archive_that_begins_with_a_pdf_is_an_archive() -> None:
    stored = io.BytesIO()
    with zipfile.ZipFile(stored, "w") as made:
        made.writestr("first.pdf", pdf(["x"]))
    for data in (stored.getvalue(), tar({"first.pdf": pdf(["x"])})):
        assert b"%PDF-" in data[:1024]
        assert detect(data, data, "papers").doc_type == "archive"
