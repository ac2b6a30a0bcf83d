"""A request to add something, compared with the document that is there already.

Identity: with a source path, the path is the document. Without one, a file is its bytes, and a note is its text and
tags (other tags make another note: one agent's memory never becomes another's).

A member of an archive or a mail is its path in there, whatever else has the same bytes or the same source path.

A path replaces what it brought itself. What was edited in kb since is replaced only by force, and a document never
changes from a note to a file or back.
"""

import hashlib
import json
from contextlib import suppress
from dataclasses import asdict, dataclass

from kb.core.errors import JobFailure, NotFound
from kb.core.types import Json
from kb.core.values import CONTAINERS, AddOptions, AddOutcome, DocType, LedgerEntry
from kb.store import documents, notes
from kb.store.backend import Row, Transaction

TITLE_CHARACTERS = 200
# In the ledger of a document from its publication until the job has read what is in it.
UNREAD = LedgerEntry("members", "failed", "not read yet: the job that reads them has not ended; add the file again")


@dataclass(frozen=True, slots=True, kw_only=True)
class AddRequest(AddOptions):
    """What is to be added, and with which options. Survives a restart as the payload of a job."""

    doc_type: DocType
    media_type: str
    content_hash: str
    size_bytes: int
    text: str | None = None  # a note's; a file's bytes lie among the originals
    filename: str | None = None
    document_id: int | None = None  # read the original of this document once more: nothing is added
    ocr_pages: list[int] | None = None  # that are read by OCR even if they have text
    parent_id: int | None = None  # the document that it was found in
    member: str | None = None  # its path in there
    message: str | None = None  # the mail that brought it

    @property
    def is_note(self) -> bool:
        return self.doc_type == "note"

    @property
    def given_title(self) -> str | None:
        return self.title or str((self.metadata or {}).get("title") or "") or None


def note_request(text: str, options: AddOptions) -> AddRequest:
    return AddRequest(
        doc_type="note",
        media_type="text/markdown",
        content_hash=text_hash(text),
        size_bytes=len(text.encode()),
        text=text,
        **asdict(options),
    )


def text_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def first_line(text: str) -> str:
    """The title of a note that has no given one."""
    for line in text.splitlines():
        if title := line.strip().lstrip("#").strip():
            return title if len(title) <= TITLE_CHARACTERS else title[: TITLE_CHARACTERS - 1] + "…"
    return text.strip()[:TITLE_CHARACTERS]


@dataclass(frozen=True, slots=True)
class Known:
    """The document that a request is about."""

    row: Row
    same_content: bool = False
    kept: bool = False  # an edit in kb replaced this content, and the path has nothing newer
    refusal: str | None = None  # why the request must not replace the content, and what to do

    @property
    def holds(self) -> bool:
        """Whether the content of the request is there, as the current version or below an edit."""
        return self.same_content or self.kept

    def outcome(self, *, tagged: bool) -> AddOutcome:
        """What the request did, if it needed no new content."""
        return "kept" if self.kept else "updated" if tagged else "unchanged"


def known(tx: Transaction, request: AddRequest) -> Known | None:
    if request.document_id is not None:
        return Known(document_to_reread(tx, request.document_id, request.content_hash), same_content=True)
    if request.parent_id is not None and request.member is not None:
        row = documents.member(tx, request.parent_id, request.member)
        return None if row is None else compared(tx, row, request)
    if request.source_path is not None:
        row = documents.at_path(tx, request.source_path)
        return None if row is None else compared(tx, row, request)
    candidates = documents.with_content(tx, request.content_hash, is_note=request.is_note)
    if request.is_note:
        candidates = tagged_alike(tx, candidates, request)
    return Known(candidates[0], same_content=True) if candidates else None


def edited_meanwhile(tx: Transaction, request: AddRequest, accepted_at: str) -> Known | None:
    """The note that the same request, sent twice, has brought already, and that was edited since this one was accepted.

    One of the two waited, for example because its engine died: it must not add the old text once more.
    """
    if request.text is None or request.source_path is not None or request.parent_id is not None:
        return None
    candidates = tagged_alike(tx, documents.edited_since(tx, request.text, accepted_at), request)
    return Known(candidates[0], kept=True) if candidates else None


def tagged_alike(tx: Transaction, rows: list[Row], request: AddRequest) -> list[Row]:
    held = documents.tags_of(tx, [row["id"] for row in rows])
    return [row for row in rows if set(held[row["id"]]) == set(request.tags or ())]


def document_to_reread(tx: Transaction, document_id: int, content_hash: str) -> Row:
    """Raises JobFailure if the document was deleted, or has other bytes by now."""
    with suppress(NotFound):
        row = documents.find(tx, document_id)
        if row["content_hash"] == content_hash:
            return row
    raise JobFailure("conflict", f"Document {document_id} was deleted or has other content by now. Nothing was read.")


def compared(tx: Transaction, row: Row, request: AddRequest) -> Known:
    """The document at a path, and whether the request may replace its content."""
    if (row["doc_type"] == "note") != request.is_note:
        return Known(row, refusal=other_kind(row))
    if row["content_hash"] == request.content_hash:
        return Known(row, same_content=True)
    if not request.is_note or request.force or row["brought"] == row["version"]:
        return Known(row)
    brought = notes.text(tx, row["id"], row["brought"])
    brought_hash = None if brought is None else text_hash(brought)
    if brought_hash == row["content_hash"]:  # edited, and edited back
        return Known(row)
    if brought_hash == request.content_hash:
        return Known(row, kept=True)
    return Known(row, refusal=edited(row))


def other_kind(row: Row) -> str:
    if row["doc_type"] == "note":
        return (
            f"Document {row['id']} at this source path is a note, and a note does not become a file. To update the "
            f"note, send the text as a note (`kb import`). To have the file instead, delete the note first "
            f"(`kb rm {row['id']}`)."
        )
    return (
        f"Document {row['id']} at this source path is a {row['doc_type']} file, and a file does not become a note. To "
        f"update it, send the file (`kb add`). To have a note instead, delete the file first (`kb rm {row['id']}`)."
    )


def edited(row: Row) -> str:
    return (
        f"Note {row['id']} was edited in kb (version {row['version']}), and the text that was sent is another one. "
        f"The note stays as it is. Merge the two with `kb updatenote {row['id']}`, or replace the note with force "
        "(`--force`): its versions stay."
    )


def settled(found: Known, request: AddRequest) -> bool:
    """Whether the document already is what the request asks for, tags apart."""
    return found.kept or (text_settled(found, request) and not lacks_members(found.row))


def lacks_only_members(found: Known, request: AddRequest) -> bool:
    """Whether a job ended too early: the document is there, but not everything that is in it."""
    return text_settled(found, request) and lacks_members(found.row)


def lacks_members(row: Row) -> bool:
    return row["doc_type"] in CONTAINERS and any(entry == asdict(UNREAD) for entry in json.loads(row["ledger"]))


def text_settled(found: Known, request: AddRequest) -> bool:
    """Whether the document has the text, the title and the metadata that the request asks for."""
    title = title_for(found, request)
    metadata = json.loads(found.row["metadata"])
    return (
        found.same_content
        and title in (None, found.row["title"])
        and metadata | given_metadata(found, request) == metadata
        and not must_be_read(found.row, request)
    )


def must_be_read(row: Row, request: AddRequest) -> bool:
    """Whether a file with the same bytes must be read again: OCR was asked for, or failed and may work now."""
    if request.document_id is not None:
        return True
    asked = request.force_ocr and row["processing_method"] in ("text_extraction", "mixed")
    return asked or any(
        part["state"] == "failed" and "OCR" in (part["reason"] or "") for part in json.loads(row["ledger"])
    )


def title_for(found: Known | None, request: AddRequest) -> str | None:
    """The title that this or an earlier request gave; None if it comes from the content."""
    held = found.row["title"] if found and found.row["titled"] else None
    if request.source_path is None:
        return held or request.given_title
    return request.given_title or held


def given_metadata(found: Known | None, request: AddRequest) -> Json:
    """The metadata of this and earlier requests. At a path, new values replace old ones; else they only fill gaps."""
    new = request.metadata or {}
    if found is None:
        return new
    if request.source_path is None:
        held = json.loads(found.row["metadata"])
        new = {name: value for name, value in new.items() if name not in held}
    given: Json = json.loads(found.row["given"])
    return given | new


def tags_for(held: list[str], request: AddRequest) -> list[str]:
    """The tags of the document with those of the request, which are added unless they replace them."""
    if request.tags is None:
        return held
    return list(dict.fromkeys(request.tags if request.replace_tags else [*held, *request.tags]))


def give_tags(tx: Transaction, row: Row, request: AddRequest) -> bool:
    """Apply the tags of a request whose content is there already, also to what is in it.

    Return whether that changed any.
    """
    held = documents.tags_of(tx, [row["id"]])[row["id"]]
    tags = tags_for(held, request)
    changed = tags != held
    if changed:
        documents.set_tags(tx, row["id"], tags)
        documents.touch(tx, row["id"])
    if request.tags is not None and row["doc_type"] in CONTAINERS:
        within = [give_tags(tx, member, request) for member in documents.members(tx, row["id"])]
        changed = changed or any(within)
    return changed


def supersede(tx: Transaction, request: AddRequest, found: Known, job_id: str) -> None:
    """Keep jobs that were accepted earlier and still wait from replacing the content that this job confirmed."""
    if request.source_path is not None:
        documents.set_accepted(tx, found.row["id"], job_id)
        if found.same_content:
            documents.set_brought(tx, found.row["id"])
