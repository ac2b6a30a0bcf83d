"""Pages as pictures, where a passage stands on them, and what keeps both in bounds."""

import io
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageDraw

from made import assembled, encoded, pdf, picture, stream
from support import Http, Reply, StartEngine

LINES = "Quillfeather geese crossed the estuary\nat dawn and settled near Ombrewick"


def test_a_page_is_a_jpeg_of_the_width_that_was_asked_for(http: Http) -> None:
    document = add(http, pdf([LINES, "Second leaf of the Tarnhollow ledger"]), "tarnhollow.pdf")
    for width in (64, 500, 3000):
        reply = http("GET", f"/api/v1/documents/{document}/pages/2/image?width={width}")
        assert (reply.status, reply.headers["content-type"]) == (200, "image/jpeg")
        drawn = Image.open(io.BytesIO(reply.body))
        assert (drawn.format, drawn.width) == ("JPEG", width)
        assert abs(drawn.height / drawn.width - 792 / 612) < 0.02
    assert Image.open(io.BytesIO(http("GET", f"/api/v1/documents/{document}/pages/1/image").body)).width == 1400


def test_what_is_far_higher_than_wide_is_drawn_smaller(http: Http) -> None:
    tape = page_of("BT /F1 4 Tf 1 500 Td (Ribbonstock) Tj ET", "/MediaBox [0 0 10 14400]")
    strip = encoded(Image.new("RGB", (40, 90_000), "teal"))
    for data, name in ((tape, "ribbonstock.pdf"), (strip, "ribbonstock.png")):
        document = add(http, data, name)
        reply = http("GET", f"/api/v1/documents/{document}/pages/1/image?width=1000")
        assert reply.status == 200, reply.body
        drawn = Image.open(io.BytesIO(reply.body))
        assert drawn.height > 60_000  # a JPEG has at most 65,535 lines


@pytest.mark.parametrize("width", ["63", "3001", "wide", "-1", ""])
def test_a_width_out_of_bounds_is_refused(http: Http, width: str) -> None:
    document = add(http, pdf([LINES]), "bounds.pdf")
    reply = http("GET", f"/api/v1/documents/{document}/pages/1/image?width={width}")
    assert (reply.status, reply.json["error"]["code"]) == (422, "invalid_request")


def test_a_picture_that_is_known_is_not_sent_again(http: Http) -> None:
    document = add(http, pdf([LINES]), "known.pdf")
    path = f"/api/v1/documents/{document}/pages/1/image?width=200"
    first = http("GET", path)
    assert first.headers["cache-control"].startswith("private")
    again = http("GET", path, If_None_Match=first.headers["etag"])
    assert (again.status, again.body, again.headers["etag"]) == (304, b"", first.headers["etag"])
    other = http("GET", path.replace("200", "201"), If_None_Match=first.headers["etag"])
    assert other.status == 200
    assert other.headers["etag"] != first.headers["etag"]


def test_what_has_no_such_page_says_how_many_there_are(http: Http) -> None:
    two = add(http, pdf([LINES, "Another Marlequin leaf"]), "two.pdf")
    shot = add(http, encoded(picture("Marlequin", (400, 120))), "shot.png")
    note = http.add_note("Marlequin notes have no pages")
    for document, page, count in ((two, 3, 2), (two, 0, 2), (shot, 2, 1), (note, 1, 0)):
        for what in ("image", "boxes?start=0&end=5"):
            reply = http("GET", f"/api/v1/documents/{document}/pages/{page}/{what}")
            assert (reply.status, reply.json["error"]["details"]["pages"]) == (404, count), (document, page)
            assert f"{count} page" in reply.json["error"]["message"]
    assert http("GET", "/api/v1/documents/99999999/pages/1/image").status == 404


@pytest.mark.parametrize("turned", [0, 90, 180, 270])
@pytest.mark.parametrize("crop", [None, (40, 200, 440, 700)])
def test_boxes_lie_on_the_letters_of_the_picture(http: Http, turned: int, crop: tuple[int, ...] | None) -> None:
    words = f"Vessholm lantern {turned} {bool(crop)}"
    document = add(http, one_line(words, turned=turned, crop=crop), f"lantern-{turned}-{bool(crop)}.pdf")
    found = boxes(http, document, 1, words)
    width, height = (crop[2] - crop[0], crop[3] - crop[1]) if crop else (612, 792)
    assert (found["width"], found["height"]) == ((height, width) if turned % 180 else (width, height))
    assert found["exact"]
    (box,) = found["boxes"]
    ink = inked(http, document, found["width"])
    assert box[0] - 1.5 <= ink[0] <= box[0] + 6
    assert box[1] - 1.5 <= ink[1] <= box[1] + 6
    assert box[2] - 6 <= ink[2] <= box[2] + 1.5
    assert box[3] - 6 <= ink[3] <= box[3] + 1.5


def test_a_passage_has_a_box_for_each_of_its_lines(http: Http) -> None:
    document = add(http, pdf(["Some other Ockleby words before", LINES]), "lines.pdf")
    found = boxes(http, document, 2, LINES)
    assert found["exact"]
    first, second = found["boxes"]
    assert first[3] <= second[1] + 3
    (part,) = boxes(http, document, 2, "geese crossed")["boxes"]
    assert first[0] < part[0] < part[2] < first[2]
    assert boxes(http, document, 1, LINES) == {
        "page": 1, "width": 612.0, "height": 792.0, "boxes": [], "exact": False,
    }  # fmt: skip


def test_a_word_cut_at_a_line_end_has_two_boxes(http: Http) -> None:
    document = add(http, pdf(["The Harrowmere migra-\ntion of geese"]), "cut.pdf")
    found = boxes(http, document, 1, "migration")
    assert (len(found["boxes"]), found["exact"]) == (2, True)


def test_hidden_text_does_not_shift_what_is_seen(http: Http) -> None:
    content = "BT /F1 12 Tf 50 700 Td (Visible Brackenford opening) Tj 0 -20 Td 1 1 1 rg (white Brackenford words) Tj "
    content += "0 -20 Td 0 0 0 rg (closing Brackenford line) Tj ET"
    document = add(http, page_of(content), "white.pdf")
    (opening,), (closing,) = (boxes(http, document, 1, f"{one}")["boxes"] for one in ("opening", "closing"))
    assert closing[1] > opening[1] + 30


def test_text_that_runs_upwards_is_one_box(http: Http) -> None:
    content = "BT /F1 12 Tf 0 1 -1 0 100 200 Tm (Upward Siltmoor heading) Tj ET"
    document = add(http, page_of(content), "upward.pdf")
    (box,) = boxes(http, document, 1, "Upward Siltmoor heading")["boxes"]
    assert box[3] - box[1] > 5 * (box[2] - box[0])


def test_a_stretch_that_is_none_is_refused(http: Http) -> None:
    document = add(http, pdf([LINES]), "none.pdf")
    for query in ("", "?start=3", "?start=3&end=3", "?start=-1&end=3", "?start=a&end=3"):
        assert http("GET", f"/api/v1/documents/{document}/pages/1/boxes{query}").status == 422, query
    beyond = http("GET", f"/api/v1/documents/{document}/pages/1/boxes?start=90000&end=90010").json
    assert (beyond["boxes"], beyond["exact"]) == ([], False)


def test_a_photo_is_shown_as_the_camera_was_held(http: Http) -> None:
    photo = Image.new("RGB", (400, 200), "white")
    ImageDraw.Draw(photo).rectangle((0, 0, 99, 199), "red")  # the left quarter, which is held up
    exif = Image.Exif()
    exif[0x0112] = 6
    document = add(http, encoded(photo, "JPEG", exif=exif), "heldup.jpg")
    drawn = Image.open(io.BytesIO(http("GET", f"/api/v1/documents/{document}/pages/1/image?width=100").body))
    assert drawn.size == (100, 200)
    top: Any = drawn.getpixel((50, 10))
    assert (top[0] > 200, top[1] < 80) == (True, True)
    large = http("GET", f"/api/v1/documents/{document}/pages/1/image?width=3000").body
    assert Image.open(io.BytesIO(large)).width == 200


@pytest.mark.sqlite
def test_a_damaged_original_is_not_drawn(start_engine: StartEngine, tmp_path: Path) -> None:
    http, data = Http(start_engine().url), tmp_path / "data"
    document = add(http, pdf([LINES]), "damaged.pdf")
    path = f"/api/v1/documents/{document}/pages/1/image?width=300"
    assert http("GET", path).status == 200
    (original,) = (data / "originals").glob("??/*")
    flipped = bytearray(original.read_bytes())
    flipped[len(flipped) // 2] ^= 1
    original.write_bytes(flipped)
    refused = http("GET", f"/api/v1/documents/{document}/original")
    for what in ("image?width=300", "image?width=301", "boxes?start=0&end=9"):
        reply = http("GET", f"/api/v1/documents/{document}/pages/1/{what}")
        assert (reply.status, reply.json) == (refused.status, refused.json)


def test_what_is_purged_leaves_no_page_behind(start_engine: StartEngine, tmp_path: Path) -> None:
    http, data = Http(start_engine().url), tmp_path / "data"
    cache = data / "cache" / "pages"
    document, other = (add(http, pdf([f"Fennimore {n}"]), f"fennimore-{n}.pdf") for n in (1, 2))
    for one in (document, other):
        assert http("GET", f"/api/v1/documents/{one}/pages/1/image?width=100").status == 200
    kept = list(cache.glob("*/*"))
    assert len(kept) == 2
    assert {file.stat().st_mode & 0o777 for file in kept} == {0o600}
    assert http("DELETE", f"/api/v1/documents/{document}?purge=true").status == 200
    assert len(list(cache.glob("*/*"))) == 1
    assert http("DELETE", "/api/v1/documents?confirm=DELETE%20ALL").status == 200
    assert list(cache.glob("*")) == []


def test_a_kept_page_that_is_not_whole_is_drawn_again(start_engine: StartEngine, tmp_path: Path) -> None:
    http, data = Http(start_engine().url), tmp_path / "data"
    document = add(http, pdf([LINES]), "whole.pdf")
    path = f"/api/v1/documents/{document}/pages/1/image?width=100"
    whole = http("GET", path).body
    (kept,) = (data / "cache" / "pages").glob("*/*")
    kept.write_bytes(kept.read_bytes()[:-50])
    assert http("GET", path).body == whole


def test_a_page_that_takes_too_long_is_an_error_and_searches_go_on(start_engine: StartEngine) -> None:
    http = Http(start_engine().url)
    document = add(http, endless_page(), "endless.pdf")
    replies: list[Reply] = []
    drawing = [
        threading.Thread(target=lambda: replies.append(http("GET", f"/api/v1/documents/{document}/pages/1/image")))
        for _ in range(2)
    ]
    for thread in drawing:
        thread.start()
    time.sleep(1)
    started = time.monotonic()
    assert http("POST", "/api/v1/search", {"query": "Wexcombe"}).json["total"] == 1
    assert time.monotonic() - started < 5
    for thread in drawing:
        thread.join()
    assert {(reply.status, reply.json["error"]["details"]["failure"]) for reply in replies} == {(409, "timeout")}


def add(http: Http, data: bytes, name: str) -> int:
    reply = http.add_file(name, data)
    assert reply.json.get("status") == "completed", reply.body
    return int(reply.json["document_id"])


def boxes(http: Http, document: int, page: int, passage: str) -> dict[str, Any]:
    text = http("GET", f"/api/v1/documents/{document}/text").body.decode()
    start = text.index(passage)
    reply = http("GET", f"/api/v1/documents/{document}/pages/{page}/boxes?start={start}&end={start + len(passage)}")
    assert reply.status == 200, reply.body
    return dict(reply.json)


def page_of(content: str, entries: str = "/MediaBox [0 0 612 792]") -> bytes:
    return assembled(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Count 1 /Kids [5 0 R] >>",
            b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
            stream(content.encode()),
            f"<< /Type /Page /Parent 2 0 R {entries} /Contents 4 0 R "
            "/Resources << /Font << /F1 3 0 R >> >> >>".encode(),
            b"<< >>",
        ]
    )


def one_line(words: str, *, turned: int, crop: tuple[int, ...] | None) -> bytes:
    entries = f"/MediaBox [0 0 612 792] /Rotate {turned}"
    if crop:
        entries += f" /CropBox [{' '.join(map(str, crop))}]"
    return page_of(f"BT /F1 16 Tf 90 500 Td ({words}) Tj ET", entries)


def inked(http: Http, document: int, across: float) -> tuple[float, ...]:
    """The box of everything dark in the picture of a page, in points."""
    body = http("GET", f"/api/v1/documents/{document}/pages/1/image?width=1200").body
    dark = Image.open(io.BytesIO(body)).convert("L").point(lambda value: 255 * (value < 128)).getbbox()
    assert dark
    return tuple(edge * across / 1200 for edge in dark)


def endless_page() -> bytes:
    """A line of text over shadings whose colour takes a thousand steps to compute, at every pixel."""
    function = "{ pop " + "dup mul sqrt " * 1000 + "}"
    return assembled(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Count 1 /Kids [5 0 R] >>",
            b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
            stream(b"/S sh " * 100 + b"BT /F1 16 Tf 90 500 Td (Wexcombe under endless skies) Tj ET"),
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R "
            b"/Resources << /Font << /F1 3 0 R >> /Shading << /S 6 0 R >> >> >>",
            b"<< /ShadingType 1 /ColorSpace /DeviceGray /Matrix [612 0 0 792 0 0] /Function 7 0 R >>",
            stream(function.encode(), "/FunctionType 4 /Domain [0 1 0 1] /Range [0 1]"),
            b"<< >>",
        ]
    )
