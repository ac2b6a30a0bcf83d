"""Files of every format, from outside: ledger, anchors, progress, failures, and an engine that goes on."""

import json
import os
import random
import signal
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from made import (
    WordRun,
    doc,
    docx,
    encoded,
    epub,
    illustrated,
    notebook,
    opendocument,
    paragraph,
    pdf,
    picture,
    ppt,
    pptx,
    rtf,
    run,
    shape,
    written,
    xls,
    xlsx,
)
from support import EngineProcess, Http, StartEngine, eventually

HERON = "The grey heron stands in shallow water and waits for fish, hour after hour."


def add(http: Http, filename: str, data: bytes, fields: list[tuple[str, str]] = []) -> Any:  # noqa: B006
    """The document, once it can be found."""
    reply = http.add_file(filename, data, fields).json
    assert reply["status"] == "completed", http("GET", f"/api/v1/jobs/{reply['job_id']}").body
    return http("GET", f"/api/v1/documents/{reply['document_id']}").json


def failed(http: Http, filename: str, data: bytes) -> Any:
    reply = http.add_file(filename, data).json
    assert reply["status"] == "failed", reply
    return http("GET", f"/api/v1/jobs/{reply['job_id']}").json["error"]


def workers(engine: EngineProcess) -> list[int]:
    """The processes that an engine started."""
    children = Path(f"/proc/{engine.process.pid}/task").glob("*/children")
    return [int(pid) for listed in children for pid in listed.read_text().split()]


PULL, TIE = ("".join(f"        self.{verb}({n})\n" for n in range(15)) for verb in ("pull_oar", "tie_rope"))
BOATS = f"class Boat:\n    def row(self):\n{PULL}\n    def moor(self):\n{TIE}"


def test_a_program_is_cut_at_its_functions_and_each_passage_names_them(http: Http) -> None:
    document = add(http, "boats.py", BOATS.encode())
    anchors = [chunk["anchor"] for chunk in document["chunks"]]
    assert [(anchor["symbol"], anchor["heading"]) for anchor in anchors] == [
        ("Boat", "Boat"),
        ("Boat.moor", "Boat > moor"),
    ]
    (hit, *_) = http("POST", "/api/v1/search", {"query": "moor tie_rope"}).json["results"]
    assert (hit["document_id"], hit["anchor"]["symbol"]) == (document["id"], "Boat.moor")
    renamed = add(http, "boats.py", BOATS.encode(), [("title", "Boats")])  # cuts the stored text again
    assert (renamed["id"], renamed["title"]) == (document["id"], "Boats")
    assert [chunk["anchor"] for chunk in renamed["chunks"]] == anchors


def test_a_program_that_exhausts_its_parser_is_cut_by_lines(http: Http) -> None:
    document = add(http, "hostile.java", b"class Heron { }\n" + b"a<" * 32_000)
    entry = document["ledger"][0]
    assert entry["state"] == "ok"
    assert entry["reason"].startswith("cut by lines, not by its functions: ")
    assert not any("symbol" in chunk["anchor"] for chunk in document["chunks"])


@pytest.mark.parametrize(
    ("name", "data", "doc_type", "parts"),
    [
        ("a.pdf", pdf([HERON + " pdf", "Second page."]), "pdf", ["page 1", "page 2"]),
        ("a.docx", docx(paragraph(HERON + " docx")), "docx", ["text"]),
        ("a.pptx", pptx([shape(HERON + " pptx"), shape("Two")]), "pptx", ["slide 1", "slide 2"]),
        ("a.xlsx", xlsx({"Birds": [["Name", "Count"], ["Heron xlsx", 7]]}), "xlsx", ["sheet Birds"]),
        ("a.odt", opendocument("text", f"<text:p>{HERON} odt</text:p>"), "odt", ["text"]),
        ("a.xls", xls("Birds", [["Name", "Count"], ["Heron xls", 7]]), "xls", ["sheet Birds"]),
        ("a.epub", epub({"a.xhtml": HERON + " epub"}, [("Waders", "a.xhtml")]), "epub", ["chapter Waders"]),
        ("a.ipynb", notebook(written(HERON + " ipynb"), run("count(7)")), "notebook", ["cell 1", "cell 2"]),
        ("a.rtf", rtf(HERON + " rtf"), "rtf", ["text"]),
        ("a.doc", doc([WordRun(f"{HERON} doc\r")]), "doc", ["text"]),
        ("a.ppt", ppt([[(0, HERON + " ppt")]]), "ppt", ["slide 1"]),
        ("a.html", f"<html><body><p>{HERON} html</p></body></html>".encode(), "html", ["text"]),
        ("a.svg", f'<svg xmlns="http://www.w3.org/2000/svg"><text>{HERON} svg</text></svg>'.encode(), "svg", ["text"]),
    ],
)
def test_every_format_goes_in_whatever_its_name(
    http: Http, name: str, data: bytes, doc_type: str, parts: list[str]
) -> None:
    document = add(http, f"called-{doc_type}.docx", data)
    assert document["doc_type"] == doc_type
    assert document["processing_method"] == "text_extraction"
    assert [entry["part"] for entry in document["ledger"]] == parts
    assert {entry["state"] for entry in document["ledger"]} == {"ok"}
    assert http.search("heron", doc_type=doc_type)["results"][0]["document_id"] == document["id"]


def test_passages_of_tables_and_json_name_their_rows_and_paths(http: Http) -> None:
    table = add(http, "avocet.csv", b"Bird,Count\nAvocet,7\n")
    assert (table["doc_type"], table["media_type"]) == ("text", "text/csv")
    (hit,) = http.search("avocet count", media_type="text/csv")["results"]
    assert (hit["anchor"]["rows"], hit["anchor"]["heading"]) == ("1-2", "Bird | Count")
    text = http("GET", f"/api/v1/documents/{table['id']}/text").body.decode()
    assert text[hit["anchor"]["start"] : hit["anchor"]["end"]] == hit["text"] == "Bird | Count\nAvocet | 7"
    birds = {"shore": {"birds": [{"name": f"Dunlin {number}"} for number in range(90)]}}
    value = add(http, "dunlin.json", json.dumps(birds).encode())
    assert {chunk["anchor"]["heading"] for chunk in value["chunks"]} == {"shore > birds"}


def test_a_passage_names_its_page_and_bookmark(http: Http) -> None:
    document = add(
        http, "report.pdf", pdf(["Preface of the numbat report", "Numbats at night"], bookmarks=[("Field notes", 2)])
    )
    chunks = [chunk for chunk in document["chunks"] if "metadata" not in chunk["anchor"]]
    anchors = [chunk["anchor"] for chunk in chunks]
    assert [(anchor["page"], anchor.get("heading")) for anchor in anchors] == [(1, None), (2, "Field notes")]
    text = http("GET", f"/api/v1/documents/{document['id']}/text").body.decode()
    assert [text[anchor["start"] : anchor["end"]] for anchor in anchors] == [chunk["text"] for chunk in chunks]
    assert document["metadata"]["author"] == "Anna Smith"


def test_slides_sheets_and_cells_are_anchors_and_survive_a_new_index(start_engine: StartEngine) -> None:
    http = Http(start_engine().url)
    slides = add(http, "deck.pptx", pptx([shape("One"), shape("Two")]))
    sheet = add(http, "book.xlsx", xlsx({"Costs": [["Item", "Price"], ["Reed", 12]]}))
    cells = add(http, "reed.ipynb", notebook(written("# Reed", "It grows."), run("cut(reed)")))
    book = add(http, "reed.epub", epub({"a": "<h1>Roots</h1><p>Wet.</p>", "b": "Dry."}, [("Reed", "a"), ("Hay", "b")]))
    added = (slides, sheet, cells, book)
    before = [http("GET", f"/api/v1/documents/{document['id']}").json["chunks"] for document in added]
    assert [chunk["anchor"]["slide"] for chunk in before[0]] == [1, 2]
    assert before[1][0]["anchor"]["sheet"] == "Costs"
    assert [(chunk["anchor"]["cell"], chunk["anchor"]["heading"]) for chunk in before[2]] == [(1, "Reed"), (2, "Reed")]
    assert [chunk["anchor"]["chapter"] for chunk in before[3][:2]] == ["Reed", "Hay"]
    assert before[1][0]["anchor"]["heading"] == "Costs > A1:B2 > Item | Price"
    job = http("POST", "/api/v1/reindex").json["job_id"]
    assert http.ended(job)["status"] == "completed"
    after = [http("GET", f"/api/v1/documents/{document['id']}").json["chunks"] for document in added]
    assert [[chunk["anchor"] for chunk in chunks] for chunks in after] == [
        [chunk["anchor"] for chunk in chunks] for chunks in before
    ]


def test_what_is_missing_is_said(start_engine: StartEngine) -> None:
    http = Http(start_engine(KB_OCR="off").url)
    document = add(http, "mixed.pdf", pdf([HERON, picture("Scan", (600, 800)), ""]))
    assert document["ledger"] == [
        {"part": "page 1", "state": "ok", "reason": None},
        {"part": "page 2", "state": "failed", "reason": "OCR off"},
        {"part": "page 3", "state": "empty", "reason": "no text"},
    ]
    error = failed(http, "scans.pdf", pdf([picture("Scan", (600, 800))] * 2))
    assert error == {"code": "no_text", "message": "No text found: 2 pages, OCR off."}
    image = add(http, "reed_bed.png", encoded(picture()))
    assert image["processing_method"] == "image_analysis"
    assert http.search("reed bed", doc_type="image")["results"][0]["document_id"] == image["id"]


def test_what_was_missing_for_want_of_ocr_is_read_when_it_comes_again(start_engine: StartEngine) -> None:
    """And in the lane of large jobs, so that no note waits for it."""
    data = pdf([HERON, picture("Stork nest", (900, 1200))])
    without = start_engine(KB_OCR="off")
    before = add(Http(without.url), "mixed.pdf", data)
    without.stop()
    http = Http(start_engine(KB_OCR="rapidocr").url)
    again = add(http, "mixed.pdf", data)
    assert again["id"] == before["id"]
    assert [entry["state"] for entry in again["ledger"]] == ["ok", "ocr"]
    assert again["version"] == before["version"]
    assert http.add_file("mixed.pdf", data, wait=0).json["status"] == "completed"


def test_an_ocr_engine_that_is_not_there_is_a_failure_of_its_own(start_engine: StartEngine, tmp_path: Path) -> None:
    http = Http(start_engine(KB_OCR="tesseract", PATH=str(tmp_path)).url)
    error = failed(http, "scan.pdf", pdf([picture("Scan", (600, 800))]))
    assert error["code"] == "ocr_failed"
    assert "Tesseract not found" in error["message"]


def test_images_and_scans_are_read(start_engine: StartEngine) -> None:
    """Turned as the camera was held; a scan gives way to the text that a page has of its own, unless that is forced."""
    http = Http(start_engine(KB_OCR="rapidocr").url)
    exif = Image.Exif()
    exif[0x0112] = 6  # the picture lies on its side
    data = encoded(picture("Heron lake").rotate(90, expand=True), "JPEG", exif=exif)
    image = add(http, "photo.jpg", data)
    assert "Heron lake" in image["chunks"][0]["text"]
    assert image["ledger"] == [{"part": "image", "state": "ocr", "reason": None}]
    scanned = add(http, "scan.pdf", pdf([HERON, picture("Stork nest", (900, 1200))]))
    assert [entry["state"] for entry in scanned["ledger"]] == ["ok", "ocr"]
    assert scanned["processing_method"] == "mixed"
    assert http.search("stork nest")["results"][0]["anchor"]["page"] == 2
    text_only = add(http, "text.pdf", pdf(["Forty herons were counted in the reeds this spring"]))
    assert text_only["processing_method"] == "text_extraction"
    forced = http.add_file(
        "text.pdf", pdf(["Forty herons were counted in the reeds this spring"]), [("force_ocr", "true")]
    ).json
    again = http("GET", f"/api/v1/documents/{forced['document_id']}").json
    assert (again["id"], again["processing_method"]) == (text_only["id"], "ocr")
    pictures_are_found_where_they_stand(http)


def pictures_are_found_where_they_stand(http: Http) -> None:
    """Under the heading of the picture, not the last one, also after the text is cut again for new metadata."""
    level = '<w:outlineLvl w:val="0"/>'
    blocks: list[str | bytes] = [
        paragraph("Nests", level),
        encoded(picture("Bittern reed")),
        paragraph("Food", level),
        paragraph(HERON),
    ]
    data = illustrated(blocks)
    report = add(http, "report.docx", data)
    assert report["processing_method"] == "mixed"
    assert [(entry["part"], entry["state"]) for entry in report["ledger"]] == [("text", "ok"), ("picture 1", "ocr")]
    for _ in ("as it was read", "cut again"):
        found = http.search("bittern reed")["results"][0]
        anchor = found["anchor"]
        assert (anchor["heading"], anchor["picture"]) == ("Nests", 1)
        text = http("GET", f"/api/v1/documents/{report['id']}/text").body.decode()
        assert text[anchor["start"] : anchor["end"]] == found["text"] == "Bittern reed"
        add(http, "report.docx", data, [("metadata", '{"site": "marsh"}')])


def crashed(engine: EngineProcess, http: Http, text: str) -> str | None:
    """A job whose worker was killed; None if it got another one, because the worker died before it was asked."""
    (worker,) = workers(engine)
    os.kill(worker, signal.SIGSTOP)  # so that the job is running when the worker dies
    job: str = http.add_file("second.pdf", pdf([text]), wait=0).json["job_id"]
    eventually(lambda: http.job(job)["status"] == "running")
    os.kill(worker, signal.SIGSEGV)
    os.kill(worker, signal.SIGCONT)
    error = http.ended(job)["error"]
    assert error is None or error["code"] == "crashed"
    return job if error else None


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc")
def test_a_worker_that_dies_fails_one_job_and_none_outlives_the_engine(start_engine: StartEngine) -> None:
    engine = start_engine(KB_OCR="rapidocr")
    http = Http(engine.url)
    add(http, "first.pdf", pdf([HERON]))
    job = next(filter(None, (crashed(engine, http, f"{HERON} again {number}") for number in range(20))))
    assert http("POST", f"/api/v1/jobs/{job}/retry").status == 200
    assert http.ended(job)["status"] == "completed"
    (worker,) = workers(engine)
    engine.stop(signal.SIGKILL)
    eventually(lambda: not Path(f"/proc/{worker}/exe").exists(), 10)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc")
def test_cancelling_ends_the_worker_in_the_middle_of_a_page(start_engine: StartEngine) -> None:
    engine = start_engine()
    http = Http(engine.url)
    add(http, "first.pdf", pdf([HERON]))
    (worker,) = workers(engine)
    os.kill(worker, signal.SIGSTOP)  # a page that takes for ever
    job = http.add_file("slow.pdf", pdf([HERON + " slow"]), wait=0).json["job_id"]
    eventually(lambda: http.job(job)["status"] == "running")
    assert http("POST", f"/api/v1/jobs/{job}/cancel").status == 200
    assert http.ended(job)["status"] == "cancelled"
    assert worker not in workers(engine)
    assert add(http, "next.pdf", pdf([HERON + " next"]))["chunk_count"] == 2  # the page, and its author


def test_progress_goes_page_by_page(http: Http) -> None:
    job = http.add_file("long.pdf", pdf([f"{HERON} Page number {n}. " * 8 for n in range(60)]), wait=0).json["job_id"]
    seen: list[Any] = []

    def has_ended() -> bool:
        seen.append(http.job(job))
        return seen[-1]["finished_at"] is not None

    eventually(has_ended)
    state = seen.pop()
    steps = [state for state in seen if (state["current_step"] or "").startswith("Processing page ")]
    assert steps, [state["current_step"] for state in seen]
    assert all(state["total_steps"] == 60 and state["current_step"].endswith(" of 60") for state in steps)
    assert all(0 < state["progress"] < 1 for state in steps)
    assert all(state["estimated_remaining_seconds"] > 0 for state in steps)
    assert state["status"] == "completed"


@pytest.mark.parametrize("name", ["../../outside.pdf", "/etc/passwd.pdf", "a\\..\\b.pdf"])
def test_path_like_names_are_harmless(http: Http, name: str) -> None:
    document = add(http, name, pdf([f"{HERON} called {len(name)}"]))
    assert "/" not in document["filename"]
    assert "\\" not in document["filename"]


def test_encoded_bytes_stay_in_the_text_and_out_of_the_index(http: Http) -> None:
    blob = b64encode(random.Random(3).randbytes(6000)).decode()
    text = f"The quillwort grows in cold tarns.\n\n{blob}\n\nIts spores ripen late, as every quillwort's do."
    document = add(http, "quillwort.txt", text.encode())
    assert document["ledger"][1:] == [
        {"part": "encoded bytes", "state": "empty", "reason": "encoded bytes left out of the index: 1 place, 8 KB"}
    ]
    assert http("GET", f"/api/v1/documents/{document['id']}/text").body.decode() == text
    again = add(http, "quillwort.txt", text.encode(), [("title", "Quillworts")])  # cut again, from the stored text
    assert (again["title"], again["ledger"]) == ("Quillworts", document["ledger"])
    for cut in (document, again):
        passages = [one for one in cut["chunks"] if "start" in one["anchor"]]
        assert [text[one["anchor"]["start"] : one["anchor"]["end"]] for one in passages] == [
            "The quillwort grows in cold tarns.",
            "Its spores ripen late, as every quillwort's do.",
        ]


def test_a_file_of_encoded_bytes_alone_has_no_text(http: Http) -> None:
    error = failed(http, "blob.txt", b64encode(random.Random(4).randbytes(6000)))
    assert (error["code"], error["message"]) == ("no_text", "No text found: all of it is encoded bytes.")


def test_the_ledger_names_an_encoding(http: Http) -> None:
    text = "Болотная сова охотится над лугами перед закатом и гнездится на земле."
    document = add(http, "сова.txt", text.encode("koi8_r"))
    assert http("GET", f"/api/v1/documents/{document['id']}/text").body.decode() == text
    assert document["ledger"] == [{"part": "text", "state": "ok", "reason": "read as KOI8-R"}]
