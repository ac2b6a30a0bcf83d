"""The moment a content becomes the document's: one short transaction, then the index in memory follows."""

from collections.abc import Callable, Sequence
from typing import Protocol

from kb.core.errors import KBError
from kb.ingest.written import Written
from kb.store import chunks, documents
from kb.store.backend import Transaction, Vector
from kb.store.documents import Content


class LiveIndex(Protocol):
    """What the search side offers to those who change documents: called after a commit, before the next write."""

    def replace(
        self,
        document_id: int,
        chunk_ids: Sequence[int],
        terms: Sequence[int],
        vectors: Callable[[Vector], None],
        of_metadata: Sequence[bool],
    ) -> None: ...
    def remove(self, document_id: int) -> None: ...
    def clear(self) -> None: ...


class Publisher:
    def __init__(self, index: LiveIndex) -> None:
        self._index = index

    def publish(
        self,
        tx: Transaction,
        document_id: int,
        content: Content,
        revision: int,
        written: Written,
    ) -> None:
        """The chunks of this revision replace those that were published; what others are still writing stays theirs."""
        if chunks.count(tx, document_id, revision) != len(written):
            raise KBError(f"Chunks of document {document_id} are missing; nothing was changed. Retry the job.")
        old = documents.publish(tx, document_id, content, revision, len(written))
        chunks.remove_unpublished(tx, document_id, old)
        tx.after_commit(
            lambda: self._index.replace(
                document_id, written.ids, written.terms, lambda into: written.fill(tx, into), written.of_metadata
            )
        )

    def remove(self, tx: Transaction, document_id: int) -> int:
        """Take a document out of everything; how many chunks it had."""
        removed = chunks.remove_other_revisions(tx, document_id, keep=0)
        documents.delete(tx, document_id)
        tx.after_commit(lambda: self._index.remove(document_id))
        return len(removed)

    def clear(self, tx: Transaction) -> tuple[int, int]:
        """Take everything out of everything; how many documents and chunks there were."""
        removed = chunks.clear(tx)
        count = documents.clear(tx)
        tx.after_commit(self._index.clear)
        return count, removed
