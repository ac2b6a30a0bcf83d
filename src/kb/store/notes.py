"""The versions of notes. The version that the document names is the note; the others are its history."""

from collections.abc import Collection

from kb.core.errors import NotFound
from kb.core.times import now
from kb.core.values import NoteVersion
from kb.store.backend import Transaction
from kb.store.rows import numbers

ADD = "INSERT INTO note_versions (document_id, version, text, created_at) VALUES (:id, :version, :text, :now)"
ALL = "SELECT version, text, created_at FROM note_versions WHERE document_id = :id ORDER BY version DESC"
ONE = "SELECT version, text, created_at FROM note_versions WHERE document_id = :id AND version = :version"
TEXT = "SELECT text FROM note_versions WHERE document_id = :id AND version = :version"
CONTENTS = "SELECT id, content_hash FROM published WHERE doc_type = 'note' ORDER BY id"
TITLES = "SELECT id, title FROM published WHERE id IN ({ids})"


def add_version(tx: Transaction, document_id: int, text: str) -> None:
    """Keep this text under the version that the document has now."""
    version = tx.value("SELECT version FROM documents WHERE id = :id", {"id": document_id})
    tx.run(ADD, {"id": document_id, "version": version, "text": text, "now": now()})


def versions(tx: Transaction, document_id: int) -> list[NoteVersion]:
    return [NoteVersion(**row) for row in tx.rows(ALL, {"id": document_id})]


def text(tx: Transaction, document_id: int, number: int) -> str | None:
    """The text of one version; None when there is no such version."""
    found = tx.value(TEXT, {"id": document_id, "version": number})
    return None if found is None else str(found)


def contents(tx: Transaction) -> list[tuple[int, str]]:
    """Every note by id, with the hash of its text."""
    return [(row["id"], row["content_hash"]) for row in tx.rows(CONTENTS)]


def titles(tx: Transaction, ids: Collection[int]) -> dict[int, str]:
    """The titles of these notes, as far as they are there."""
    rows = tx.rows(TITLES.format(ids=numbers(ids)))
    return {row["id"]: row["title"] for row in rows}


def version(tx: Transaction, document_id: int, number: int) -> NoteVersion:
    row = tx.row(ONE, {"id": document_id, "version": number})
    if row is None:
        known = ", ".join(str(v.version) for v in reversed(versions(tx, document_id)))
        raise NotFound(f"Note {document_id} has no version {number}. Its versions are {known}.")
    return NoteVersion(**row)
