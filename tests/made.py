"""Small files of every format, made by the tests themselves."""

import io
import json
import struct
import zipfile
import zlib
from collections.abc import Sequence

from PIL import Image, ImageDraw, ImageFont

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
R = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
A = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
P = 'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"'
S = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
RELATION = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/"


def pdf(pages: Sequence[str | Image.Image], *, title: str = "", bookmarks: Sequence[tuple[str, int]] = ()) -> bytes:
    """Pages of text, line by line, or of one picture that covers the page."""
    objects: list[bytes] = [b"", b"", b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    kids = []
    for page in pages:
        if isinstance(page, str):
            lines = "".join(f"({line}) Tj T* " for line in page.split("\n"))
            content, resources = f"BT /F1 12 Tf 14 TL 50 740 Td {lines}ET".encode("latin-1"), b"/Font << /F1 3 0 R >>"
        else:
            gray = page.convert("L")
            objects.append(
                stream(
                    gray.tobytes(),
                    f"/Type /XObject /Subtype /Image /Width {gray.width} /Height {gray.height} "
                    "/ColorSpace /DeviceGray /BitsPerComponent 8",
                )
            )
            content, resources = b"612 0 0 792 0 0 cm /I Do", b"/XObject << /I %d 0 R >>" % len(objects)
        objects.append(stream(content))
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R /Resources << %s >> >>"
            % (len(objects), resources)
        )
        kids.append(len(objects))
    outline = b""
    if bookmarks:
        root = len(objects) + 1
        objects.append(b"<< /Type /Outlines /First %d 0 R /Last %d 0 R >>" % (root + 1, root + len(bookmarks)))
        for at, (name, page_number) in enumerate(bookmarks, 1):
            following = b"/Next %d 0 R" % (root + at + 1) if at < len(bookmarks) else b""
            entry = b"<< /Title (%s) /Parent %d 0 R /Dest [%d 0 R /Fit] %s >>"
            objects.append(entry % (name.encode(), root, kids[page_number - 1], following))
        outline = b"/Outlines %d 0 R" % root
    objects[0] = b"<< /Type /Catalog /Pages 2 0 R %s >>" % outline
    objects[1] = b"<< /Type /Pages /Count %d /Kids [%s] >>" % (len(kids), b" ".join(b"%d 0 R" % kid for kid in kids))
    objects.append(b"<< /Title (%s) /Author (Anna Smith) >>" % title.encode())
    return assembled(objects)


def stream(data: bytes, entries: str = "") -> bytes:
    packed = zlib.compress(data)
    head = f"<< {entries} /Filter /FlateDecode /Length {len(packed)} >>\nstream\n".encode()
    return head + packed + b"\nendstream"


def assembled(objects: list[bytes]) -> bytes:
    out = bytearray(b"%PDF-1.7\n")
    places = []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    out += b"trailer << /Size %d /Root 1 0 R /Info %d 0 R >>\nstartxref\n%d\n%%%%EOF" % (
        len(objects) + 1,
        len(objects),
        table,
    )
    return bytes(out)


def archive(members: dict[str, str | bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in members.items():
            made.writestr(name, content, zipfile.ZIP_STORED if name == "mimetype" else None)
    return buffer.getvalue()


def relations(*targets: tuple[str, str]) -> str:
    """Kind and target of each; their ids are r1, r2, ..."""
    listed = "".join(
        f'<Relationship Id="r{number}" Type="{RELATION}{kind}" Target="{target}"/>'
        for number, (kind, target) in enumerate(targets, 1)
    )
    return (
        f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{listed}</Relationships>'
    )


def office(main: str, members: dict[str, str | bytes]) -> bytes:
    return archive({"[Content_Types].xml": "<Types/>", "_rels/.rels": relations(("officeDocument", main)), **members})


def docx(body: str, **parts: str) -> bytes:
    """`parts` by kind: styles, numbering, footnotes, comments, header."""
    listed = [(kind, f"{kind}.xml") for kind in parts]
    return office(
        "word/document.xml",
        {
            "word/document.xml": f"<w:document {W}><w:body>{body}</w:body></w:document>",
            "word/_rels/document.xml.rels": relations(*listed),
            **{f"word/{kind}.xml": f"<w:{kind} {W}>{content}</w:{kind}>" for kind, content in parts.items()},
        },
    )


def paragraph(text: str, properties: str = "") -> str:
    return f"<w:p><w:pPr>{properties}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"


def pptx(slides: Sequence[str], notes: str = "") -> bytes:
    """Slides by the XML of their shapes; the notes belong to the first."""
    order = "".join(f'<p:sldId id="{255 + at}" r:id="r{at}"/>' for at in range(1, len(slides) + 1))
    members: dict[str, str | bytes] = {
        "ppt/presentation.xml": f"<p:presentation {P} {R}><p:sldIdLst>{order}</p:sldIdLst></p:presentation>",
        "ppt/_rels/presentation.xml.rels": relations(
            *(("slide", f"slides/slide{at}.xml") for at in range(1, len(slides) + 1))
        ),
    }
    for at, shapes in enumerate(slides, 1):
        members[f"ppt/slides/slide{at}.xml"] = (
            f"<p:sld {P} {A} {R}><p:cSld><p:spTree>{shapes}</p:spTree></p:cSld></p:sld>"
        )
    if notes:
        members["ppt/slides/_rels/slide1.xml.rels"] = relations(("notesSlide", "../notesSlides/notes1.xml"))
        members["ppt/notesSlides/notes1.xml"] = (
            f"<p:notes {P} {A}><p:cSld><p:spTree>{shape(notes, 'body')}</p:spTree></p:cSld></p:notes>"
        )
    return office("ppt/presentation.xml", members)


def shape(text: str, kind: str = "") -> str:
    placeholder = f'<p:nvPr><p:ph type="{kind}"/></p:nvPr>' if kind else "<p:nvPr/>"
    body = f"<p:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:txBody>"
    return f'<p:sp><p:nvSpPr><p:cNvPr id="1" name="Shape"/>{placeholder}</p:nvSpPr>{body}</p:sp>'


def xlsx(sheets: dict[str, Sequence[Sequence[str | int | None]]], *, first_row: int = 1) -> bytes:
    listed = "".join(
        f'<sheet name="{name}" sheetId="{number}" r:id="r{number}"/>' for number, name in enumerate(sheets, 1)
    )
    members: dict[str, str | bytes] = {
        "xl/workbook.xml": f"<workbook {S} {R}><sheets>{listed}</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": relations(
            *(("worksheet", f"worksheets/sheet{number}.xml") for number in range(1, len(sheets) + 1))
        ),
    }
    for number, rows in enumerate(sheets.values(), 1):
        written = "".join(
            f'<row r="{at}">{"".join(spreadsheet_cell(value, column, at) for column, value in enumerate(row))}</row>'
            for at, row in enumerate(rows, first_row)
        )
        members[f"xl/worksheets/sheet{number}.xml"] = f"<worksheet {S}><sheetData>{written}</sheetData></worksheet>"
    return office("xl/workbook.xml", members)


def spreadsheet_cell(value: str | int | None, column: int, row: int) -> str:
    place = f"{chr(ord('A') + column)}{row}"
    if value is None:
        return ""
    if isinstance(value, int):
        return f'<c r="{place}"><v>{value}</v></c>'
    return f'<c r="{place}" t="inlineStr"><is><t>{value}</t></is></c>'


OPEN_NAMES = "office text table presentation manifest".split()
OPEN = " ".join(
    f'xmlns:{short}="urn:oasis:names:tc:opendocument:xmlns:{long}:1.0"'
    for short, long in (*((name, name) for name in OPEN_NAMES), ("draw", "drawing"))
)


def opendocument(kind: str, body: str, members: dict[str, str] = {}) -> bytes:  # noqa: B006
    """An OpenDocument of the kind `text`, `spreadsheet` or `presentation`."""
    inside = f"<office:body><office:{kind}>{body}</office:{kind}></office:body>"
    return archive(
        {
            "mimetype": f"application/vnd.oasis.opendocument.{kind}",
            "content.xml": f"<office:document-content {OPEN}>{inside}</office:document-content>",
            "meta.xml": '<meta xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>On dunes</dc:title>'
            "<dc:creator>Bo Sand</dc:creator></meta>",
            "META-INF/manifest.xml": f"<manifest:manifest {OPEN}/>",
            **members,
        }
    )


def xls(name: str, rows: Sequence[Sequence[str | int]]) -> bytes:
    """An old workbook of one sheet: the records of Excel 97 in a container with one stream."""

    def record(kind: int, data: bytes) -> bytes:
        return struct.pack("<HH", kind, len(data)) + data

    def cell(row: int, column: int, value: str | int) -> bytes:
        where = struct.pack("<HHH", row, column, 0)
        if isinstance(value, int):
            return record(0x203, where + struct.pack("<d", value))
        return record(0x204, where + struct.pack("<HB", len(value), 0) + value.encode("latin-1"))

    def opening(kind: int) -> bytes:
        return record(0x809, struct.pack("<HHHHII", 0x600, kind, 0, 1997, 0, 0))

    cells = [cell(row, column, value) for row, texts in enumerate(rows) for column, value in enumerate(texts)]
    end = record(0x0A, b"")
    about = struct.pack("<HBB", 0, len(name), 0) + name.encode("latin-1")
    first = len(opening(5)) + 8 + len(about) + len(end)
    book = opening(5) + record(0x85, struct.pack("<I", first) + about) + end
    return container("Workbook", book + opening(16) + b"".join(cells) + end)


def container(name: str, data: bytes) -> bytes:
    """An OLE container with one stream, of the size from which it is kept in sectors of 512 bytes."""
    free, last, table = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD
    data = data.ljust(4096, b"\0")
    data += bytes(-len(data) % 512)
    count = len(data) // 512

    def entry(name: str, kind: int, child: int, start: int, size: int) -> bytes:
        title = (name + "\0").encode("utf-16-le")
        tree = struct.pack("<BBIII", kind, 1, free, free, child)
        return (
            title.ljust(64, b"\0") + struct.pack("<H", len(title)) + tree + bytes(36) + struct.pack("<IQ", start, size)
        )

    chain = [table, last, *range(3, count + 2), last]
    head = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16) + struct.pack("<HHHHH", 0x3E, 3, 0xFFFE, 9, 6) + bytes(6)
    head += struct.pack("<IIIIIIIII", 0, 1, 1, 0, 4096, last, 0, last, 0)
    head += struct.pack("<109I", 0, *[free] * 108)
    table_sector = struct.pack("<128I", *chain, *[free] * (128 - len(chain)))
    directory = entry("Root Entry", 5, 1, last, 0) + entry(name, 2, free, 2, len(data))
    return head + table_sector + directory.ljust(512, b"\0") + data


def epub(pages: dict[str, str], contents: Sequence[tuple[str, str]] = (), members: dict[str, str] = {}) -> bytes:  # noqa: B006
    """A book whose pages are read in this order; `contents` are titles and links."""
    items = "".join(f'<item id="{name}" href="{name}" media-type="application/xhtml+xml"/>' for name in pages)
    spine = "".join(f'<itemref idref="{name}"/>' for name in pages)
    points = "".join(
        f'<navPoint><navLabel><text>{title}</text></navLabel><content src="{link}"/></navPoint>'
        for title, link in contents
    )
    return archive(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": '<container><rootfile full-path="book/all.opf"/></container>',
            "book/all.opf": '<package xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata>'
            f"<dc:title>On tides</dc:title><dc:creator>Ada Moon</dc:creator></metadata><manifest>{items}"
            '<item id="ncx" href="toc.ncx" media-type="application/x-dtbncx+xml"/></manifest>'
            f"<spine>{spine}</spine></package>",
            "book/toc.ncx": f"<ncx><navMap>{points}</navMap></ncx>",
            **{
                f"book/{name}": f"<html><head><title/></head><body>{body}</body></html>" for name, body in pages.items()
            },
            **members,
        }
    )


def notebook(*cells: dict[str, object], **fields: object) -> bytes:
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5, **fields}).encode()


def written(*lines: str) -> dict[str, object]:
    """A Markdown cell."""
    return {"cell_type": "markdown", "metadata": {}, "source": [f"{line}\n" for line in lines]}


def run(source: str, *outputs: dict[str, object]) -> dict[str, object]:
    """A code cell with what it put out."""
    return {"cell_type": "code", "execution_count": 1, "metadata": {}, "outputs": outputs, "source": source}


def picture(text: str = "", size: tuple[int, int] = (900, 300)) -> Image.Image:
    """Black letters on white."""
    image = Image.new("RGB", size, "white")
    ImageDraw.Draw(image).text((60, 100), text, "black", ImageFont.load_default(60))
    return image


def encoded(image: Image.Image, form: str = "PNG", **given: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, form, **given)
    return buffer.getvalue()
