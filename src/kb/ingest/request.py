"""What somebody asked to have added, and whether it is known already.

Identity: with a source path, the path is the document. Without one, a file is its bytes, and a note is its text and
tags (other tags make another note: one agent's memory never becomes another's).
"""

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any

from kb.nouns import DocType, Json
from kb.store import documents
from kb.store.backend import Row, Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class AddRequest:
    """Survives a restart as a job's payload."""

    doc_type: DocType
    media_type: str
    content_hash: str
    size_bytes: int
    text: str | None = None  # a note's; a file's bytes lie among the originals
    filename: str | None = None
    title: str | None = None
    tags: list[str] | None = None  # None: not given
    source_path: str | None = None
    metadata: Json | None = None
    force_ocr: bool = False

    @property
    def is_note(self) -> bool:
        return self.doc_type == "note"

    def payload(self) -> Json:
        return asdict(self)

    @staticmethod
    def from_payload(payload: str) -> "AddRequest":
        return AddRequest(**json.loads(payload))


def note_request(text: str, **given: Any) -> AddRequest:
    data = text.encode()
    return AddRequest(
        doc_type="note",
        media_type="text/markdown",
        content_hash=hashlib.sha256(data).hexdigest(),
        size_bytes=len(data),
        text=text,
        **given,
    )


@dataclass(frozen=True, slots=True)
class Known:
    """The document that a request is about."""

    row: Row
    same_content: bool


def known(tx: Transaction, request: AddRequest) -> Known | None:
    if request.source_path is not None:
        row = documents.at_path(tx, request.source_path)
        if row is None:
            return None
        same = row["content_hash"] == request.content_hash and (row["doc_type"] == "note") == request.is_note
        return Known(row, same)
    candidates = documents.with_content(tx, request.content_hash, is_note=request.is_note)
    if request.is_note:
        held = documents.tags_of(tx, [row["id"] for row in candidates])
        candidates = [row for row in candidates if set(held[row["id"]]) == set(request.tags or ())]
    return Known(candidates[0], same_content=True) if candidates else None


def settled(found: Known, request: AddRequest) -> bool:
    """Whether the document already is what the request asks for, tags and metadata apart."""
    needs_title = request.title is not None and not found.row["titled"]
    needs_ocr = request.force_ocr and found.row["processing_method"] in ("text_extraction", "mixed")
    return found.same_content and not needs_title and not needs_ocr and not lacks_ocr(found.row)


def lacks_ocr(row: Row) -> bool:
    """Whether something in it could not be read for want of OCR, which may be there by now."""
    return any(part["state"] == "failed" and "OCR" in (part["reason"] or "") for part in json.loads(row["ledger"]))


def fill_in(tx: Transaction, row: Row, request: AddRequest) -> None:
    """What a second request for the same content adds: new tags, metadata keys that were missing."""
    held = documents.tags_of(tx, [row["id"]])[row["id"]]
    if new_tags := [tag for tag in request.tags or () if tag not in held]:
        documents.set_tags(tx, row["id"], [*held, *new_tags])
    metadata = json.loads(row["metadata"])
    missing = {key: value for key, value in (request.metadata or {}).items() if key not in metadata}
    if missing:
        documents.set_metadata(tx, row["id"], metadata | missing)
    if new_tags or missing:
        documents.touch(tx, row["id"])


def supersede(tx: Transaction, request: AddRequest, row: Row, job_id: str) -> None:
    """The path's content is what this job says: one that was accepted earlier and still waits must not replace it."""
    if request.source_path is not None:
        documents.set_accepted(tx, row["id"], job_id)
