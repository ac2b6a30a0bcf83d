"""The tags of documents."""

from collections.abc import Collection
from dataclasses import dataclass

from kb.core.errors import NotFound
from kb.core.values import Document, TagCount
from kb.store import documents
from kb.store.backend import Database, Transaction


@dataclass(frozen=True)
class Catalogue:
    _database: Database

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
