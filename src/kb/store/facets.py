"""What documents are counted by: type, month and tags."""

from collections.abc import Collection

from kb.store.backend import Transaction
from kb.store.rows import listed

KINDS = "SELECT id, doc_type, substr(created_at, 1, 7) FROM published"
TAGS = "SELECT t.document_id, t.tag FROM tags t JOIN published d ON d.id = t.document_id"


def kinds(tx: Transaction, ids: Collection[int] | None = None) -> list[tuple[int, str, str]]:
    """Id, type and month of creation of these documents, or of all."""
    if ids is None:
        return tx.tuples(KINDS)
    names, params = listed(ids)
    return tx.tuples(f"{KINDS} WHERE id IN ({names})", params)


def tags(tx: Transaction, ids: Collection[int] | None = None) -> list[tuple[int, str]]:
    """Document and tag, for every tag of these documents, or of all."""
    if ids is None:
        return tx.tuples(TAGS)
    names, params = listed(ids)
    return tx.tuples(f"{TAGS} WHERE t.document_id IN ({names})", params)
