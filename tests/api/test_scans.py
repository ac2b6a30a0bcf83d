"""Pages that were read by OCR keep where their lines stand; pages can be read again."""

import io
from typing import Any

from PIL import Image, ImageDraw, ImageFont

from made import encoded, pdf
from support import Http

FIRST, SECOND = "Thornwick ferries leave at seven", "and return before the evening tide"


def test_the_lines_of_a_scan_are_boxed_where_they_stand(http: Http) -> None:
    document = add(
        http, pdf(["A page of typed Thornwick words, long enough to need no reading", scan()]), "ferries.pdf"
    )
    check(http, document, page=2, width=612, height=792)


def test_the_lines_of_a_picture_are_boxed_where_they_stand(http: Http) -> None:
    document = add(http, encoded(scan(), "JPEG", quality=90), "ferries.jpg")
    check(http, document, page=1, width=1224, height=1584)


def check(http: Http, document: int, *, page: int, width: int, height: int) -> None:
    text = http("GET", f"/api/v1/documents/{document}/text").body.decode()
    for words, top in ((FIRST, 300), (SECOND, 900)):
        found = boxes(http, document, page, text, words)
        assert (found["page"], found["width"], found["height"], found["exact"]) == (page, width, height, True)
        (box,) = found["boxes"]
        body = http("GET", f"/api/v1/documents/{document}/pages/{page}/image?width=1224").body
        dark = Image.open(io.BytesIO(body)).convert("L").point(lambda value: 255 * (value < 128))
        ink = dark.crop((0, top - 20, 1224, top + 120)).getbbox()
        assert ink
        scale = 1224 / width
        inked = (ink[0], ink[1] + top - 20, ink[2], ink[3] + top - 20)
        assert all(abs(edge * scale - wanted) < 16 for edge, wanted in zip(box, inked, strict=True)), (box, inked)
    both = boxes(http, document, page, text, text[text.index(FIRST) : text.index(SECOND) + len(SECOND)])
    assert (len(both["boxes"]), both["exact"]) == (2, True)


def scan() -> Image.Image:
    page = Image.new("L", (1224, 1584), "white")
    for line, top in ((FIRST, 300), (SECOND, 900)):
        ImageDraw.Draw(page).text((120, top), line, "black", ImageFont.load_default(48))
    return page


def boxes(http: Http, document: int, page: int, text: str, passage: str) -> dict[str, Any]:
    start = text.index(passage)
    reply = http("GET", f"/api/v1/documents/{document}/pages/{page}/boxes?start={start}&end={start + len(passage)}")
    assert reply.status == 200, reply.body
    return dict(reply.json)


def add(http: Http, data: bytes, name: str) -> int:
    reply = http.add_file(name, data, wait=120)
    assert reply.json.get("status") == "completed", reply.body
    return int(reply.json["document_id"])
