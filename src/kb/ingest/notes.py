"""Edit a note in place: the new text becomes its next version."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import chain

from kb.core.errors import Conflict, InvalidRequest, NotANote
from kb.core.values import MAX_NOTE_BYTES, Document
from kb.index.chunk_index import ChunkIndex
from kb.ingest.draft import ledger_entry
from kb.ingest.extract import Part
from kb.ingest.prepare import Preparer
from kb.ingest.publish import MovedError, NewRevision, Publisher, attempted
from kb.ingest.requests import first_line, text_hash
from kb.store import documents, links, notes
from kb.store.backend import Database, Row, Transaction


@dataclass(frozen=True)
class NoteEditor:
    _database: Database
    _preparer: Preparer
    _publisher: Publisher
    _index: ChunkIndex
    _delete: Callable[[Transaction, Row], object]  # puts a document into the trash

    def update(self, ref: str, text: str, expected_version: int | None = None) -> Document:
        """Embed first, then publish in one transaction: if embedding fails, the old note stays as it is."""
        check_note_text(text)
        self._index.snapshot()  # raises while there is no index that could follow
        return attempted(lambda: self._attempt(ref, text, expected_version))

    def restore(self, ref: str, version: int) -> Document:
        """Make an old text the newest version; the history stays."""
        with self._database.read() as tx:
            old = notes.version(tx, find_note(tx, ref)["id"], version)
        return self.update(ref, old.text)

    def merge(self, ref: str, other: str, text: str, expected_version: int, other_version: int) -> Document:
        """Give a note this text and the tags of both, and delete the other one, in one transaction."""
        check_note_text(text)
        self._index.snapshot()

        def other_note(tx: Transaction, row: Row) -> Row:
            found = find_note(tx, other, other_version)
            if found["id"] == row["id"]:
                raise InvalidRequest(f"Both are note {row['id']}. A note is merged with another one.")
            return found

        def join(tx: Transaction, row: Row) -> None:
            absorbed = other_note(tx, row)
            held = documents.tags_of(tx, [row["id"], absorbed["id"]])
            tags = list(dict.fromkeys(held[row["id"]] + held[absorbed["id"]]))
            if tags != held[row["id"]]:
                documents.set_tags(tx, row["id"], tags)
                documents.touch(tx, row["id"])
            self._delete(tx, absorbed)

        with self._database.read() as tx:  # before anything is embedded
            other_note(tx, find_note(tx, ref, expected_version))
        merged = attempted(lambda: self._attempt(ref, text, expected_version, join))
        self._database.truncate_wal()
        return merged

    def _attempt(
        self, ref: str, text: str, expected_version: int | None, also: Callable[[Transaction, Row], None] | None = None
    ) -> Document:
        """`also` is part of the transaction that publishes; it may run again after an attempt that was undone."""
        content_hash = text_hash(text)
        with self._database.read() as tx:
            before = find_note(tx, ref, expected_version)
            if before["content_hash"] == content_hash and also is None:
                return documents.with_text(tx, before)
        title = before["title"] if before["titled"] else first_line(text)
        part = Part("text", text)
        passages = chain(
            self._preparer.passages(part, "markdown", title),
            self._preparer.metadata_passages(json.loads(before["metadata"]), title),
        )
        revision = NewRevision(before["id"])
        with self._publisher.withdrawing(revision):
            for batch in self._preparer.batches(passages):
                self._publisher.write(revision, batch)
            with self._database.write() as tx:
                row = find_note(tx, ref, expected_version)
                # Title and metadata are part of what was embedded.
                if (row["titled"] and row["title"] != title) or row["metadata"] != before["metadata"]:
                    raise MovedError
                if also is not None:
                    also(tx, row)
                if row["content_hash"] != content_hash:
                    content = replace(
                        documents.content_of(row),
                        title=title,
                        content_hash=content_hash,
                        size_bytes=len(text.encode()),
                        ledger=[ledger_entry(part)],
                    )
                    self._publisher.publish(tx, revision, content)
                    notes.add_version(tx, row["id"], text)
                    links.refresh(tx, row["id"])
                return documents.with_text(tx, documents.find(tx, row["id"]))


def check_note_text(text: str) -> None:
    if not text.strip():
        raise InvalidRequest("The text is empty. Give the note some text.")
    if len(text.encode()) > MAX_NOTE_BYTES:
        raise InvalidRequest(
            f"The text is larger than {MAX_NOTE_BYTES // 2**20} MB, the most that a note holds. Split it, or add it as "
            "a file."
        )


def find_note(tx: Transaction, ref: str, expected_version: int | None = None) -> Row:
    row = documents.find(tx, ref)
    if row["doc_type"] != "note":
        raise NotANote(
            f"Document {row['id']} is a {row['doc_type']} file. Only notes can be updated and have versions; add "
            "the file again when it has changed."
        )
    if expected_version is not None and row["version"] != expected_version:
        raise Conflict(
            f"Note {row['id']} is at version {row['version']}, not {expected_version}: somebody changed it. Read it "
            "again and repeat the change on the new text.",
            current_version=row["version"],
        )
    return row
