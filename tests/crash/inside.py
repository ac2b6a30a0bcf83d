"""What must be true inside the store of an engine that has stopped, whichever store it is."""

import hashlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from kb.core.settings import Settings
from kb.index import terms
from kb.store.backend import Row, Transaction
from kb.store.health import fulltext_coverage, vector_coverage
from kb.store.open import Store, open_store

# Each must give no row.
NOTHING = {
    "a document that was never published": "SELECT id FROM documents WHERE revision = 0",
    "a chunk that is not published": """
        SELECT c.id FROM chunks c LEFT JOIN documents d ON d.id = c.document_id AND d.revision = c.revision
         WHERE d.id IS NULL""",
    "a document whose chunks are not all there": """
        SELECT d.id FROM documents d
         WHERE d.chunk_count <> (SELECT count(*) FROM chunks WHERE document_id = d.id)
            OR d.chunk_count <> (SELECT 1 + max(chunk_index) FROM chunks WHERE document_id = d.id)""",
    "a document without a text": "SELECT id FROM documents WHERE id NOT IN (SELECT document_id FROM document_texts)",
    "a note with a gap in its history": """
        SELECT d.id FROM documents d WHERE d.doc_type = 'note'
           AND d.version <> (SELECT count(*) FROM note_versions n
                              WHERE n.document_id = d.id AND n.version <= d.version)""",
    "a version that is newer than its note": """
        SELECT n.document_id FROM note_versions n JOIN documents d ON d.id = n.document_id
         WHERE n.version > d.version""",
    "a job that did not end": "SELECT id, status FROM jobs WHERE status NOT IN ('completed', 'failed', 'cancelled')",
    "a completed job that still holds what it was about": """
        SELECT id FROM jobs WHERE status = 'completed' AND payload IS NOT NULL""",
}
CONTENTS = """
SELECT d.id, d.doc_type, d.content_hash, t.text AS whole, c.id AS chunk_id, c.text, c.start_at, c.end_at, c.terms
  FROM documents d JOIN document_texts t ON t.document_id = d.id JOIN chunks c ON c.document_id = d.id
"""
ORIGINALS = "SELECT DISTINCT content_hash FROM documents WHERE doc_type <> 'note'"


def violations(settings: Settings) -> Iterator[str]:
    store = open_store(settings, terms.index_terms)
    store.migrate()
    try:
        yield from map(str, (*store.database.damage(), *store.database.fulltext_damage()))
        with store.database.read() as tx:
            yield from wrong_rows(tx)
            named = set(tx.column(ORIGINALS))
        yield from misplaced(store, settings.data_dir, named)
    finally:
        store.database.close()


def wrong_rows(tx: Transaction) -> Iterator[str]:
    for table in tx.broken_references():
        yield f"a row of {table} without its partner"
    for what, rows in (*tx.changed_rows().items(), *tx.lost_rows().items()):
        yield f"rows of {what} are not as they were written: {rows[:5]}"
    for what, sql in NOTHING.items():
        if found := tx.rows(sql):
            yield f"{what}: {found[:5]} ({len(found)} in all)"
    for what, coverage in (("full text", fulltext_coverage(tx)), ("vectors", vector_coverage(tx))):
        if coverage.missing or coverage.stray:
            yield f"{what} and chunks disagree: {coverage}"
    contents = tx.rows(CONTENTS)
    held = dict(tx.fulltext.terms_of([row["chunk_id"] for row in contents]))
    for row in contents:
        yield from disagreements(row, held.get(row["chunk_id"], []))


def disagreements(row: Row, held: list[str]) -> Iterator[str]:
    """A chunk is a piece of its document's text, and the full text holds its terms beside those of the title."""
    id_, whole, text = row["id"], row["whole"], row["text"]
    if whole[row["start_at"] : row["end_at"]] != text:
        yield f"a chunk of document {id_} is not what its anchor says: {text[:80]!r}"
    if row["doc_type"] == "note" and hashlib.sha256(whole.encode()).hexdigest() != row["content_hash"]:
        yield f"note {id_} has another text than its hash says"
    if Counter(terms.index_terms(text)) - Counter(held):
        yield f"the full text of document {id_} lacks terms of its chunk: {held[:10]!r}"
    if len(held) != row["terms"]:
        yield f"a chunk of document {id_} says {row['terms']} terms, but has {len(held)}"


def misplaced(store: Store, data_dir: Path, named: set[str]) -> Iterator[str]:
    """Originals: each that a document names is there, whole, and no other. Nothing is left in staging."""
    for name in named:
        if not store.originals.has(name):
            yield f"the original {name} is gone"
        elif not store.originals.is_sound(name):
            yield f"the original {name} holds other bytes"
    with store.database.write() as tx:
        for name in store.originals.orphans(tx, named):
            yield f"the original {name} belongs to nothing"
    for file in (data_dir / "staging").iterdir():
        yield f"left in staging: {file.name}"
