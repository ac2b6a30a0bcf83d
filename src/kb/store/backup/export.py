"""Documents as lines of JSON, for other programs to read."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, TypeVar

from kb.core.errors import KBError, is_damage
from kb.core.types import Json
from kb.core.wire import wire
from kb.store import chunks, documents, notes
from kb.store.backend import Database, Row, Transaction
from kb.store.originals import is_sha256
from kb.store.staging import storage_errors

PAGE = "SELECT * FROM published WHERE id > :after ORDER BY id LIMIT 100"
NEXT = "SELECT * FROM published WHERE id >= :id ORDER BY id LIMIT 1"
LONGEST_GAP = 10_000  # successive ids that cannot be read, until the rest is given up

Found = TypeVar("Found")


@dataclass
class Export:
    """What an export holds, and what could not be read in a damaged database."""

    originals: set[str] = field(default_factory=set)
    unreadable: list[str] = field(default_factory=list)

    def add(self, row: Row, document: Json, file: IO[str]) -> None:
        file.write(json.dumps(document, ensure_ascii=False, separators=(",", ":")) + "\n")
        if row["doc_type"] != "note" and is_sha256(row["content_hash"]):
            self.originals.add(row["content_hash"])


def write_lines(database: Database, path: Path) -> Export:
    """One line per document, by id: what GET /documents/{id} says, its text, and every version of a note.

    `titled` says whether the title was given, `brought` which version of a note its path brought: an import must know.
    """
    try:
        with database.read() as tx, storage_errors(), opened(path) as file:
            whole = Export()
            for row in rows(tx):
                whole.add(row, line(tx, row), file)
            return whole
    except KBError as error:
        if not is_damage(error):
            raise
    return write_readable_lines(database, path)


def write_readable_lines(database: Database, path: Path) -> Export:
    """The same for a damaged database: each document in a transaction of its own, as far as it can be read."""
    part, next_id, failures = Export(), 1, 0
    with storage_errors(), opened(path) as file:
        while failures < LONGEST_GAP:
            found = tried(database, nearest, next_id)
            if found is None:
                part.unreadable.append(f"document {next_id}")
                next_id, failures = next_id + 1, failures + 1
                continue
            if not found:
                return part
            (row,), failures = found, 0
            next_id = row["id"] + 1
            if document := tried(database, line, row):
                part.add(row, document, file)
            elif document := tried(database, line_without_tags, row):
                part.add(row, document, file)
                part.unreadable.append(f"the tags of document {row['id']}")
            else:
                part.unreadable.append(f"document {row['id']}")
    part.unreadable[-failures:] = [f"documents from {next_id - failures} on, if there are any"]
    return part


def tried(database: Database, look: Callable[..., Found], *given: Any) -> Found | None:
    """The result of `look` in a transaction of its own; None where the database is damaged."""
    try:
        with database.read() as tx:
            return look(tx, *given)
    except KBError as error:
        if not is_damage(error):
            raise
        return None


def nearest(tx: Transaction, document_id: int) -> list[Row]:
    """The document with this id, or the next one that there is, if any."""
    return tx.rows(NEXT, {"id": document_id})


def opened(path: Path) -> IO[str]:
    return path.open("w", encoding="utf-8", newline="\n")


def rows(tx: Transaction) -> Iterator[Row]:
    after = 0
    while page := tx.rows(PAGE, {"after": after}):
        yield from page
        after = page[-1]["id"]


def line(tx: Transaction, row: Row, *, tagged: bool = True) -> Json:
    document: Json = wire(documents.as_documents(tx, [row], tagged=tagged)[0])
    document["metadata"] = json.loads(row["metadata"])  # also what an older version stored beyond today's limits
    document["titled"] = bool(row["titled"])
    is_note = row["doc_type"] == "note"
    document["text"] = notes.text(tx, row["id"], row["version"]) if is_note else documents.text(tx, row["id"])
    document["chunks"] = wire(chunks.of_document(tx, row["id"], 0, None))
    if is_note:
        document["versions"] = wire(notes.versions(tx, row["id"]))
        document["brought"] = row["brought"]
    return document


def line_without_tags(tx: Transaction, row: Row) -> Json:
    return line(tx, row, tagged=False)
