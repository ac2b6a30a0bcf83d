"""Deletion: a document goes to the trash for some days, or is removed for good.

In the trash it keeps everything: id, tags, versions, chunks, original. Only the index in memory lets go of it, so it is
gone from every answer at once, and comes back at once.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from threading import Event

from kb.core.errors import Conflict
from kb.core.times import now, parse, stamp
from kb.core.values import Document, Emptied, Removed, TrashList
from kb.ingest.publish import Publisher
from kb.store import documents, links, listing, originals, trash
from kb.store.backend import Database, Row, Transaction
from kb.store.originals import Originals

PURGED_AT_ONCE = 20  # documents in one transaction, so that no other writer waits long


@dataclass(frozen=True)
class Trash:
    _database: Database
    _publisher: Publisher
    _originals: Originals
    _days: int  # that a document stays; 0: every deletion is final

    def delete(self, ref: str, *, purge: bool = False) -> Removed:
        """Put a document into the trash. With `purge`, remove it for good, also from the trash."""
        with self._database.write() as tx:
            found = documents.find_stored(tx, ref) if purge else None
            row = found or documents.find(tx, ref)
            removed = self.purge(tx, row) if purge else self.put(tx, row)
        if removed.expires_at is None:
            self._database.truncate_wal()
        return removed

    def put(self, tx: Transaction, row: Row) -> Removed:
        """Put a document into the trash with all that was found in it; where every deletion is final, remove it."""
        if not self._days:
            return self.purge(tx, row)
        moment = now()
        return Removed(row["id"], row["filename"], self._hide(tx, row, moment), self._expiry(moment))

    def _hide(self, tx: Transaction, row: Row, moment: str) -> int:
        """Return the number of chunks that are hidden."""
        hidden = sum(self._hide(tx, member, moment) for member in documents.members(tx, row["id"]))
        self._publisher.hide(tx, row["id"], moment)
        return hidden + int(row["chunk_count"])

    def purge(self, tx: Transaction, row: Row) -> Removed:
        """Remove a document for good, and its original unless another needs it.

        What was found in it goes with it. After the commit, `truncate_wal` leaves nothing of it on the disk.
        """
        within = [self.purge(tx, member) for member in documents.stored_members(tx, row["id"])]
        removed = self._publisher.remove(tx, row["id"]) + sum(one.chunks_removed for one in within)
        if row["doc_type"] != "note" and not originals.is_named(tx, row["content_hash"]):
            self._originals.remove(tx, row["content_hash"])
        return Removed(row["id"], row["filename"], removed)

    def restore(self, ref: str, *, without_path: bool = False) -> Document:
        """Bring a document back as it was, with what went into the trash together with it.

        With `without_path`, it leaves its source path to the document there.
        """
        with self._database.write() as tx:
            row = trash.find(tx, ref)
            check_parent(tx, row)
            path = row["source_path"] if row["parent_id"] is None else None
            if path is not None and (other := documents.at_path(tx, path)) is not None:
                if not without_path:
                    raise Conflict(
                        f"Document {other['id']} has the source path of document {row['id']} by now: {path}. Nothing "
                        f"was changed. Delete that one first (`kb rm {other['id']}`), or restore this one without its "
                        f"path (`kb trash restore {row['id']} --without-path`, `without_path=true`).",
                        document_id=other["id"],
                    )
                trash.forget_path(tx, row["id"])
                links.refresh(tx, row["id"])
            self._show(tx, row)
            return documents.with_text(tx, documents.find(tx, row["id"]))

    def bring_back(self, source_path: str, content_hash: str) -> None:
        """Restore the document that had this source path and these bytes, if there is none at that path now."""
        with self._database.read() as tx:
            if trash.at_path(tx, source_path, content_hash) is None:
                return
        with self._database.write() as tx:
            row = trash.at_path(tx, source_path, content_hash)
            if row is not None and documents.at_path(tx, source_path) is None:
                self._show(tx, row)

    def _show(self, tx: Transaction, row: Row) -> None:
        self._publisher.show(tx, row["id"])
        for member in documents.stored_members(tx, row["id"]):
            if member["deleted_at"] == row["deleted_at"]:
                self._show(tx, member)

    def page(self, limit: int, offset: int) -> TrashList:
        """What is in the trash, the latest first."""
        with self._database.read() as tx:
            rows, total = trash.page(tx, limit, offset), trash.count(tx)
            found = [self._expiry(row["deleted_at"]) for row in rows]
            return TrashList(listing.as_summaries(tx, rows, expires_at=found), total, limit, offset)

    def empty(self, expected_count: int) -> Emptied:
        """Remove everything in the trash for good, if it holds as many documents as the caller says."""
        with self._database.read() as tx:
            count = trash.count(tx)
        if count != expected_count:
            raise Conflict(
                f"There are {count} documents in the trash, not {expected_count}. Nothing was removed. Look at it "
                "again, and repeat this with the new number.",
                count=count,
            )
        return Emptied(self._purge_until(now(), Event()))

    def expire(self, stopping: Event) -> int:
        """Remove for good what has been in the trash long enough. Return how many documents that were."""
        return self._purge_until(stamp(datetime.now(UTC) - timedelta(days=self._days)), stopping)

    def _purge_until(self, moment: str, stopping: Event) -> int:
        """Remove what was put into the trash until this moment, in steps."""
        purged = 0
        while not stopping.is_set():
            with self._database.read() as tx:
                if not trash.oldest(tx, moment, 1):
                    break
            with self._database.write() as tx:
                for row in trash.oldest(tx, moment, PURGED_AT_ONCE):
                    if documents.exists(tx, row["id"]):  # not gone with the archive that it was in
                        self.purge(tx, row)
                    purged += 1
        if purged:
            self._database.truncate_wal()
        return purged

    def _expiry(self, deleted_at: str) -> str:
        return stamp(parse(deleted_at) + timedelta(days=self._days))


def check_parent(tx: Transaction, row: Row) -> None:
    """Refuse to bring back a member of an archive that is in the trash itself, or has another in its place by now."""
    parent, member = row["parent_id"], row["member"]
    if parent is None:
        return
    if not documents.takes_content(tx, parent):
        raise Conflict(
            f"Document {row['id']} was found in document {parent}, which is in the trash, too. Nothing was changed. "
            f"Restore that one (`kb trash restore {parent}`).",
            document_id=parent,
        )
    if other := documents.member(tx, parent, member):
        raise Conflict(
            f"Document {other['id']} is at the place of document {row['id']} by now: {member} in document {parent}. "
            f"Nothing was changed. Delete that one first (`kb rm {other['id']}`).",
            document_id=other["id"],
        )
