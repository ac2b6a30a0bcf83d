"""What must be true inside the data folder of an engine that has stopped."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import sqlite_vec

from kb.index import terms

# Each must give no row.
NOTHING = {
    "a row without its partner": "SELECT * FROM pragma_foreign_key_check",
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
    "a chunk without full text": "SELECT id FROM chunks EXCEPT SELECT rowid FROM chunks_fts",
    "full text without a chunk": "SELECT rowid FROM chunks_fts EXCEPT SELECT id FROM chunks",
    "a chunk without a vector": "SELECT id FROM chunks EXCEPT SELECT chunk_id FROM chunks_vec",
    "a vector without a chunk": "SELECT chunk_id FROM chunks_vec EXCEPT SELECT id FROM chunks",
}
CONTENTS = """
SELECT d.id, d.doc_type, d.content_hash, t.text AS whole, c.text, c.start_at, c.end_at, f.body, c.terms,
       f.title, f.heading
  FROM documents d JOIN document_texts t ON t.document_id = d.id JOIN chunks c ON c.document_id = d.id
  JOIN chunks_fts f ON f.rowid = c.id
"""
ORIGINALS = "SELECT DISTINCT content_hash FROM documents WHERE doc_type <> 'note'"


def violations(data_dir: Path) -> Iterator[str]:
    connection = apsw.Connection(str(data_dir / "kb.db"))
    connection.enable_load_extension(True)
    connection.load_extension(sqlite_vec.loadable_path())
    try:
        yield from damage(connection)
        for what, sql in NOTHING.items():
            if rows := connection.execute(sql).fetchall():
                yield f"{what}: {rows[:5]} ({len(rows)} in all)"
        for row in connection.execute(CONTENTS).fetchall():
            yield from disagreements(row)
        named = {str(name) for (name,) in connection.execute(ORIGINALS)}
    finally:
        connection.close()
    yield from misplaced(data_dir, named)


def damage(connection: apsw.Connection) -> Iterator[str]:
    said = connection.execute("SELECT * FROM pragma_integrity_check").fetchall()
    if said != [("ok",)]:
        yield f"PRAGMA integrity_check: {said[:5]}"
    try:
        connection.execute("INSERT INTO chunks_fts (chunks_fts) VALUES ('integrity-check')").fetchall()
    except apsw.Error as error:
        yield f"the full text's integrity-check: {error}"


def disagreements(row: tuple[Any, ...]) -> Iterator[str]:
    """A chunk is a piece of its document's text, and the full text holds exactly its terms."""
    id_, doc_type, content_hash, whole, text, start, end, body, count, title, heading = row
    if whole[start:end] != text:
        yield f"a chunk of document {id_} is not what its anchor says: {text[:80]!r}"
    if doc_type == "note" and hashlib.sha256(whole.encode()).hexdigest() != content_hash:
        yield f"note {id_} has another text than its hash says"
    if body != " ".join(terms.index_terms(text)):
        yield f"the full text of document {id_} is not that of its chunk: {body[:80]!r}"
    if len(f"{title} {heading} {body}".split()) != count:
        yield f"a chunk of document {id_} says {count} terms, but has others"


def misplaced(data_dir: Path, named: set[str]) -> Iterator[str]:
    """Originals: each that a document names is there, whole, and no other. Nothing is left in staging."""
    files = {file.name: file for file in (data_dir / "originals").glob("*/*")}
    for name in named - files.keys():
        yield f"the original {name} is gone"
    for name in files.keys() - named:
        yield f"the original {name} belongs to nothing"
    for name, file in files.items():
        if hashlib.sha256(file.read_bytes()).hexdigest() != name:
            yield f"the original {name} holds other bytes"
    for file in (data_dir / "staging").iterdir():
        yield f"left in staging: {file.name}"
