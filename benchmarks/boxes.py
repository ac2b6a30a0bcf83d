"""`python -m benchmarks.boxes FOLDER`: whether a passage is boxed where it stands, and how long that takes.

The PDFs of a folder go through a real engine. A passage counts as covered when the letters that pdfium finds inside of
its boxes, on the page as it is displayed, are at least 97% of its letters. Scans are made of pages with text, whose
letters then say where the lines of the scan stand. Prints a table.
"""

import argparse
import io
import json
import random
import sys
import tempfile
import time
import unicodedata
import urllib.request
from collections import Counter
from collections.abc import Iterator, Sequence
from ctypes import byref, c_int
from dataclasses import dataclass
from pathlib import Path

import pypdfium2
import pypdfium2.raw as pdfium
from PIL import Image

from benchmarks.engine import EngineProcess, running_engine
from benchmarks.report import Section, median, percentile, verdict
from kb.cli.transport import SocketClient
from kb.client.engines import Engines
from kb.core.errors import KBError
from kb.core.settings import Settings
from kb.core.types import Json
from kb.ingest.extract.pdf import laid_open

COVERED = 0.97  # of a passage's letters
GOAL, SCAN_GOAL = 0.98, 0.90  # of the passages
GOAL_MS = 500.0  # of a page far behind in a long PDF
PER_DOCUMENT = 6  # passages, so that long ones do not decide
SMALL = 2**19  # bytes of a file that is added
SCAN_SCALE = 150 / 72
LONG, FAR = 1000, 900  # pages of the long PDF, and the one that is asked for
REPORTS = "financebench"  # the folder whose smallest PDF is repeated for that
WIDTH = 1400
FINE = 20  # parts of a point, in which pdfium is asked where a letter is displayed
WAIT = 300

Boxes = Sequence[tuple[float, float, float, float]]


@dataclass(frozen=True, slots=True)
class Letter:
    text: str
    x: float  # its middle on the page as it is displayed, in points
    y: float


@dataclass(frozen=True, slots=True)
class Shown:
    """One passage on its page."""

    name: str
    page: int
    opens: bool  # the picture came
    covered: float  # share of the passage's letters
    precise: float  # share of the boxed letters that are the passage's
    exact: bool
    image_ms: float
    boxes_ms: float


class Book:
    """One document of the engine, and the PDF that says where its letters are."""

    def __init__(self, engine: EngineProcess, document: Json, truth: Path, state: str) -> None:
        self._url = f"{engine.url}/api/v1/documents/{document['id']}/pages"
        self.name = str(document["filename"])
        self._truth = truth
        states = {entry["part"]: entry["state"] for entry in document["ledger"]}
        self.passages = [
            chunk
            for chunk in document["chunks"]
            if "page" in chunk["anchor"]
            and not chunk.get("hidden")
            and states.get(f"page {chunk['anchor']['page']}") == state
            and len(letters_of(chunk["text"])) >= 20
        ]

    def show(self, passage: Json) -> Shown:
        anchor = passage["anchor"]
        page = int(anchor["page"])
        width = WIDTH - passage["index"] % 200  # another for each passage of a page: it is drawn anew
        picture, image_ms = fetched(f"{self._url}/{page}/image?width={width}")
        body, boxes_ms = fetched(f"{self._url}/{page}/boxes?start={anchor['start']}&end={anchor['end']}")
        found: Json = json.loads(body)
        boxed = Counter(
            letter
            for one in displayed_letters(self._truth, page, found["width"])
            if inside(one, found["boxes"])
            for letter in one.text
        )
        wanted = Counter(letters_of(passage["text"]))
        common = (boxed & wanted).total()
        return Shown(
            self.name,
            page,
            Image.open(io.BytesIO(picture)).width == width,
            common / wanted.total(),
            common / max(1, boxed.total()),
            bool(found["exact"]),
            image_ms,
            boxes_ms,
        )


def fetched(url: str) -> tuple[bytes, float]:
    started = time.perf_counter()
    with urllib.request.urlopen(url, timeout=60) as answer:
        body = answer.read()
    return body, (time.perf_counter() - started) * 1000


def letters_of(text: str) -> str:
    return "".join(one for one in unicodedata.normalize("NFKC", text) if one.isalnum())


def displayed_letters(path: Path, page: int, width: float) -> Iterator[Letter]:
    """What stands where, as pdfium displays it; scaled to a page of this width."""
    document = pypdfium2.PdfDocument(path)
    opened, _ = laid_open(document, page - 1)
    written = opened.get_textpage()
    across, down = opened.get_size()
    size, scale = (round(across * FINE), round(down * FINE)), width / across / FINE
    x, y = c_int(), c_int()
    first = 0  # half of a pair of surrogates
    for index in range(written.count_chars()):
        code = min(pdfium.FPDFText_GetUnicode(written, index), sys.maxunicode)
        if 0xDC00 <= code < 0xE000 and first:
            code = 0x10000 + (first - 0xD800 << 10) + code - 0xDC00
        first = code if 0xD800 <= code < 0xDC00 else 0
        if text := letters_of(chr(code)):
            left, bottom, right, top = written.get_charbox(index)
            middle = (left + right) / 2, (bottom + top) / 2
            pdfium.FPDF_PageToDevice(opened, 0, 0, *size, 0, *middle, byref(x), byref(y))
            yield Letter(text, x.value * scale, y.value * scale)
    written.close()
    opened.close()
    document.close()


def inside(letter: Letter, boxes: Boxes) -> bool:
    return any(box[0] <= letter.x <= box[2] and box[1] <= letter.y <= box[3] for box in boxes)


def added(client: SocketClient, path: Path) -> Json | None:
    """The document; None for a file that cannot be read."""
    try:
        job = client.job(client.add_file(path, filename=path.name, wait=WAIT)["job_id"])
    except KBError:
        return None
    while job["status"] in ("queued", "running"):
        time.sleep(1)
        job = client.job(job["id"])
    return client.document(job["document_id"]) if job["status"] == "completed" else None


def has_pictures(path: Path) -> bool:
    """Whether its first page shows pictures: OCR reads them too, and the page's own letters do not say what."""
    return any(pypdfium2.PdfDocument(path)[0].get_objects([pdfium.FPDF_PAGEOBJ_IMAGE]))


def has_text(path: Path) -> bool:
    """Whether its first page can be read without OCR."""
    try:
        return len(pypdfium2.PdfDocument(path)[0].get_textpage().get_text_range()) > 50
    except pypdfium2.PdfiumError:
        return False


def scans(sources: Sequence[Path], folder: Path) -> Iterator[tuple[Path, Path]]:
    """The first page of each PDF as a picture, a PDF of its own, and the one that it shows."""
    for number, source in enumerate(sources):
        document = pypdfium2.PdfDocument(source)
        picture = document[0].render(scale=SCAN_SCALE, grayscale=True).to_pil()
        scan = folder / f"scan-{number}-{source.name}"
        picture.save(scan, "PDF", resolution=72 * SCAN_SCALE)
        yield scan, source


def long_pdf(source: Path, target: Path) -> None:
    """The pages of a report again and again."""
    report, made = pypdfium2.PdfDocument(source), pypdfium2.PdfDocument.new()
    while len(made) < LONG:
        made.import_pages(report, list(range(min(len(report), LONG - len(made)))))
    made.save(target)


def row(title: str, shown: Sequence[Shown], goal: float) -> list[str]:
    share = sum(one.opens and one.covered >= COVERED for one in shown) / max(1, len(shown))
    return [
        title,
        str(len(shown)),
        f"{share:.1%}",
        f"≥ {goal:.0%}, {verdict(share >= goal)}",
        f"{sum(one.exact for one in shown) / max(1, len(shown)):.1%}",
        f"{median([one.precise for one in shown]):.3f}",
        *(
            f"{take(times):.1f}"
            for times in ([s.boxes_ms for s in shown], [s.image_ms for s in shown])
            for take in TAKEN
        ),
    ]


TAKEN = (median, lambda values: percentile(values, 0.95))
HEADS = ("", "passages", "covered", "goal", "exact", "precision", "boxes p50 ms", "p95", "image p50 ms", "p95")


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.boxes", description=__doc__)
    parser.add_argument("folder", type=Path, help="its folders hold PDFs")
    parser.add_argument("--passages", type=int, default=150)
    parser.add_argument("--scans", type=int, default=15, help="pages that are read by OCR")
    parser.add_argument("--long", action="store_true", help=f"also a PDF of {LONG} pages, which takes minutes to add")
    parser.add_argument("--seed", type=int, default=7)
    args = parser.parse_args(argv)
    chance = random.Random(args.seed)
    every = sorted(args.folder.glob("*/*.pdf"), key=lambda path: path.stat().st_size)
    with tempfile.TemporaryDirectory() as name, running_engine(Path(name) / "data") as engine:
        client = SocketClient(Engines.of(Settings(engine_url=engine.url)))
        small = [path for path in every if path.stat().st_size <= SMALL and has_text(path)]
        books = [(Book(engine, document, path, "ok"), path) for path in small if (document := added(client, path))]
        typed = sampled([book for book, _ in books], args.passages, chance)
        rows = [row("pages with text", typed, GOAL)]
        sources = [path for book, path in books if any(one["anchor"]["page"] == 1 for one in book.passages)]
        sources = [path for path in sources if not has_pictures(path)]
        chance.shuffle(sources)
        made = scans(sources[: args.scans], Path(name))
        scanned = [Book(engine, document, source, "ocr") for scan, source in made if (document := added(client, scan))]
        read = [book.show(passage) for book in scanned for passage in book.passages]
        rows.append(row("scanned pages", read, SCAN_GOAL))
        remarks = [f"{one.name}, page {one.page}: {one.covered:.0%} covered" for one in typed if one.covered < COVERED]
        if args.long:
            report = next(path for path in every if path.parent.name == REPORTS)
            remarks.append(far(engine, client, report, Path(name)))
    about = f"{len(books)} PDFs; scans are pictures of {len(scanned)} of their pages. Times over HTTP, nothing cached."
    sys.stdout.write(Section("Passages boxed on their pages", about, HEADS, rows, remarks).markdown() + "\n")


def sampled(books: Sequence[Book], count: int, chance: random.Random) -> list[Shown]:
    chosen = [
        (book, passage)
        for book in books
        for passage in chance.sample(book.passages, min(PER_DOCUMENT, len(book.passages)))
    ]
    return [book.show(passage) for book, passage in chance.sample(chosen, min(count, len(chosen)))]


def far(engine: EngineProcess, client: SocketClient, source: Path, folder: Path) -> str:
    path = folder / "long.pdf"
    long_pdf(source, path)
    document = added(client, path)
    assert document
    book = Book(engine, document, path, "ok")
    passage = next(one for one in book.passages if one["anchor"]["page"] >= FAR)
    shown = book.show(passage)
    reached = verdict(max(shown.image_ms, shown.boxes_ms) < GOAL_MS)
    return (
        f"Page {shown.page} of {LONG} ({path.stat().st_size / 2**20:.0f} MB): picture {shown.image_ms:.0f} ms, boxes "
        f"{shown.boxes_ms:.0f} ms, {shown.covered:.0%} covered; goal {GOAL_MS:.0f} ms, {reached}."
    )


if __name__ == "__main__":
    main()
