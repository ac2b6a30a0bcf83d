"""Pictures inside documents: read by OCR and cited where they stand, each once; what is not read is in the ledger."""

import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kb.ingest.extract import Part, Source
from kb.ingest.extract.detect import detect
from kb.ingest.sandbox import ocr
from kb.ingest.sandbox.sandbox import Sandbox
from made import (
    A,
    R,
    encoded,
    epub,
    holding,
    illustrated,
    opendocument,
    paragraph,
    picture,
    pptx,
    relations,
    shape,
    xlsx,
)

Extract = Callable[..., list[Part]]
HERON, STORK, CRANE = (encoded(picture(f"{bird} nest")) for bird in ("Heron", "Stork", "Crane"))
BLANK, ICON = encoded(picture()), encoded(picture(size=(24, 24)))
HEADING = '<w:outlineLvl w:val="{}"/>'
XDR = 'xmlns:xdr="http://schemas.openxmlformats.org/drawingml/2006/spreadsheetDrawing"'
BLIP = '<p:pic><p:blipFill><a:blip r:embed="{}"/></p:blipFill></p:pic>'
IMAGE = '<draw:frame><draw:image xlink:href="{}"/></draw:frame>'
SHEET = '<table:table table:name="Marsh"><table:shapes>{}</table:shapes></table:table>'
XLINK = 'xmlns:xlink="http://www.w3.org/1999/xlink"'


@pytest.fixture(scope="module")
def reader() -> Iterator[Sandbox]:
    made = Sandbox(lambda: ocr.choose("rapidocr"))
    yield made
    made.close()


@pytest.fixture
def read(reader: Sandbox, tmp_path: Path) -> Extract:
    """A file's parts, its pictures read by the real OCR."""

    def run(data: bytes) -> list[Part]:
        path = tmp_path / "original"
        path.write_bytes(data)
        doc_type = detect(data[:65536], data[-65536:], "file").doc_type
        return list(reader.parts(doc_type, Source(path, "file"), lambda: None))

    return run


def pictures(parts: list[Part]) -> list[tuple[str, str, str | None]]:
    """Name, text and heading of what was read in pictures."""
    return [(part.name, part.text, part.anchor.heading) for part in parts if part.outcome.state == "ocr"]


def entries(parts: list[Part]) -> list[tuple[str, str, str | None]]:
    return [(part.name, part.outcome.state, part.outcome.reason) for part in parts if part.outcome.state != "ok"]


def test_pictures_of_a_text_stand_under_their_headings(read: Extract) -> None:
    parts = read(
        illustrated(
            [
                paragraph("Birds", HEADING.format(0)),
                paragraph("Waders", HEADING.format(1)),
                HERON,
                paragraph("Few remain."),
                paragraph("Others", HEADING.format(1)),
                STORK,
                HERON,
                BLANK,
                ICON,
                encoded(picture(size=(1200, 18))),
            ]
        )
    )
    assert parts[0].text == "# Birds\n\n## Waders\n\nFew remain.\n\n## Others"
    assert pictures(parts) == [
        ("picture 1", "Heron nest", "Birds > Waders"),
        ("picture 2", "Stork nest", "Birds > Others"),
    ]
    assert [part.anchor.picture for part in parts] == [None, 1, 2, None]
    assert entries(parts)[-1] == (
        "pictures",
        "empty",
        "1 picture: read where it is first shown; 1 picture: without text; "
        "2 pictures: too small or narrow to hold words",
    )


def test_pictures_of_a_hidden_run_are_hidden(read: Extract) -> None:
    run = '<w:p><w:r><w:rPr><w:vanish/></w:rPr><w:drawing><a:blip r:embed="r1"/></w:drawing></w:r></w:p>'
    parts = read(illustrated([paragraph("Seen."), run, HERON]))
    assert [(part.text, part.hidden) for part in parts if part.outcome.state == "ocr"] == [("Heron nest", True)]


def test_pictures_of_slides_are_cited_by_slide_and_title(read: Extract) -> None:
    formula = f"<AlternateContent><Fallback>{BLIP.format('r2')}</Fallback></AlternateContent>"
    slides = pptx([shape("Nests", "title") + BLIP.format("r1") + formula, shape("More") + BLIP.format("r1")])
    media: dict[str, str | bytes] = {
        f"ppt/slides/_rels/slide{number}.xml.rels": relations(("image", "../media/a.png"), ("image", "../media/b.png"))
        for number in (1, 2)
    }
    parts = read(holding(slides, {**media, "ppt/media/a.png": HERON, "ppt/media/b.png": STORK}))
    assert pictures(parts) == [("slide 1, picture 1", "Heron nest", "Nests")]
    assert [part.anchor.slide for part in parts] == [1, 1, 2, 2, None]
    assert entries(parts)[1:] == [
        ("slide 2, pictures", "empty", "1 picture: read where it is first shown"),
        ("media", "empty", "1 picture: of backgrounds and layouts, or shown nowhere; not read"),
    ]


def test_pictures_of_sheets_are_cited_by_sheet_and_cell(read: Extract) -> None:
    book = xlsx({"Birds": [["Name", "Count"]], "Empty": []})
    anchored = (
        "<xdr:twoCellAnchor><xdr:from><xdr:col>2</xdr:col><xdr:row>4</xdr:row></xdr:from>"
        '<xdr:pic><a:blip r:embed="r1"/></xdr:pic></xdr:twoCellAnchor>'
    )
    parts = read(
        holding(
            book,
            {
                "xl/worksheets/_rels/sheet2.xml.rels": relations(("drawing", "../drawings/drawing1.xml")),
                "xl/drawings/drawing1.xml": f"<xdr:wsDr {XDR} {A} {R}>{anchored}</xdr:wsDr>",
                "xl/drawings/_rels/drawing1.xml.rels": relations(("image", "../media/a.png")),
                "xl/media/a.png": CRANE,
            },
        )
    )
    assert pictures(parts) == [("sheet Empty, picture 1", "Crane nest", "Empty > C5")]
    assert parts[-1].anchor.sheet == "Empty"


@pytest.mark.parametrize(
    ("kind", "body", "cited"),
    [
        ("text", '<text:h text:outline-level="1">Reeds</text:h><text:p>{}</text:p>', ("picture 1", "Reeds")),
        ("presentation", "<draw:page>{}</draw:page><draw:page/>", ("slide 1, picture 1", None)),
        ("spreadsheet", SHEET, ("sheet Marsh, picture 1", "Marsh")),
    ],
)
def test_pictures_of_an_opendocument_are_cited(read: Extract, kind: str, body: str, cited: tuple[str, str]) -> None:
    shown = body.format(IMAGE.format("Pictures/a.png")).replace("<draw:image", f"<draw:image {XLINK}")
    parts = read(holding(opendocument(kind, shown), {"Pictures/a.png": HERON, "Pictures/b.png": STORK}))
    assert pictures(parts) == [(cited[0], "Heron nest", cited[1])]
    assert parts[-1].name == "media"


def test_pictures_of_a_book_are_cited_by_chapter(read: Extract) -> None:
    pages = {
        "a.xhtml": '<p>Low.</p><img alt="" src="../art/a%20b.png"/><h2 id="f">Flood</h2><p>High.</p><img src="c.png"/>',
        "b.xhtml": '<svg><image xlink:href="d.png"/></svg>',
    }
    book = epub(pages, [("Ebb", "a.xhtml"), ("Flood", "a.xhtml#f")])
    parts = read(holding(book, {"art/a b.png": HERON, "book/c.png": STORK, "book/d.png": CRANE}))
    assert [(part.name, part.text, part.anchor.chapter) for part in parts if part.outcome.state == "ocr"] == [
        ("chapter Ebb, picture 1", "Heron nest", "Ebb"),
        ("chapter Flood, picture 1", "Stork nest", "Flood"),
        ("chapter Flood, picture 2", "Crane nest", "Flood"),
    ]


def test_without_ocr_the_ledger_says_so(extract: Extract) -> None:
    parts = extract(illustrated([paragraph("Birds"), HERON, STORK]))
    assert entries(parts) == [("pictures", "failed", "2 pictures: OCR off")]


def png(width: int, height: int) -> bytes:
    """A picture that promises so many pixels and has none."""
    chunks = [b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0), b"IDAT" + zlib.compress(bytes(9))]
    packed = (struct.pack(">I", len(chunk) - 4) + chunk + struct.pack(">I", zlib.crc32(chunk)) for chunk in chunks)
    return b"\x89PNG\r\n\x1a\n" + b"".join(packed)


@pytest.mark.parametrize(
    ("hostile", "reason"),
    [
        (png(65_535, 65_535), "not read: The picture "),
        (png(8000, 8000), "not read: The picture has 8000 × 8000 pixels"),
        (png(400, 400), "cut off or damaged"),
        (encoded(picture("x"))[:300], "cut off or damaged"),
        (b"\x01\x00\x00\x00" + bytes(96), "cut off or damaged"),
        (encoded(picture("x", (400, 100)), "GIF") + b"\x2c" * 50_000, "OCR off"),
    ],
)
def test_a_hostile_picture_does_not_fail_its_document(extract: Extract, hostile: bytes, reason: str) -> None:
    parts = extract(illustrated([paragraph("Birds"), hostile]))
    assert (parts[0].text, parts[1].outcome.state) == ("Birds", "failed")
    assert reason in (parts[1].outcome.reason or "")


def test_other_formats_are_named(extract: Extract) -> None:
    listed = relations(("image", "media/a.emf"))
    data = illustrated([paragraph("Birds"), ICON]).replace(b"document.xml.rels", b"document.xml.away")
    data = holding(data, {"word/_rels/document.xml.rels": listed, "word/media/a.emf": bytes(100)})
    assert entries(extract(data))[0] == ("pictures", "failed", "1 picture: of the format EMF, which is not read")


def test_of_a_thousand_pictures_only_some_are_read(extract: Extract) -> None:
    many: dict[str, str | bytes] = {
        f"book/{number}.png": encoded(picture(size=(100 + number, 50))) for number in range(1000)
    }
    page = "<p>Art.</p>" + "".join(f'<img src="{number}.png"/>' for number in range(1000))
    parts = extract(holding(epub({"a.xhtml": page}), many))
    assert [part.outcome.reason for part in parts[1:]] == [
        "300 pictures: OCR off; 700 pictures: beyond the 300 that OCR reads of one document"
    ]
