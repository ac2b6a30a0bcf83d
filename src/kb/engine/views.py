"""Views of an original: a page as a picture, the boxes of a passage on it, the cells around a citation."""

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from kb.core.errors import Conflict, InvalidRequest, JobFailure, NotFound
from kb.core.values import TENTHS, WORKBOOKS, CitedCells, LineBoxes, PageBoxes, TableWindow
from kb.embedding.priority import Priority
from kb.ingest.extract.columns import column_index, column_name
from kb.ingest.sandbox.views import Beyond, Viewer
from kb.store import chunks, documents, line_boxes
from kb.store.backend import Database, Row
from kb.store.originals import Originals

DRAWING = 1  # raise it when pages are drawn differently: cached pages then no longer match
CELLS = re.compile(r"([A-Z]{1,3})([1-9]\d{0,6})(?::([A-Z]{1,3})([1-9]\d{0,6}))?")
LAST_ROW, LAST_COLUMN = 2**20, 2**14  # of any sheet
ROWS_AROUND, COLUMNS_AROUND = 5, 3
MOST_ROWS, MOST_COLUMNS = 60, 30
PICTURED = ("pdf", "image")
TIFF = "image/tiff"


@dataclass(frozen=True, slots=True)
class PageImage:
    jpeg: bytes
    tag: str  # differs for every other picture


@dataclass(frozen=True)
class Views:
    _database: Database
    _originals: Originals
    _viewer: Viewer
    _priority: Priority

    def image(self, ref: str, page: int, width: int) -> PageImage:
        """A page of a PDF, or a picture, as a JPEG of this width in pixels."""
        row = self._with_pages(ref, page)
        name, sha256 = f"{page}-{width}-{DRAWING}.jpg", str(row["content_hash"])
        path = self._originals.verified(sha256)
        jpeg = self._originals.page(sha256, name)
        if jpeg is None:
            self._priority.give_way()
            with shown(f"Page {page} of document {row['id']}"):
                drawn = self._viewer.image(row["doc_type"], path, page, width)
            if isinstance(drawn, Beyond):
                raise no_page(row, page, drawn.pages)
            jpeg = drawn
            self._originals.keep_page(sha256, name, jpeg)
        return PageImage(jpeg, hashlib.sha256(f"{sha256} {name}".encode()).hexdigest()[:32])

    def boxes(self, ref: str, page: int, start: int, end: int) -> PageBoxes:
        """Where the text from `start` to `end` stands on a page, as far as it stands there."""
        if start >= end:
            raise InvalidRequest(f"start is {start} and end is {end}: a passage ends after it starts.")
        row = self._with_pages(ref, page)
        path = self._originals.verified(row["content_hash"])
        with self._database.read() as tx:
            text = documents.text(tx, row["id"])
            first, last = (0, len(text)) if has_one_page(row) else chunks.stretch_of_page(tx, row["id"], page)
            read = line_boxes.of_page(tx, row["id"], page)
        start, end = max(start, first), min(end, last)
        if read is not None:
            return boxes_of_lines(page, *read, text, start, end)
        self._priority.give_way()
        with shown(f"Page {page} of document {row['id']}"):
            passage = (start - first, end - first) if start < end else (0, 0)
            found = self._viewer.boxes(row["doc_type"], path, page, text[first:last], *passage)
        if isinstance(found, Beyond):
            raise no_page(row, page, found.pages)
        return PageBoxes(page, found.width, found.height, found.boxes, found.exact)

    def table(self, ref: str, sheet: str, cells: str) -> TableWindow:
        """The cells that a citation names, and some around them."""
        top, left, bottom, right = corners(cells)
        with self._database.read() as tx:
            row = documents.find(tx, ref)
        if row["doc_type"] not in WORKBOOKS:
            raise NotFound(f"Document {row['id']} is a {row['doc_type']}, which has no cells. Workbooks have.")
        path = self._originals.verified(row["content_hash"])
        first_row, first_column = max(0, top - ROWS_AROUND), max(0, left - COLUMNS_AROUND)
        last_row = min(bottom + ROWS_AROUND + 1, first_row + MOST_ROWS)
        last_column = min(right + COLUMNS_AROUND + 1, first_column + MOST_COLUMNS)
        self._priority.give_way()
        with shown(f"Sheet {sheet!r} of document {row['id']}"):
            found = self._viewer.cells(path, sheet, (first_row, first_column, last_row, last_column))
        if found is None:
            raise NotFound(f"Document {row['id']} has no sheet {sheet!r}. The anchors of its passages name its sheets.")
        width = max(map(len, found), default=0)
        return TableWindow(
            sheet,
            cells,
            first_row + 1,
            [column_name(column) for column in range(first_column, first_column + width)],
            [[*texts, *[""] * (width - len(texts))] for texts in found],
            CitedCells((top + 1, bottom + 1), (column_name(left), column_name(right))),
        )

    def _with_pages(self, ref: str, page: int) -> Row:
        with self._database.read() as tx:
            row = documents.find(tx, ref)
        if row["doc_type"] not in PICTURED:
            raise NotFound(
                f"Document {row['id']} is a {row['doc_type']} and has 0 pages. PDFs and TIFFs have pages, other "
                f"pictures have 1. Read its text with GET /api/v1/documents/{row['id']}/text.",
                pages=0,
            )
        if has_one_page(row) and page != 1:
            raise no_page(row, page, 1)
        return row


def has_one_page(row: Row) -> bool:
    """Whether the document is a picture that is not divided into pages, as a TIFF is."""
    return bool(row["doc_type"] == "image" and row["media_type"] != TIFF)


def boxes_of_lines(page: int, offset: int, found: LineBoxes, text: str, start: int, end: int) -> PageBoxes:
    """The lines of a page that was read by OCR in which a stretch of the document's text stands."""
    lines = [line for line in found.lines if line[0] + offset < end and start < line[1] + offset]
    boxes = [(line[2] / TENTHS, line[3] / TENTHS, line[4] / TENTHS, line[5] / TENTHS) for line in lines]
    covered = {at for line in lines for at in range(line[0] + offset, line[1] + offset)}
    missing = any(at not in covered and text[at].isalnum() for at in range(start, end))
    return PageBoxes(page, found.width, found.height, boxes, bool(boxes) and not missing)


@contextmanager
def shown(what: str) -> Iterator[None]:
    """Raise a failure to read an original as an error that names what cannot be shown."""
    try:
        yield
    except JobFailure as failure:
        raise Conflict(
            f"{what} cannot be shown: {failure.message} The original itself can be had with /original.",
            failure=failure.code,
        ) from failure


def no_page(row: Row, page: int, pages: int) -> NotFound:
    counted = "1 page" if pages == 1 else f"{pages} pages"
    return NotFound(f"There is no page {page}: document {row['id']} has {counted}.", pages=pages)


def corners(cells: str) -> tuple[int, int, int, int]:
    """`B4:D9` as the first row, first column, last row and last column, each from 0."""
    found = CELLS.fullmatch(cells)
    if found is None:
        raise InvalidRequest(f"{cells!r} is not a range of cells. Send one like B4:D9, or a cell like B4.")
    columns = sorted((column_index(found[1]), column_index(found[3] or found[1])))
    rows = sorted((int(found[2]) - 1, int(found[4] or found[2]) - 1))
    if rows[1] >= LAST_ROW or columns[1] >= LAST_COLUMN:
        raise InvalidRequest(f"{cells!r} lies beyond the last cell that a sheet can have, XFD1048576.")
    return rows[0], columns[0], rows[1], columns[1]
