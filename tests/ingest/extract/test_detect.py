"""What a file is: by its content first, by its name only where the content cannot tell."""

import pytest

from kb.core.errors import UnsupportedFormat
from kb.ingest.extract.detect import detect
from made import archive, docx, epub, notebook, paragraph, pdf, pptx, shape, written, xlsx

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
        ("a.txt", b"\n <!doctype HTML><p>x", "html", "text/html"),
        ("a.txt", b"<?xml version='1.0'?><!-- c --><html lang=en>", "html", "text/html"),
        ("a.htm", b"just words", "html", "text/html"),
        ("a.xml", b"<?xml version='1.0'?><!DOCTYPE svg PUBLIC 'x'><svg width='1'>", "svg", "image/svg+xml"),
        ("a.xml", b"<?xml version='1.0'?><svgish/>", "text", "application/xml"),
        ("a.php", b"<html><?php ?>", "code", "text/plain"),
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
        ("old.doc", b"\xd0\xcf\x11\xe0" + bytes(600)),
        ("anim.gif", b"GIF89a..."),
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
