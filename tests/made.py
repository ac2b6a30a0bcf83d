"""Small files of every format, made by the tests themselves."""

import io
import json
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from email.message import EmailMessage
from email.policy import SMTP
from typing import Any, Literal, NamedTuple

from PIL import Image, ImageDraw, ImageFont

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
R = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
A = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
P = 'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"'
S = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
NOTHING = 0xFFFFFFFF  # where an OLE container has no entry
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


def holding(archived: bytes, members: dict[str, str | bytes]) -> bytes:
    """An archive with further members."""
    buffer = io.BytesIO(archived)
    with zipfile.ZipFile(buffer, "a", zipfile.ZIP_DEFLATED) as made:
        for name, content in members.items():
            made.writestr(name, content)
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


def illustrated(blocks: Sequence[str | bytes]) -> bytes:
    """A DOCX of paragraphs, as their XML, and pictures."""
    pictures = [block for block in blocks if isinstance(block, bytes)]
    names = [f"media/image{number}.png" for number in range(1, len(pictures) + 1)]
    numbers = iter(range(1, len(pictures) + 1))
    drawing = '<w:p><w:r><w:drawing><a:blip r:embed="r{}"/></w:drawing></w:r></w:p>'
    body = "".join(block if isinstance(block, str) else drawing.format(next(numbers)) for block in blocks)
    return office(
        "word/document.xml",
        {
            "word/document.xml": f"<w:document {W} {A} {R}><w:body>{body}</w:body></w:document>",
            "word/_rels/document.xml.rels": relations(*(("image", name) for name in names)),
            **{f"word/{name}": data for name, data in zip(names, pictures, strict=True)},
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


def xls(
    name: str, rows: Sequence[Sequence[str | int]], *, box: str = "", note: str = "", is_encrypted: bool = False
) -> bytes:
    """An old workbook of one sheet: the records of Excel 97 in a container with one stream.

    `box` stands in a text box, `note` is a comment on B2.
    """

    def record(kind: int, data: bytes) -> bytes:
        return struct.pack("<HH", kind, len(data)) + data

    def cell(row: int, column: int, value: str | int) -> bytes:
        where = struct.pack("<HHH", row, column, 0)
        if isinstance(value, int):
            return record(0x203, where + struct.pack("<d", value))
        return record(0x204, where + struct.pack("<HB", len(value), 0) + value.encode("latin-1"))

    def opening(kind: int) -> bytes:
        return record(0x809, struct.pack("<HHHHII", 0x600, kind, 0, 1997, 0, 0))

    def shape(number: int, text: str) -> bytes:
        """A shape with a text, which stands in two pieces: the second has wide characters."""
        head = record(0x5D, struct.pack("<4H", 0x15, 0x12, 25, number))
        said = struct.pack("<HH6xHH", 0, 0, len(text), 0)
        pieces = b"\0" + text[:3].encode("latin-1"), b"\1" + text[3:].encode("utf-16-le")
        return head + record(0x1B6, said) + b"".join(record(0x3C, piece) for piece in pieces)

    cells = [cell(row, column, value) for row, texts in enumerate(rows) for column, value in enumerate(texts)]
    if box:
        cells.append(shape(1, box))
    if note:
        author = struct.pack("<5H", 1, 1, 0, 2, 3) + b"\0Ana"
        cells += [shape(2, note), record(0x1C, author)]
    end = record(0x0A, b"")
    locked = record(0x2F, bytes(6)) if is_encrypted else b""
    about = struct.pack("<HBB", 0, len(name), 0) + name.encode("latin-1")
    first = len(opening(5) + locked) + 8 + len(about) + len(end)
    book = opening(5) + locked + record(0x85, struct.pack("<I", first) + about) + end
    return container({"Workbook": book + opening(16) + b"".join(cells) + end})


def xlsb(sheet: bytes) -> bytes:
    """A binary workbook of one sheet, given as its records."""
    texts = b"".join(struct.pack("<I", len(text)) + text.encode("utf-16-le") for text in ("r1", "Herds"))
    bundle = struct.pack("<II", 0, 1) + texts
    book = record(143) + record(156, bundle) + record(144) + record(132)
    return office(
        "xl/workbook.bin",
        {
            "xl/workbook.bin": book,
            "xl/_rels/workbook.bin.rels": relations(("worksheet", "worksheets/sheet1.bin")),
            "xl/worksheets/sheet1.bin": sheet,
        },
    )


def record(kind: int, data: bytes = b"") -> bytes:
    """A record of a binary workbook whose kind takes two bytes."""
    return bytes([kind & 0x7F | 0x80, kind >> 7, len(data)]) + data


def container(tree: Mapping[str, Any]) -> bytes:
    """An OLE container: streams as bytes, folders as dicts. Streams are filled up to 4 KB: smaller ones are special."""
    entries: list[list[Any]] = [["Root Entry", 5, NOTHING, NOTHING, NOTHING, 0]]  # name, kind, left, right, child, size
    streams = b""

    def put(folder: Mapping[str, Any], owner: int) -> None:
        nonlocal streams
        before = None
        for name, content in folder.items():
            at = len(entries)
            if before is None:
                entries[owner][4] = at
            else:
                entries[before][3] = at
            before = at
            if isinstance(content, dict):
                entries.append([name, 1, NOTHING, NOTHING, NOTHING, 0, 0])
                put(content, at)
            else:
                data = content.ljust(max(4096, -len(content) % 512 + len(content)), b"\0")
                entries.append([name, 2, NOTHING, NOTHING, NOTHING, len(data), len(streams) // 512])
                streams += data

    put(tree, 0)
    entries[0].append(0xFFFFFFFE)
    directory = b"".join(
        name.encode("utf-16-le").ljust(64, b"\0")
        + struct.pack("<HBB3I", 2 * len(name) + 2, kind, 1, left, right, child)
        + bytes(36)
        + struct.pack("<IQ", first, size)
        for name, kind, left, right, child, size, first in entries
    )
    directory = directory.ljust(-len(directory) % 512 + len(directory), b"\0")
    chains = [[size // 512, first] for _, kind, _, _, _, size, first in entries if kind == 2]
    used, listed = len(streams) // 512, len(directory) // 512
    tables = -(-(used + listed + 2) // 127)
    fat = [0] * used
    for count, first in chains:
        fat[first : first + count] = [*range(first + 1, first + count), 0xFFFFFFFE]
    fat += [*range(used + 1, used + listed), 0xFFFFFFFE] + [0xFFFFFFFD] * tables
    fat += [NOTHING] * (tables * 128 - len(fat))
    head = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16) + struct.pack("<5H", 0x3E, 3, 0xFFFE, 9, 6) + bytes(6)
    head += struct.pack("<9I", 0, tables, used, 0, 4096, 0xFFFFFFFE, 0, 0xFFFFFFFE, 0)
    head += struct.pack("<109I", *(used + listed + at if at < tables else NOTHING for at in range(109)))
    return head + streams + directory + struct.pack(f"<{len(fat)}I", *fat)


class WordRun(NamedTuple):
    """A stretch of an old Word document that ends with a paragraph or a cell."""

    text: str  # with its mark
    style: int = 0
    of_paragraph: bytes = b""  # properties
    of_characters: bytes = b""


def doc(runs: Sequence[WordRun], *, footnotes: str = "", flags: int = 0, version: int = 0xC1) -> bytes:
    """A document of Word 97: the first run in bytes, the others in UTF-16, which are two pieces."""
    start = 1024
    texts = [run.text for run in runs] + ([footnotes] if footnotes else [])
    data = texts[0].encode("cp1252") + "".join(texts[1:]).encode("utf-16-le")
    widths = [1, *[2] * (len(texts) - 1)]
    places = [start]
    for text, width in zip(texts, widths, strict=True):
        places.append(places[-1] + len(text) * width)
    main = bytearray(start) + data
    main += bytes(-len(main) % 512)
    first_page = len(main) // 512
    styled = [*runs, WordRun(footnotes)] if footnotes else runs
    said = [struct.pack("<H", run.style) + run.of_paragraph + bytes(len(run.of_paragraph) % 2) for run in styled]
    main += property_page(places, [bytes([0, len(one) // 2]) + one for one in said], 13)
    main += property_page(places, [bytes([len(run.of_characters)]) + run.of_characters for run in styled], 1)
    pages = [struct.pack("<III", start, places[-1], page) for page in (first_page, first_page + 1)]
    count = sum(map(len, texts))
    ends = (0, len(texts[0]), count)
    pieces = struct.pack("<III", *ends) + b"".join(
        struct.pack("<HIH", 0, place, 0) for place in (2 * start | 0x40000000, places[1])
    )
    clx = b"\x01\x02\x00ab" + b"\x02" + struct.pack("<I", len(pieces)) + pieces
    struct.pack_into("<HH", main, 0, 0xA5EC, version)
    struct.pack_into("<H", main, 0x0A, 0x0200 | flags)
    struct.pack_into("<ii", main, 0x4C, count - len(footnotes), len(footnotes))
    for at, offset, size in ((0xFA, 12, 12), (0x102, 0, 12), (0x1A2, 24, len(clx))):
        struct.pack_into("<II", main, at, offset, size)
    return container({"WordDocument": bytes(main), "1Table": b"".join(pages) + clx})


def property_page(places: Sequence[int], said: Sequence[bytes], step: int) -> bytes:
    """A page of Word that says which properties hold between places."""
    page = bytearray(512)
    struct.pack_into(f"<{len(places)}I", page, 0, *places)
    free = 510
    for number, one in enumerate(said):
        free = (free - len(one)) & ~1
        page[free : free + len(one)] = one
        page[4 * len(places) + step * number] = free // 2
    page[511] = len(said)
    return bytes(page)


def ppt(
    slides: Sequence[Sequence[tuple[int, str]]], *, notes: str = "", is_hidden: bool = False, key: int = 0
) -> bytes:
    """An old presentation: of each slide kinds and texts, the first of them in its outline. The first has the notes."""

    def record(kind: int, data: bytes, version: int = 0, instance: int = 0) -> bytes:
        return struct.pack("<HHI", version | instance << 4, kind, len(data)) + data

    def told(kind: int, text: str) -> bytes:
        wide = record(0x0FA0, text.encode("utf-16-le")) if not text.isascii() else record(0x0FA8, text.encode())
        return record(0x0F9F, struct.pack("<I", kind)) + wide

    kept: list[bytes] = []
    outline = b""
    for number, texts in enumerate(slides):
        outline += record(0x03F3, struct.pack("<IIiII", 2 + number, 0, 1, 256 + number, 0)) + told(*texts[0])
        boxes = record(0xF00D, record(0x0F9E, struct.pack("<I", 0)), 15)
        boxes += b"".join(record(0xF00D, told(*text), 15) for text in texts[1:])
        show = record(0x03F9, bytes(10) + struct.pack("<HI", 4 if is_hidden else 0, 0))
        kept.append(record(0x03EE, show + record(0x040C, boxes, 15), 15))
    listed = record(0x0FF0, outline, 15, 0)
    if notes:
        listed += record(0x0FF0, record(0x03F3, struct.pack("<IIiII", 2 + len(slides), 0, 0, 900, 0)), 15, 2)
        kept.append(record(0x03F0, record(0x03F1, struct.pack("<II", 256, 0)) + record(0xF00D, told(2, notes), 15), 15))
    data, places = b"", []
    for one in (record(0x03E8, listed, 15), *kept):
        places.append(len(data))
        data += one
    directory = len(data)
    data += record(0x1772, struct.pack(f"<{1 + len(places)}I", len(places) << 20 | 1, *places))
    edit = len(data)
    data += record(0x0FF5, struct.pack("<IIIIIII", 256, 0, 0, directory, 1, 2, 0))
    user = bytes(8) + struct.pack("<III", 20, key or 0xE391C05F, edit)
    return container({"PowerPoint Document": data, "Current User": user})


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


def rtf(body: str | bytes, head: str = r"\ansi\ansicpg1252") -> bytes:
    """An RTF document; `head` says in which code page, and what its fonts are."""
    return rb"{\rtf1" + head.encode() + b" " + (body if isinstance(body, bytes) else body.encode("ascii")) + b"}"


def tar(members: dict[str, bytes], mode: Literal["w", "w:gz", "w:bz2", "w:xz"] = "w") -> bytes:
    """A TAR; `mode` as of `tarfile`: `w:gz`, `w:xz`."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as made:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            made.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def mail(text: str, attachments: dict[str, bytes] | None = None, *, html: str = "", **headers: str) -> bytes:
    """A mail with headers like `subject`; its attachments by name."""
    made = EmailMessage(policy=SMTP)
    given = {"subject": "Tea", "from": "Anna Smith <anna@example.org>", "to": "bob@example.org"}
    for name, value in (given | {"date": "Wed, 18 Nov 2026 10:30:00 +0000", "message-id": "<1@x>"} | headers).items():
        made[name] = value
    made.set_content(text)
    if html:
        made.add_alternative(html, subtype="html")
    for name, content in (attachments or {}).items():
        made.add_attachment(content, maintype="application", subtype="octet-stream", filename=name)
    return made.as_bytes()


def mailbox(*mails: bytes) -> bytes:
    first = b"From anna@example.org Wed Nov 18 10:30:00 2026\n"
    return b"".join(first + one.replace(b"\r\n", b"\n") + b"\n\n" for one in mails)


def msg(subject: str, text: str, attachments: dict[str, bytes | dict[str, Any]] | None = None) -> bytes:
    """A mail of Outlook; an attachment may be the tree of another one (`msg_tree`)."""
    return container(msg_tree(subject, text, attachments, head=32))


def msg_tree(
    subject: str, text: str, attachments: dict[str, bytes | dict[str, Any]] | None = None, *, head: int = 24
) -> dict[str, Any]:
    ticks = (1_795_000_000 + 11_644_473_600) * 10**7  # 18 November 2026
    tree: dict[str, Any] = {
        "__properties_version1.0": bytes(head) + struct.pack("<HHIQ", 0x40, 0x39, 0, ticks),
        "__substg1.0_0037001F": subject.encode("utf-16-le"),
        "__substg1.0_0C1A001F": "Anna Smith".encode("utf-16-le"),
        "__substg1.0_5D01001F": "anna@example.org".encode("utf-16-le"),
        "__substg1.0_0E04001F": "Bob".encode("utf-16-le"),
        "__substg1.0_1000001F": text.encode("utf-16-le"),
    }
    for number, (name, content) in enumerate((attachments or {}).items()):
        kind = "000D" if isinstance(content, dict) else "0102"
        tree[f"__attach_version1.0_#{number:08X}"] = {
            "__properties_version1.0": bytes(8),
            "__substg1.0_3707001F": name.encode("utf-16-le"),
            f"__substg1.0_3701{kind}": content,
        }
    return tree
