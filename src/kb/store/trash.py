"""The trash: documents that were deleted and can be brought back. They keep their rows, chunks and originals."""

from kb.core.changes import Change
from kb.core.errors import NotFound
from kb.store.backend import Row, Transaction
from kb.store.documents import find_stored, stored_members

PUT = "UPDATE documents SET deleted_at = :now WHERE id = :id AND deleted_at IS NULL"
TAKE_OUT = "UPDATE documents SET deleted_at = NULL WHERE id = :id"
FORGET_PATH = "UPDATE documents SET source_path = NULL WHERE id = :id"
IDS = "SELECT id FROM documents WHERE deleted_at IS NOT NULL"
COUNT = "SELECT count(*) FROM documents WHERE deleted_at IS NOT NULL"
PAGE = """
SELECT * FROM documents WHERE deleted_at IS NOT NULL ORDER BY deleted_at DESC, id DESC LIMIT :limit OFFSET :offset
"""
AT_PATH = """
SELECT * FROM documents WHERE source_path = :path AND content_hash = :hash AND deleted_at IS NOT NULL
 ORDER BY deleted_at DESC, id DESC LIMIT 1
"""
OLDEST = "SELECT * FROM documents WHERE deleted_at <= :moment ORDER BY deleted_at, id LIMIT :limit"


def find(tx: Transaction, ref: int | str) -> Row:
    """The row of a document in the trash, by integer id or uid."""
    row = find_stored(tx, ref)
    if row is None or row["deleted_at"] is None:
        raise NotFound(
            f"There is no document {str(ref)[:80]!r} in the trash. List what is in it with GET /api/v1/trash or "
            "`kb trash`."
        )
    return row


def put(tx: Transaction, document_id: int, moment: str) -> None:
    tx.run(PUT, {"id": document_id, "now": moment})
    tx.tell(Change("document", document_id, "deleted"))


def take_out(tx: Transaction, document_id: int) -> None:
    tx.run(TAKE_OUT, {"id": document_id})
    tx.tell(Change("document", document_id, "restored"))


def forget_path(tx: Transaction, document_id: int) -> None:
    """Take the source path from a document, and from its members the path below it."""
    tx.run(FORGET_PATH, {"id": document_id})
    for row in stored_members(tx, document_id):
        forget_path(tx, row["id"])


def at_path(tx: Transaction, path: str, content_hash: str) -> Row | None:
    """The document that had this path and these bytes when it was deleted, the latest of several."""
    return tx.row(AT_PATH, {"path": path, "hash": content_hash})


def ids(tx: Transaction) -> set[int]:
    return set(tx.column(IDS))


def count(tx: Transaction) -> int:
    return int(tx.value(COUNT))


def page(tx: Transaction, limit: int, offset: int) -> list[Row]:
    """The latest first."""
    return tx.rows(PAGE, {"limit": limit, "offset": offset})


def oldest(tx: Transaction, moment: str, limit: int) -> list[Row]:
    """The first of those that were in the trash at this moment."""
    return tx.rows(OLDEST, {"moment": moment, "limit": limit})
