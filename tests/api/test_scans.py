"""Pages that were read by OCR keep where their lines stand; pages can be read again."""

import io
import tarfile
import time
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw, ImageFont

from made import encoded, pdf
from support import Http, StartEngine, stored

FIRST, SECOND = "Thornwick ferries leave at seven", "and return before the evening tide"


def test_the_lines_of_a_scan_are_boxed_where_they_stand(http: Http) -> None:
    document = add(
        http, pdf(["A page of typed Thornwick words, long enough to need no reading", scan()]), "ferries.pdf"
    )
    check(http, document, page=2, width=612, height=792)


def test_the_lines_of_a_picture_are_boxed_where_they_stand(http: Http) -> None:
    document = add(http, encoded(scan(), "JPEG", quality=90), "ferries.jpg")
    check(http, document, page=1, width=1224, height=1584)


def test_a_page_can_be_read_by_ocr_and_the_others_stay_as_they_were(http: Http) -> None:
    typed = "A typed Skarnhaven page with words enough that nothing asks for pictures of it"
    document = add(http, pdf([typed, typed.replace("typed", "second"), scan()]), "skarnhaven.pdf")
    before = http("GET", f"/api/v1/documents/{document}").json
    assert states(before) == ["ok", "ok", "ocr"]
    accepted = reread(http, document, {"force_ocr": True, "pages": [2]})
    assert accepted == {
        "job_id": accepted["job_id"], "status": "completed", "document_id": document, "outcome": "updated",
    }  # fmt: skip
    after = http("GET", f"/api/v1/documents/{document}").json
    assert states(after) == ["ok", "ocr", "ocr"]
    assert [after[name] for name in ("id", "uid", "version", "title", "tags", "created_at")] == [
        before[name] for name in ("id", "uid", "version", "title", "tags", "created_at")
    ]
    text = http("GET", f"/api/v1/documents/{document}/text").body.decode()
    assert "second" in text
    assert boxes(http, document, 2, text, "second")["exact"]
    assert boxes(http, document, 1, text, typed)["exact"]
    reread(http, document, {"pages": [1]})  # it was read by OCR before, and is again
    assert states(http("GET", f"/api/v1/documents/{document}").json) == ["ok", "ocr", "ocr"]
    reread(http, document, {})
    assert states(http("GET", f"/api/v1/documents/{document}").json) == ["ok", "ok", "ocr"]


def test_what_an_older_version_read_says_page_only_until_it_is_read_again(
    start_engine: StartEngine, tmp_path: Path
) -> None:
    engine = start_engine()
    document = add(Http(engine.url), encoded(scan()), "older.png")
    engine.stop()
    with stored(tmp_path / "data") as store, store.database.write() as tx:
        tx.run("DELETE FROM line_boxes")
    http = Http(start_engine().url)
    text = http("GET", f"/api/v1/documents/{document}/text").body.decode()
    assert boxes(http, document, 1, text, FIRST) == {
        "page": 1, "width": 1224.0, "height": 1584.0, "boxes": [], "exact": False,
    }  # fmt: skip
    reread(http, document, {"pages": [1]})
    assert boxes(http, document, 1, text, FIRST)["exact"]


def test_what_cannot_be_read_again_is_refused(http: Http) -> None:
    note = http.add_note("A Skarnhaven note has no original")
    document = add(http, pdf(["One typed Skarnhaven page"]), "one.pdf")
    markdown = add(http, b"# Skarnhaven\n\nA text has no pages", "skarnhaven.md")
    for id_, body, status in (
        (note, {}, 422),
        (document, {"pages": [2]}, 422),
        (document, {"pages": [0]}, 422),
        (document, {"pages": []}, 422),
        (document, {"force_ocr": "yes"}, 422),
        (document, {"ocr": True}, 422),
        (markdown, {"pages": [1]}, 422),
        (99999999, {}, 404),
    ):
        assert http("POST", f"/api/v1/documents/{id_}/reread", body).status == status, (id_, body)


def test_reading_again_does_not_keep_what_is_deleted_nor_undo_what_was_added(
    start_engine: StartEngine, tmp_path: Path
) -> None:
    """While a scan keeps the lane of slow jobs busy, others wait in it."""
    http = Http(start_engine().url)
    gone = add(http, pdf(["Velmoor words that are going to be deleted"]), "gone.pdf")
    replaced = add(
        http, pdf(["Velmoor words that are going to be replaced"]), "replaced.pdf", path="/velmoor/replaced.pdf"
    )
    busy = http.add_file("busy.pdf", pdf([scan()] * 3), [("force_ocr", "true")], wait=0).json["job_id"]
    jobs = [
        http("POST", f"/api/v1/documents/{id_}/reread", {"force_ocr": True}).json["job_id"] for id_ in (gone, replaced)
    ]
    assert http("DELETE", f"/api/v1/documents/{gone}?purge=true").status == 200
    add(http, pdf(["Newer Velmoor words"]), "replaced.pdf", path="/velmoor/replaced.pdf")
    assert http("GET", f"/api/v1/jobs/{busy}").json["status"] == "running"  # so that both did wait
    for job in jobs:
        ended = wait_for(http, job)
        assert (ended["status"], ended["error"]["code"]) == ("failed", "conflict")
    assert http("GET", f"/api/v1/documents/{replaced}/text").body == b"Newer Velmoor words"
    with tarfile.open(fileobj=io.BytesIO(http("GET", "/api/v1/export").body)) as tar:
        assert len([name for name in tar.getnames() if name.startswith("originals/")]) == 2  # the scan, the newer words


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


def states(document: dict[str, Any]) -> list[str]:
    return [entry["state"] for entry in document["ledger"]]


def reread(http: Http, document: int, body: dict[str, Any]) -> dict[str, Any]:
    reply = http("POST", f"/api/v1/documents/{document}/reread?wait=50", body)
    assert (reply.status, reply.json.get("status")) == (202, "completed"), reply.body
    return dict(reply.json)


def wait_for(http: Http, job_id: str) -> dict[str, Any]:
    for _ in range(600):
        job = http("GET", f"/api/v1/jobs/{job_id}").json
        if job["status"] in ("completed", "failed", "cancelled"):
            break
        time.sleep(0.1)
    return dict(job)


def add(http: Http, data: bytes, name: str, path: str | None = None) -> int:
    reply = http.add_file(name, data, [("source_path", path)] if path else [], wait=55)
    assert reply.json.get("status") == "completed", reply.body
    return int(reply.json["document_id"])
