"""Documents and their tags. A document that is not published yet, or is in the trash, is not found here."""

import json
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kb.core.changes import RESET, Change
from kb.core.errors import NotFound
from kb.core.metadata import shown
from kb.core.searches import Filter
from kb.core.status import DocumentCounts
from kb.core.times import now
from kb.core.types import Json
from kb.core.values import DocType, Document, LedgerEntry, Method, TagCount
from kb.store.backend import Row, Transaction
from kb.store.rows import checked_id, from_row, listed, readable

FIND = "SELECT * FROM {view} WHERE {column} = :ref"
TEXT = "SELECT text FROM document_texts WHERE document_id = :id"
TAGS = "SELECT document_id, tag FROM tags WHERE document_id IN ({ids}) ORDER BY document_id, position, tag"
TAGGED = "SELECT t.document_id FROM tags t JOIN published d ON d.id = t.document_id WHERE t.tag = :tag"
DROP_TAG = """
DELETE FROM tags WHERE tag = :tag AND document_id IN (SELECT document_id FROM tags WHERE tag = :to)
"""
TAG_COUNTS = """
SELECT t.tag, count(*) AS documents FROM tags t JOIN published d ON d.id = t.document_id GROUP BY t.tag ORDER BY t.tag
"""
COMPARISONS = {
    "doc_type": "d.doc_type = :doc_type",
    "media_type": "d.media_type = :media_type",
    "created_after": "d.created_at >= :created_after",
    "created_before": "d.created_at < :created_before",
    "parent": "d.parent_id = :parent",
}
AT_EXACTLY = "d.source_path = :source_path"
# "0" follows "/": a range, which an index can serve.
BELOW = "d.source_path >= :source_path AND d.source_path < :source_path_end"

# The row that chunks of a first revision belong to; it is invisible until it is published.
RESERVE = """
INSERT INTO documents (title, doc_type, content_hash, created_at, uid)
VALUES ('', '', '', :created_at, :uid) RETURNING id
"""

BEFORE = "SELECT version, revision, content_hash FROM documents WHERE id = :id AND deleted_at IS NULL"
# From here on the chunks of this revision are the document's.
PUBLISH = """
UPDATE documents
   SET title = :title, titled = :titled, filename = :filename, source_path = :source_path, doc_type = :doc_type,
       media_type = :media_type, content_hash = :content_hash, size_bytes = :size_bytes, metadata = :metadata,
       given = :given, processing_method = :processing_method, ledger = :ledger, parent_id = :parent_id,
       member = :member, version = :version,
       revision = :revision, chunk_count = :chunk_count, accepted = :accepted, updated_at = :updated_at
 WHERE id = :id
"""
MOVE = "UPDATE documents SET source_path = :source_path, filename = :filename, updated_at = :now WHERE id = :id"
MOVE_REVISION = """
UPDATE documents SET revision = :new, chunk_count = :count WHERE id = :id AND revision = :old RETURNING id
"""
ACCEPTED = """
UPDATE documents SET accepted = (SELECT seq FROM jobs WHERE jobs.id = :job)
 WHERE id = :id AND accepted < (SELECT seq FROM jobs WHERE jobs.id = :job)
"""
# The path's content is the version that the document has now.
BROUGHT = "UPDATE documents SET brought = version WHERE id = :id"
TOUCH = "UPDATE documents SET updated_at = :now WHERE id = :id"
SET_TEXT = """
INSERT INTO texts (document_id, text) VALUES (:id, :text) ON CONFLICT (document_id) DO UPDATE SET text = excluded.text
"""

# What was added itself: a member of an archive may have the same path or bytes, and goes away with its archive.
AT_PATH = "SELECT * FROM published WHERE source_path = :path AND parent_id IS NULL ORDER BY id LIMIT 1"
# The same bytes; one that has no path of its own first.
WITH_HASH = """
SELECT * FROM published WHERE content_hash = :hash AND (doc_type = 'note') = :is_note AND parent_id IS NULL
 ORDER BY source_path IS NOT NULL, id
"""

# Notes that were added with this text, and edited for the first time after this moment.
EDITED_SINCE = """
SELECT d.* FROM published d
  JOIN note_versions added ON added.document_id = d.id AND added.version = 1
  JOIN note_versions edited ON edited.document_id = d.id AND edited.version = 2
 WHERE d.version > 1 AND d.updated_at >= :moment AND edited.created_at >= :moment
   AND d.doc_type = 'note' AND d.source_path IS NULL AND added.text = :text
 ORDER BY d.id
"""

MEMBER = "SELECT * FROM published WHERE parent_id = :parent AND member = :member ORDER BY id LIMIT 1"
MEMBERS = "SELECT * FROM {those} WHERE parent_id = :parent ORDER BY id"
SET_LEDGER = "UPDATE documents SET ledger = :ledger WHERE id = :id"

RECENT = "COALESCE(updated_at, created_at)"

LOOKED_UP_AT_ONCE = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """All that a new content sets in a document."""

    title: str
    titled: bool  # the title was given, not taken from the content
    filename: str | None
    source_path: str | None
    doc_type: DocType
    media_type: str
    content_hash: str
    size_bytes: int
    metadata: Json
    processing_method: Method
    ledger: list[LedgerEntry]
    given: Json = field(default_factory=dict)  # the part of the metadata that additions gave
    accepted: int = 0  # `seq` of the job that brought it; the latest wins
    parent_id: int | None = None  # the document that it was found in
    member: str | None = None  # its path in there


def reserve(tx: Transaction, created_at: str | None = None) -> int:
    """Insert the row of a new, unpublished document. Return its id."""
    document_id = checked_id(tx.value(RESERVE, {"created_at": created_at or now(), "uid": str(uuid.uuid4())}))
    tx.begin_draft(document_id, 0)
    return document_id


def publish(tx: Transaction, document_id: int, content: Content, revision: int, chunk_count: int) -> int:
    """Make a revision the document's content. Other bytes count as a new version. Return the old revision."""
    old = tx.row(BEFORE, {"id": document_id})
    if old is None:
        raise NotFound(f"Document {document_id} was deleted while its new content was being prepared.")
    known = old["revision"] > 0
    changed = known and old["content_hash"] != content.content_hash
    tx.run(
        PUBLISH,
        asdict(content)
        | {
            "id": document_id,
            "titled": int(content.titled),
            "metadata": json.dumps(content.metadata, ensure_ascii=False),
            "given": json.dumps(content.given, ensure_ascii=False),
            "ledger": ledger_text(content.ledger),
            "version": old["version"] + changed,
            "revision": revision,
            "chunk_count": chunk_count,
            "updated_at": now() if known else None,
        },
    )
    tx.tell(Change("document", document_id, "updated" if known else "added"))
    return int(old["revision"])


def find(tx: Transaction, ref: int | str) -> Row:
    """The row of a document by integer id or uid."""
    if (found := looked_up(tx, ref, "published")) is None:
        raise NotFound(
            f"There is no document {str(ref)[:80]!r}. List what there is with GET /api/v1/documents or `kb list`."
        )
    return found


def find_stored(tx: Transaction, ref: int | str) -> Row | None:
    """The row of a document that may be in the trash."""
    return looked_up(tx, ref, "stored")


def looked_up(tx: Transaction, ref: int | str, view: str) -> Row | None:
    text = str(ref)
    by_id = text.isascii() and text.isdigit() and len(text) <= 18
    sql = FIND.format(view=view, column="id" if by_id else "uid")
    return tx.row(sql, {"ref": int(text) if by_id else text.lower()})


def exists(tx: Transaction, document_id: int) -> bool:
    """Whether there is such a document, published or not, in the trash or not."""
    return tx.value("SELECT 1 FROM documents WHERE id = :id", {"id": document_id}) is not None


def takes_content(tx: Transaction, document_id: int) -> bool:
    """Whether new content can be published for this document: it was neither removed nor put into the trash."""
    return tx.row(BEFORE, {"id": document_id}) is not None


def any_published(tx: Transaction) -> bool:
    return tx.value("SELECT 1 FROM published LIMIT 1") is not None


def stored_ids(tx: Transaction) -> list[int]:
    """The id of every document, also of those in the trash."""
    return tx.column("SELECT id FROM stored ORDER BY id")


def get(tx: Transaction, ref: int | str) -> Document:
    return as_documents(tx, [find(tx, ref)])[0]


def with_text(tx: Transaction, row: Row) -> Document:
    """The document of this row, with the text if it is a note."""
    found = as_documents(tx, [row])[0]
    return replace(found, text=text(tx, found.id)) if found.doc_type == "note" else found


def text(tx: Transaction, document_id: int) -> str:
    return str(tx.value(TEXT, {"id": document_id}) or "")


def set_text(tx: Transaction, document_id: int, text: str) -> None:
    tx.run(SET_TEXT, {"id": document_id, "text": text})


def at_path(tx: Transaction, path: str) -> Row | None:
    return tx.row(AT_PATH, {"path": path})


def with_content(tx: Transaction, content_hash: str, *, is_note: bool) -> list[Row]:
    return tx.rows(WITH_HASH, {"hash": content_hash, "is_note": is_note})


def edited_since(tx: Transaction, text: str, moment: str) -> list[Row]:
    """Notes that were added with this text and had it until this moment, at least."""
    return tx.rows(EDITED_SINCE, {"text": text, "moment": moment})


def member(tx: Transaction, parent_id: int, path: str) -> Row | None:
    """The document that was found at this path in another."""
    return tx.row(MEMBER, {"parent": parent_id, "member": path})


def members(tx: Transaction, parent_id: int) -> list[Row]:
    """The documents that were found in this one."""
    return tx.rows(MEMBERS.format(those="published"), {"parent": parent_id})


def stored_members(tx: Transaction, parent_id: int) -> list[Row]:
    """The same with those in the trash."""
    return tx.rows(MEMBERS.format(those="stored"), {"parent": parent_id})


def set_ledger(tx: Transaction, document_id: int, ledger: Sequence[LedgerEntry]) -> None:
    tx.run(SET_LEDGER, {"id": document_id, "ledger": ledger_text(ledger)})


def those(tx: Transaction, ids: Sequence[int]) -> list[Row]:
    """The rows of those documents that are there."""
    names, params = listed(ids)
    return tx.rows(f"SELECT * FROM published WHERE id IN ({names}) ORDER BY id", params)


def ids_of(tx: Transaction, refs: Sequence[int | str]) -> list[int]:
    """The ids of those documents that are there, ascending, each once; `refs` are integer ids or uids."""
    found: set[int] = set()
    for start in range(0, len(refs), LOOKED_UP_AT_ONCE):
        some = refs[start : start + LOOKED_UP_AT_ONCE]
        for column in ("id", "uid"):
            wanted = [
                ref if column == "id" else str(ref).lower() for ref in some if isinstance(ref, int) == (column == "id")
            ]
            names, params = listed(wanted)
            found.update(tx.column(f"SELECT id FROM published WHERE {column} IN ({names})", params))
    return sorted(found)


def matching(tx: Transaction, condition: Filter) -> NDArray[np.int64]:
    """Ids of every document within a filter, in any order."""
    where, params = filtered(condition)
    return tx.integers(("id",), f"published d WHERE {where}", params)[:, 0]


def filtered(condition: Filter) -> tuple[str, dict[str, Any]]:
    """A WHERE clause over `published d`."""
    clauses, params = ["1 = 1"], dict[str, Any]()
    for name, clause in COMPARISONS.items():
        if (value := getattr(condition, name)) is not None:
            clauses.append(clause)
            params[name] = value
    if (path := condition.source_path) is not None:
        clauses.append(BELOW if path.endswith("/") else AT_EXACTLY)
        params |= {"source_path": path, "source_path_end": f"{path[:-1]}0"}
    for number, tag in enumerate(condition.tags):
        clauses.append(f"d.id IN (SELECT document_id FROM tags WHERE tag = :tag{number})")
        params[f"tag{number}"] = tag
    return " AND ".join(clauses), params


def move(tx: Transaction, document_id: int, source_path: str, filename: str) -> None:
    """Give a document another source path and file name, and its members a path below it; their contents stay."""
    tx.run(MOVE, {"id": document_id, "source_path": source_path, "filename": filename, "now": now()})
    tx.tell(Change("document", document_id, "updated"))
    for row in stored_members(tx, document_id):
        move(tx, row["id"], f"{source_path}/{row['member']}", row["filename"])


def move_revision(tx: Transaction, document_id: int, old: int, new: int, chunk_count: int) -> bool:
    """Publish other chunks of the same content, unless the content has changed since. Return whether it did."""
    params = {"id": document_id, "old": old, "new": new, "count": chunk_count}
    return tx.value(MOVE_REVISION, params) is not None


def delete(tx: Transaction, document_id: int) -> None:
    """Delete the row with its tags, texts and versions, and its name in jobs; its chunks have to be removed before."""
    tx.run("UPDATE jobs SET filename = NULL WHERE document_id = :id", {"id": document_id})
    was_deleted = tx.value("DELETE FROM documents WHERE id = :id RETURNING deleted_at", {"id": document_id})
    tx.tell(Change("document", document_id, "purged" if was_deleted else "deleted"))


def clear(tx: Transaction) -> int:
    """Delete all documents, the trash included, with their tags, texts and versions. Return how many were published."""
    count = int(tx.value("SELECT count(*) FROM published"))
    tx.run("DELETE FROM documents")
    tx.tell(RESET)
    return count


def set_tags(tx: Transaction, document_id: int, tags: Sequence[str]) -> None:
    tx.run("DELETE FROM tags WHERE document_id = :id", {"id": document_id})
    tx.run_many(
        "INSERT INTO tags (document_id, tag, position) VALUES (:id, :tag, :position)",
        [{"id": document_id, "tag": tag, "position": position} for position, tag in enumerate(dict.fromkeys(tags))],
    )


def touch(tx: Transaction, document_id: int) -> None:
    """Record that the tags of a document changed."""
    tx.run(TOUCH, {"id": document_id, "now": now()})
    tx.tell(Change("document", document_id, "tags"))


def set_accepted(tx: Transaction, document_id: int, job_id: str) -> None:
    """Record the job, so that jobs accepted before it no longer change the document."""
    tx.run(ACCEPTED, {"id": document_id, "job": job_id})


def set_brought(tx: Transaction, document_id: int) -> None:
    """Record that the version which the document has now came from its source path, not from an edit."""
    tx.run(BROUGHT, {"id": document_id})


def tagged(tx: Transaction, tag: str) -> list[int]:
    """The ids of the documents that have this tag."""
    return tx.column(TAGGED, {"tag": tag})


def rename_tag(tx: Transaction, tag: str, to: str) -> None:
    """A document that has both keeps the other tag where it is."""
    tx.run(DROP_TAG, {"tag": tag, "to": to})
    tx.run("UPDATE tags SET tag = :to WHERE tag = :tag", {"tag": tag, "to": to})


def tags_of(tx: Transaction, document_ids: Sequence[int]) -> dict[int, list[str]]:
    held: dict[int, list[str]] = {id_: [] for id_ in document_ids}
    if held:
        names, params = listed(held)
        for id_, tag in tx.tuples(TAGS.format(ids=names), params):
            held[id_].append(tag)
    return held


def tag_counts(tx: Transaction) -> list[TagCount]:
    return [TagCount(**row) for row in tx.rows(TAG_COUNTS)]


def counts(tx: Transaction) -> DocumentCounts:
    rows = tx.rows("SELECT doc_type, count(*) AS n FROM published GROUP BY doc_type ORDER BY doc_type")
    by_type = {row["doc_type"]: row["n"] for row in rows}
    return DocumentCounts(sum(by_type.values()), by_type)


def last_updated(tx: Transaction) -> str | None:
    found = tx.value(f"SELECT max({RECENT}) FROM published")
    return str(found) if found else None


def as_documents(tx: Transaction, rows: Sequence[Row], *, tagged: bool = True) -> list[Document]:
    """The documents of these rows; `tagged=False` for a database whose tags cannot be read."""
    tags = tags_of(tx, [row["id"] for row in rows] if tagged else [])
    with readable("documents"):
        return [as_document(row, tags[row["id"]] if tagged else []) for row in rows]


def content_of(row: Row) -> Content:
    """The content of a document's row."""
    with readable("documents"):
        return from_row(
            Content,
            row,
            titled=bool(row["titled"]),
            metadata=json.loads(row["metadata"]),
            ledger=ledger_of(row),
            given=json.loads(row["given"]),
        )


def as_document(row: Row, tags: list[str]) -> Document:
    return from_row(
        Document, row, tags=tags, metadata=shown(row["metadata"]), ledger=ledger_of(row), parent=row["parent_id"]
    )


def ledger_text(ledger: Sequence[LedgerEntry]) -> str:
    return json.dumps([asdict(entry) for entry in ledger], ensure_ascii=False)


def ledger_of(row: Row) -> list[LedgerEntry]:
    return [LedgerEntry(**entry) for entry in json.loads(row["ledger"])]
