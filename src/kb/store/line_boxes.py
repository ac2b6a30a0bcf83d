"""Where the lines of pages stand that were read by OCR."""

import json
from collections.abc import Iterable

from kb.core.values import LineBoxes
from kb.store.backend import Transaction
from kb.store.rows import readable

ADD = """
INSERT INTO line_boxes (document_id, page, start_at, width, height, lines)
VALUES (:id, :page, :start, :width, :height, :lines)
"""
ONE = "SELECT start_at, width, height, lines FROM line_boxes WHERE document_id = :id AND page = :page"


def replace(tx: Transaction, document_id: int, pages: Iterable[tuple[int, int, LineBoxes]]) -> None:
    """All that is known of a document: each page, and where its text starts in the document's."""
    tx.run("DELETE FROM line_boxes WHERE document_id = :id", {"id": document_id})
    tx.run_many(
        ADD,
        [
            {
                "id": document_id,
                "page": page,
                "start": start,
                "width": found.width,
                "height": found.height,
                "lines": json.dumps(found.lines, separators=(",", ":")),
            }
            for page, start, found in pages
        ],
    )


def of_page(tx: Transaction, document_id: int, page: int) -> tuple[int, LineBoxes] | None:
    """Where the page's text starts in the document's, and its lines; None where they are not known."""
    row = tx.row(ONE, {"id": document_id, "page": page})
    if row is None:
        return None
    with readable("boxes of lines"):
        lines = [tuple(map(int, line)) for line in json.loads(row["lines"])]
        if any(len(line) != 6 for line in lines):
            raise ValueError("A line has six numbers.")
        return int(row["start_at"]), LineBoxes(float(row["width"]), float(row["height"]), lines)  # type: ignore[arg-type]
