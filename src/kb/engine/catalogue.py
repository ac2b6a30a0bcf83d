"""Documents apart from their contents: their tags, and taking them out."""

from collections.abc import Collection
from dataclasses import dataclass

from kb.core.errors import NotFound
from kb.core.values import Document, Removed, TagCount
from kb.ingest.publish import Publisher
from kb.store import documents, originals
from kb.store.backend import Database, Row, Transaction
from kb.store.originals import Originals


@dataclass(frozen=True)
class Catalogue:
    _database: Database
    _publisher: Publisher
    _originals: Originals

    def delete(self, ref: str) -> Removed:
        """Remove one document for good."""
        with self._database.write() as tx:
            row = documents.find(tx, ref)
            removed = self.remove(tx, row)
        self._database.truncate_wal()
        return Removed(row["id"], row["filename"], removed)

    def remove(self, tx: Transaction, row: Row) -> int:
        """Remove a document, and its original unless another needs it; return how many chunks it had.

        After the commit, `truncate_wal` leaves nothing of it on the disk.
        """
        removed = self._publisher.remove(tx, row["id"])
        if row["doc_type"] != "note" and not originals.is_named(tx, row["content_hash"]):
            tx.after_commit(lambda: self._originals.remove(row["content_hash"]))
        return removed

    def edit_tags(self, ref: str, add: Collection[str], remove: Collection[str]) -> Document:
        with self._database.write() as tx:
            found = documents.find(tx, ref)["id"]
            retag(tx, [found], add, remove)
            return documents.get(tx, found)

    def rename_tag(self, tag: str, to: str) -> TagCount:
        """Give every document of a tag another one instead; a tag that exists takes the documents of both."""
        with self._database.write() as tx:
            ids = documents.tagged(tx, tag)
            if not ids:
                raise NotFound(f"There is no tag {tag[:200]!r}. List them with GET /api/v1/tags.")
            if tag != to:
                documents.rename_tag(tx, tag, to)
                for id_ in ids:
                    documents.touch(tx, id_)
            return TagCount(to, len(documents.tagged(tx, to)))


def retag(tx: Transaction, ids: Collection[int], add: Collection[str], remove: Collection[str]) -> None:
    """Remove tags from documents, then add others; a change that changes nothing sets nothing."""
    for id_, held in documents.tags_of(tx, list(ids)).items():
        tags = [tag for tag in held if tag not in remove]
        tags += [tag for tag in dict.fromkeys(add) if tag not in tags]
        if tags != held:
            documents.set_tags(tx, id_, tags)
            documents.touch(tx, id_)
