"""What comes out of each format: its text in order, its structure, and the anchor of every part."""

import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from kb.core.errors import JobFailure
from kb.ingest.extract import Part, Source
from kb.ingest.sandbox.ocr import OcrChoice
from kb.ingest.sandbox.sandbox import Sandbox
from made import (
    W,
    archive,
    assembled,
    docx,
    encoded,
    office,
    paragraph,
    pdf,
    picture,
    pptx,
    relations,
    shape,
    stream,
    xlsx,
)

Extract = Callable[..., list[Part]]
STRIP_OFFSETS = 273  # the tag of a TIFF that says where its pixels are
LOREM = "Herons stand in shallow water and wait for fish."


# PDF


def test_a_pdf_has_a_part_for_every_page(extract: Extract) -> None:
    first, second = extract(pdf(["Alpha page", "Beta page"], title="On birds", bookmarks=[("Waders", 1), ("Ducks", 2)]))
    assert (first.text, second.text) == ("Alpha page", "Beta page")
    assert [(part.name, part.anchor.page, part.anchor.heading) for part in (first, second)] == [
        ("page 1", 1, "Waders"),
        ("page 2", 2, "Ducks"),
    ]
    assert (first.title, first.metadata, second.total) == ("On birds", {"author": "Anna Smith"}, 2)


def test_words_cut_at_a_line_end_are_joined(extract: Extract) -> None:
    (page,) = extract(pdf(["The migra-\ntion of geese"]))
    assert page.text == "The migration of geese"


def test_a_page_without_text_is_empty_and_a_scan_says_that_nobody_read_it(extract: Extract) -> None:
    pages = extract(pdf([LOREM, "", picture("Scan", (600, 800))]))
    assert [(page.outcome.state, page.outcome.reason) for page in pages] == [
        ("ok", None),
        ("empty", "no text"),
        ("failed", "OCR off"),
    ]


def scan_in_strips(note: str = "") -> bytes:
    """One page, drawn as two pictures that cover half of it each, with a note stuck to it."""
    half = stream(
        bytes(64 * 64),
        "/Type /XObject /Subtype /Image /Width 64 /Height 64 /ColorSpace /DeviceGray /BitsPerComponent 8",
    )
    drawn = stream(b"q 612 0 0 250 0 0 cm /I Do Q q 612 0 0 250 0 250 cm /I Do Q")
    page = (
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /XObject << /I 3 0 R >> >>"
    )
    stuck = b" /Annots [<< /Type /Annot /Subtype /Text /Rect [9 9 29 29] /Contents (%s) >>]" % note.encode()
    return assembled(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Count 1 /Kids [5 0 R] >>",
            half,
            drawn,
            page + (stuck if note else b"") + b" >>",
            b"<< >>",
        ]
    )


def test_a_scan_in_strips_or_under_a_note_is_a_scan(extract: Extract) -> None:
    with pytest.raises(JobFailure, match="OCR off"):
        extract(scan_in_strips())
    (page,) = extract(scan_in_strips("A reviewer wrote more than thirty-two letters onto this page."))
    assert (page.outcome.state, page.outcome.reason) == ("failed", "OCR off")
    assert "A reviewer wrote" in page.text


def test_modules_that_lie_in_the_current_folder_are_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lxml.py").write_text("raise SystemExit('a stranger')")
    (tmp_path / "file.docx").write_bytes(docx(paragraph("Herons")))
    monkeypatch.chdir(tmp_path)
    sandbox = Sandbox(lambda: OcrChoice(missing="OCR off", missing_code="no_text"))
    (part,) = sandbox.parts("docx", Source(tmp_path / "file.docx", "file.docx"), lambda: None)
    sandbox.close()
    assert part.text == "Herons"


def test_a_pdf_of_scans_only_fails_and_says_why(extract: Extract) -> None:
    with pytest.raises(JobFailure, match="No text found: 3 pages, OCR off") as failure:
        extract(pdf([picture("Scan", (600, 800))] * 3))
    assert failure.value.code == "no_text"


# DOCX


def test_headings_lists_and_numbers_of_a_docx(extract: Extract) -> None:
    styles = (
        '<w:style w:styleId="H1"><w:name w:val="heading 1"/></w:style>'
        '<w:style w:styleId="Mine"><w:name w:val="Mine"/><w:basedOn w:val="H1"/></w:style>'
    )
    numbering = (
        '<w:abstractNum w:abstractNumId="7"><w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt w:val="lowerRoman"/>'
        '<w:lvlText w:val="%1)"/></w:lvl></w:abstractNum><w:num w:numId="3"><w:abstractNumId w:val="7"/></w:num>'
    )
    counted = '<w:numPr><w:ilvl w:val="0"/><w:numId w:val="3"/></w:numPr>'
    body = paragraph("Waders", '<w:pStyle w:val="Mine"/>') + paragraph("Heron", counted) + paragraph("Stork", counted)
    (part,) = extract(docx(body, styles=styles, numbering=numbering))
    assert part.text == "# Waders\n\ni) Heron\n\nii) Stork"
    assert part.title == "Waders"


def test_tables_notes_comments_headers_and_alternative_texts_of_a_docx(extract: Extract) -> None:
    def cell(text: str, properties: str = "") -> str:
        return f"<w:tc><w:tcPr>{properties}</w:tcPr>{paragraph(text)}</w:tc>"

    rows = [cell("Bird") + cell("Count"), cell("Both", '<w:gridSpan w:val="2"/>'), cell("Heron") + cell("7")]
    table = f"<w:tbl>{''.join(f'<w:tr>{row}</w:tr>' for row in rows)}</w:tbl>"
    body = (
        '<w:p><w:r><w:t>Seen</w:t><w:footnoteReference w:id="2"/><w:commentReference w:id="5"/></w:r>'
        "<w:del><w:r><w:delText>never</w:delText></w:r></w:del>"
        '<w:r><w:drawing><docPr descr="A heron in reeds"/></w:drawing></w:r></w:p>' + table
    )
    (part,) = extract(
        docx(
            body,
            footnotes=f'<w:footnote w:id="2">{paragraph("In spring")}</w:footnote>',
            comments=f'<w:comment w:id="5" w:author="Ben">{paragraph("Really?")}</w:comment>',
            header=paragraph("Confidential"),
        )
    )
    assert part.text.split("\n\n") == [
        "Seen [A heron in reeds]",
        "[In spring]",
        "[Ben: Really?]",
        "| Bird | Count |\n| --- | --- |\n| Both | Both |\n| Heron | 7 |",
        "Confidential",
    ]


# PPTX


def test_slides_come_in_the_order_shown_with_title_first_and_notes_last(extract: Extract) -> None:
    table = (
        "<p:graphicFrame><a:tbl><a:tr><a:tc><p:txBody/></a:tc></a:tr><a:tr>"
        "<a:tc><a:txBody><a:p><a:r><a:t>Heron</a:t></a:r></a:p></a:txBody></a:tc></a:tr></a:tbl></p:graphicFrame>"
    )
    first, second = extract(
        pptx([shape("Body text") + shape("The title", "title"), table + shape("Second")], "Say hello")
    )
    assert first.text == "# The title\n\nBody text\n\nNotes: Say hello"
    assert (first.name, first.anchor.slide, first.total) == ("slide 1", 1, 2)
    assert second.text == "| Heron |\n| --- |\n\nSecond"


def test_a_broken_slide_is_the_only_one_that_is_missing(extract: Extract) -> None:
    slides = extract(pptx([shape("First"), "<p:broken>", shape("Third")]))
    assert [(slide.text, slide.outcome.state) for slide in slides] == [("First", "ok"), ("", "failed"), ("Third", "ok")]


# XLSX


def test_sheets_say_their_cells_and_columns(extract: Extract) -> None:
    data = xlsx({"Costs": [["Item", "Price"], ["Reed", 12], [None, None], ["Total", 12]], "Nothing": []}, first_row=3)
    table, total, empty = extract(data)
    assert table.text == "Costs\nItem | Price\nReed | 12"
    assert (table.name, table.anchor.sheet) == ("sheet Costs", "Costs")
    assert table.anchor.heading == "Costs > A3:B4 > Item | Price"
    assert (total.text, total.anchor.heading) == ("Total | 12", "Costs > A6:B6")
    assert (empty.name, empty.outcome.state) == ("sheet Nothing", "empty")


def test_a_long_sheet_comes_in_pieces_that_all_know_the_columns(extract: Extract) -> None:
    seen: list[list[str | int | None]] = [[f"bird number {n}", n] for n in range(400)]
    pieces = extract(xlsx({"Log": [["Bird", "Seen at"], *seen]}))
    assert len(pieces) > 3
    assert all((piece.anchor.heading or "").endswith("Bird | Seen at") for piece in pieces)
    assert pieces[-1].anchor.heading.split(" > ")[1].endswith(":B401")  # type: ignore[union-attr]


def test_a_broken_sheet_is_the_only_one_that_is_missing(extract: Extract) -> None:
    whole = xlsx({"Good": [["fine"]], "Bad": [["lost"]]})
    with zipfile.ZipFile(io.BytesIO(whole)) as old:
        members: dict[str, str | bytes] = {name: old.read(name) for name in old.namelist()}
    members["xl/worksheets/sheet2.xml"] = "<worksheet><sheetData><row><c></row>"
    good, bad = extract(archive(members))
    assert (good.text, good.outcome.state) == ("Good\nfine", "ok")
    assert (bad.name, bad.outcome.state) == ("sheet Bad", "failed")


def test_a_sheet_whose_part_is_gone_is_missing_and_not_empty(extract: Extract) -> None:
    whole = xlsx({"Good": [["fine"]], "Lost": [["gone"]]})
    with zipfile.ZipFile(io.BytesIO(whole)) as old:
        members: dict[str, str | bytes] = {name: old.read(name) for name in old.namelist() if "sheet2" not in name}
    _, lost = extract(archive(members))
    assert (lost.name, lost.outcome.state) == ("sheet Lost", "failed")


# HTML and SVG


def test_rulers_and_brackets_of_a_page_take_nothing_with_them(extract: Extract) -> None:
    page = (
        "<html><head><title>Contract</title></head><body><hr><h1>Termination</h1><p>It ends in May.</p><hr>"
        "<p>Signed</p><img src=x.png><pre>int a[]; b[] = c;</pre></body></html>"
    )
    (part,) = extract(page.encode())
    assert part.title == "Contract"
    for told in ("Termination", "It ends in May.", "Signed", "int a[]; b[] = c;"):
        assert told in part.text
    assert "title:" not in part.text
    assert "x.png" not in part.text


@pytest.mark.parametrize("charset", ["utf-16", "idna", "undefined", "no-such-thing"])
def test_a_page_that_names_an_encoding_it_cannot_have_is_read_as_it_looks(extract: Extract, charset: str) -> None:
    (part,) = extract(f"<html><head><meta charset={charset}></head><body><p>grüne Reiher</p></body></html>".encode())
    assert part.text == "grüne Reiher"


def test_a_page_keeps_headings_and_tables_and_loses_scripts_and_addresses(extract: Extract) -> None:
    page = (
        "<!DOCTYPE html><html><head><meta charset=latin-1><title>Birds &amp; reeds</title><style>p{}</style></head>"
        "<h1>Waders</h1><p>A <a href='https://example.org/long'>grün</a> place<img alt='A heron' src='x.png'></p>"
        "<table><tr><th>Bird</th></tr><tr><td>Heron</td></tr></table><script>var x</script></body></html>"
    )
    (part,) = extract(page.encode("latin-1"))
    assert part.title == "Birds & reeds"
    assert "# Waders" in part.text
    assert "A grün place[A heron]" in part.text
    assert "| Heron |" in part.text
    assert not [left for left in ("example", "var x", "p{}") if left in part.text]


def test_an_svg_tells_titles_descriptions_and_texts(extract: Extract) -> None:
    drawing = (
        '<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"><title>Nest</title><desc>From above</desc>'
        '<style>text{}</style><g><text x="1">Eg<tspan>gs</tspan></text><text><tspan x="1">two</tspan>'
        '<tspan x="9">three</tspan></text></g></svg>'
    )
    (part,) = extract(drawing.encode())
    assert part.text.split("\n") == ["Nest", "From above", "Eggs", "two three"]
    assert part.title == "Nest"


def test_comments_and_entities_in_an_svg_take_no_text_with_them(extract: Extract) -> None:
    drawing = (
        '<!DOCTYPE svg [<!ENTITY e "x">]><svg xmlns="http://www.w3.org/2000/svg"><text>one <!-- c -->two <?p?>three '
        "&e; four</text><flowRoot><flowPara>five</flowPara><flowPara>six</flowPara></flowRoot></svg>"
    )
    (part,) = extract(drawing.encode())
    words = part.text.split()
    assert [word for word in ("one", "two", "three", "four", "five", "six") if word not in words] == []


# Images


def test_an_image_nobody_could_read_is_found_by_name_and_description(extract: Extract) -> None:
    exif = Image.Exif()
    exif[0x010E] = "A heron at dawn"
    (part,) = extract(encoded(picture(), "JPEG", exif=exif), "reed_bed-2024.jpg")
    assert part.text == "reed bed 2024\n\nA heron at dawn"
    assert (part.outcome.state, part.outcome.reason) == ("failed", "OCR off")


# Hostile input


def bomb(levels: int = 20) -> str:
    entities = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10 if n else "lol"}">' for n in range(levels))
    return f"<!DOCTYPE x [{entities}]>"


def far_cells() -> bytes:
    sheet = (
        '<c r="A1" t="inlineStr"><is><t>a</t></is></c></row><row r="1048576"><c r="XFD1048576" t="inlineStr">'
        "<is><t>z</t></is></c>"
    )
    made = xlsx({"S": [["marker"]]})
    with zipfile.ZipFile(io.BytesIO(made)) as old:
        members = {name: old.read(name) for name in old.namelist()}
    written = members["xl/worksheets/sheet1.xml"]
    start, end = written.index(b"<c "), written.index(b"</row>")
    members["xl/worksheets/sheet1.xml"] = written[:start] + sheet.encode() + written[end:]
    return archive(dict(members))


PLAIN_DOCX = docx(paragraph(LOREM))
NESTED = "<w:sdt>" * 3000 + paragraph(LOREM) + "</w:sdt>" * 3000


@pytest.mark.parametrize(
    ("name", "data", "code"),
    [
        ("cut.pdf", pdf([LOREM])[:200], "corrupt"),
        ("junk.pdf", b"%PDF-1.4 and then nothing that belongs there", "corrupt"),
        ("cut.docx", PLAIN_DOCX[: len(PLAIN_DOCX) // 2], "corrupt"),
        ("lost.docx", archive({"word/media/image.png": b"no document"}), "corrupt"),
        ("broken.docx", docx("<w:p><w:unclosed>"), "corrupt"),
        ("nested.docx", docx(NESTED), "too_complex"),
        ("zip-bomb.docx", office("word/document.xml", {"word/document.xml": b" " * 400 * 2**20}), "too_complex"),
        (
            "xml-bomb.docx",
            office("word/document.xml", {"word/document.xml": f"{bomb()}<w:document {W}>&a9;</w:document>"}),
            "too_complex",
        ),
        ("members.docx", office("word/document.xml", {f"word/{n}": b"" for n in range(10_001)}), "too_complex"),
        ("locked.docx", b"\xd0\xcf\x11\xe0" + "EncryptedPackage".encode("utf-16-le"), "encrypted"),
        ("old.docx", b"\xd0\xcf\x11\xe0" + bytes(5000), "unsupported_format"),
        ("empty.docx", docx(""), "no_text"),
        ("far.xlsx", far_cells(), "out_of_memory"),
        ("bomb.svg", f"{bomb()}<svg>&a19;</svg>".replace("DOCTYPE x", "DOCTYPE svg").encode(), "too_complex"),
        ("deep.html", b"<!DOCTYPE html>" + b"<div>" * 5000 + LOREM.encode(), "too_complex"),
        ("cut.png", encoded(picture("x"))[:200], "corrupt"),
        ("huge.png", encoded(Image.new("1", (20_000, 20_000))), "too_complex"),
    ],
)
def test_hostile_files_end_with_their_code(fails: Callable[..., str], name: str, data: bytes, code: str) -> None:
    assert fails(data, name) == code


def test_an_entity_that_names_a_file_is_never_read(extract: Extract, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("the secret")
    doctype = f'<!DOCTYPE w [<!ENTITY x SYSTEM "file://{tmp_path}/secret">]>'
    body = f"{doctype}<w:document {W}><w:body><w:p><w:r><w:t>seen &x;</w:t></w:r></w:p></w:body></w:document>"
    (part,) = extract(office("word/document.xml", {"word/document.xml": body}))
    assert "seen" in part.text
    assert "secret" not in part.text


def test_a_page_of_any_size_is_rendered_within_bounds(extract: Extract) -> None:
    data = pdf([picture("Scan", (600, 800))]).replace(b"[0 0 612 792]", b"[0 0 14400 14400]")
    with pytest.raises(JobFailure, match="1 page"):
        extract(data, force_ocr=True)


def test_a_relation_out_of_the_package_leads_nowhere(extract: Extract) -> None:
    members = {"word/document.xml": f"<w:document {W}><w:body>{paragraph('here')}</w:body></w:document>"}
    outside = relations(("header", "../../../../etc/passwd"))
    (part,) = extract(office("word/document.xml", {**members, "word/_rels/document.xml.rels": outside}))
    assert part.text == "here"


def test_every_passage_of_a_page_of_figures_stands_under_its_heading(extract: Extract) -> None:
    figures = "\n".join(f"Reed beds, row {n} {n * 7}" for n in range(20))
    first, second, prose = extract(
        pdf(
            [
                f"Yearly report\nThe Heron Society\nCosts of the Reed Beds\n{figures}",
                f"The Heron Society\nBalance Sheet\n{figures}",
                "A Heading\nHerons wait.\nStorks do not.\nNobody counts them here.",
            ]
        )
    )
    assert first.anchor.heading == "The Heron Society Costs of the Reed Beds"
    assert second.anchor.heading == "Balance Sheet"  # what stood on the page before is its running head
    assert prose.anchor.heading is None


@pytest.mark.parametrize("form", ["WEBP", "GIF", "BMP"])
def test_other_pictures_are_opened_like_a_png(extract: Extract, fails: Callable[..., str], form: str) -> None:
    data = encoded(picture("Gannet"), form)
    (part,) = extract(data, "the_gannet.png")
    assert (part.name, part.text, part.outcome.reason) == ("image", "the gannet", "OCR off")
    assert fails(data[:60], "cut.png") == "corrupt"


def test_of_an_animation_the_first_picture_is_read(extract: Extract) -> None:
    frames = [picture("One"), picture("Two")]
    (part,) = extract(encoded(frames[0], "GIF", save_all=True, append_images=frames[1:]), "dance.gif")
    assert part.outcome.reason == "the first of its 2 pictures is read; OCR off"


def test_a_picture_that_would_unpack_to_gigabytes_is_refused(fails: Callable[..., str]) -> None:
    small = bytearray(encoded(picture("x"), "GIF"))
    small[6:10] = b"\xff\xff\xff\xff"  # 65,535 pixels a side
    assert fails(bytes(small)) == "too_complex"


def test_every_page_of_a_tiff_is_a_part(extract: Extract) -> None:
    pages = [picture("EBB"), picture("FLOOD").convert("1"), Image.new("I;16", (90, 30), 30_000)]
    parts = extract(encoded(pages[0], "TIFF", save_all=True, append_images=pages[1:]), "tidal_scan.tif")
    assert [(part.name, part.anchor.page, part.total) for part in parts] == [
        ("page 1", 1, 3),
        ("page 2", 2, 3),
        ("page 3", 3, 3),
    ]
    assert [part.text for part in parts] == ["tidal scan", "", ""]


def test_a_damaged_page_of_a_tiff_does_not_fail_the_others(extract: Extract) -> None:
    pages = [picture("EBB"), picture("FLOOD"), picture("MOON")]
    data = bytearray(encoded(pages[0], "TIFF", save_all=True, append_images=pages[1:], compression="tiff_deflate"))
    with Image.open(io.BytesIO(data)) as scan:
        scan.seek(1)
        (start, *_) = scan.tag_v2[STRIP_OFFSETS]  # type: ignore[attr-defined]
    data[start : start + 20] = bytes(20)
    parts = extract(bytes(data), "a.tif")
    assert ["cannot be read" in (part.outcome.reason or "") for part in parts] == [False, True, False]
