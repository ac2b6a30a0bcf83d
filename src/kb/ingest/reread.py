"""A request to read the original of a document once more: by OCR, or because reading has become better since."""

import json
import re

from kb.core.errors import InvalidRequest
from kb.ingest.requests import AddRequest
from kb.store.backend import Row

PAGE = re.compile(r"page (\d+)")  # in a ledger


def reread_request(row: Row, *, force_ocr: bool, pages: list[int] | None, message: str | None = None) -> AddRequest:
    """A request for all pages, or for some; the other pages are read as before, by OCR or not.

    `message` is the mail that brought the document.
    """
    if row["doc_type"] == "note":
        raise InvalidRequest(f"Document {row['id']} is a note: it has no original that could be read again.")
    if row["doc_type"] == "image" and row["media_type"] != "image/tiff" and pages == [1]:
        pages = None
    return AddRequest(
        doc_type=row["doc_type"],
        media_type=row["media_type"],
        content_hash=row["content_hash"],
        size_bytes=row["size_bytes"],
        filename=row["filename"],
        document_id=row["id"],
        force_ocr=force_ocr and pages is None,
        parent_id=row["parent_id"],
        member=row["member"],
        message=message,
        ocr_pages=None if pages is None else sorted(pages_by_ocr(row, set(pages), force_ocr=force_ocr)),
    )


def pages_by_ocr(row: Row, wanted: set[int], *, force_ocr: bool) -> set[int]:
    """The pages that OCR has to read, even if they have text of their own."""
    states = {
        int(found[1]): entry["state"] for entry in json.loads(row["ledger"]) if (found := PAGE.fullmatch(entry["part"]))
    }
    if beyond := sorted(wanted - states.keys()):
        counted = "1 page" if len(states) == 1 else f"{len(states)} pages"
        raise InvalidRequest(f"There is no page {beyond[0]}: document {row['id']} has {counted}.", pages=len(states))
    others = {page for page, state in states.items() if state == "ocr"} - wanted
    return others | wanted if force_ocr else others
