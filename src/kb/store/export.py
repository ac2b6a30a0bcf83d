"""Documents as lines of JSON, for other programs to read."""

import json
from collections.abc import Iterator
from pathlib import Path

from kb.nouns import Json, wire
from kb.store import chunks, documents, notes
from kb.store.backend import Row, Transaction
from kb.store.originals import is_sha256, storage_errors

PAGE = "SELECT * FROM published WHERE id > :after ORDER BY id LIMIT 100"


def write_lines(tx: Transaction, path: Path) -> list[str]:
    """One line per document, by id: what GET /documents/{id} says, its text, and every version of a note.

    `titled` says whether the title was given, `brought` which version of a note its path brought: an import must know.
    Answers the hashes of their originals.
    """
    originals: set[str] = set()
    with storage_errors(), path.open("w", encoding="utf-8", newline="\n") as file:
        for row in rows(tx):
            file.write(json.dumps(line(tx, row), ensure_ascii=False, separators=(",", ":")) + "\n")
            if row["doc_type"] != "note" and is_sha256(row["content_hash"]):
                originals.add(row["content_hash"])
    return sorted(originals)


def rows(tx: Transaction) -> Iterator[Row]:
    after = 0
    while page := tx.rows(PAGE, {"after": after}):
        yield from page
        after = page[-1]["id"]


def line(tx: Transaction, row: Row) -> Json:
    document: Json = wire(documents.as_documents(tx, [row])[0])
    document["titled"] = bool(row["titled"])
    document["text"] = documents.text(tx, row["id"])
    document["chunks"] = wire(chunks.of_document(tx, row["id"], 0, None))
    if row["doc_type"] == "note":
        document["versions"] = wire(notes.versions(tx, row["id"]))
        document["brought"] = row["brought"]
    return document
