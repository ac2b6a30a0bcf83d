"""Bring a database file to the current schema.

Each migration and its record are one transaction: a crash in between changes nothing. A file of v2 is copied to
`<name>.v2` first, so going back is putting the copy back.
"""

import logging
import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw

from kb.core.errors import KBError
from kb.core.times import now
from kb.core.values import DOC_TYPES
from kb.store import links
from kb.store.chunks import text_key
from kb.store.folder import sync_folder
from kb.store.sqlite import checksums, schema
from kb.store.sqlite.connection import SQLiteTransaction, connect, copy_into, translated
from kb.store.sqlite.schema import MIGRATIONS

log = logging.getLogger(__name__)

STAMPED = 4  # since this migration rows have checksums; later ones stamp the rows again
LINKED = 11  # since this migration links are stored
RECORD = "INSERT INTO migrations (version, applied_at) VALUES (:version, :now)"
DERIVE = """
UPDATE documents
   SET doc_type = :doc_type, filename = :name, media_type = :media_type, size_bytes = :size,
       chunk_count = (SELECT count(*) FROM chunks WHERE document_id = :id)
 WHERE id = :id
"""
FIRST_VERSION = """
INSERT INTO note_versions (document_id, version, text, created_at) VALUES (:id, 1, :text, :created_at)
"""
TEXTS = "SELECT id, text FROM chunks WHERE id > :last ORDER BY id LIMIT :limit"
TEXTS_AT_ONCE = 1000
KEY = "UPDATE chunks SET text_key = :key WHERE id = :id"
V2_MEDIA_TYPES = {
    "note": "text/markdown",
    "markdown": "text/markdown",
    "pdf": "application/pdf",
    "html": "text/html",
}

Segment = Callable[[str], list[str]]


def migrate(path: Path, segment: Segment) -> None:
    """Apply the missing migrations. `segment` turns text into full-text terms."""
    with translated(), closing(connect(path)) as connection:
        done = applied(connection)
        schema.check(connection, done)
        if done == 1:
            keep_copy(connection, Path(f"{path}.v2"))
        for number, file in enumerate(sorted(MIGRATIONS.glob("*.sql")), start=1):
            if number > done:
                apply(connection, number, file.read_text(encoding="utf-8"), segment)


def applied(connection: apsw.Connection) -> int:
    """The number of the last migration that this file has; 1 is a file of v2, which kept no record."""
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    known = len(list(MIGRATIONS.glob("*.sql")))
    if "migrations" in tables:
        version = int(one(connection, "SELECT max(version) FROM migrations"))
        if version > known:
            raise KBError(
                f"This database has schema {version}, made by a newer kb; this one knows {known}. Upgrade kb."
            )
        return version
    if not tables:
        return 0
    if {"documents", "chunks", "chunks_vec", "tags", "jobs"} <= tables:
        return 1
    raise KBError("This SQLite file was not made by kb. Choose another with KB_DATABASE_URL or KB_DATA_DIR.")


def one(connection: apsw.Connection, sql: str) -> Any:
    """The single value that a statement gives."""
    (row,) = connection.execute(sql).fetchall()
    return row[0]


def apply(connection: apsw.Connection, number: int, sql: str, segment: Segment) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        if number == 2:
            count_orphans(connection)
        connection.execute(
            "CREATE TABLE IF NOT EXISTS migrations (version INTEGER PRIMARY KEY, applied_at TEXT NOT NULL)"
        )
        stamped = checksums.parts(connection) if number > STAMPED else ()
        wrong = {table: checksums.differing(connection, table) for table in stamped}
        connection.execute(sql).fetchall()
        if number == 2:
            derive_v3(SQLiteTransaction(connection), segment)
            connection.execute(
                "INSERT OR IGNORE INTO migrations (version, applied_at) VALUES (1, :now)", {"now": now()}
            )
        if number == 3:
            derive_text_keys(SQLiteTransaction(connection))
        if number == LINKED:
            links.refresh_all(SQLiteTransaction(connection))
        if number >= STAMPED:
            checksums.stamp_all(connection, wrong)
        if number == STAMPED:
            checksums.stamp_vectors(connection)
        connection.execute(RECORD, {"version": number, "now": now()})
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def derive_text_keys(tx: SQLiteTransaction) -> None:
    """Give every chunk the key of its text, some at a time: their texts need not fit in memory."""
    last = 0
    while rows := tx.rows(TEXTS, {"last": last, "limit": TEXTS_AT_ONCE}):
        last = rows[-1]["id"]
        tx.run_many(KEY, [{"id": row["id"], "key": text_key(row["text"])} for row in rows])


def keep_copy(connection: apsw.Connection, target: Path) -> None:
    """Write a consistent copy beside the file, completely or not at all."""
    if target.exists():
        return
    temporary = Path(f"{target}.part")
    temporary.unlink(missing_ok=True)
    copy_into(connection, temporary)
    with temporary.open("rb") as file:
        os.fsync(file.fileno())
    temporary.rename(target)
    sync_folder(target.parent)
    log.info("kept a copy of the v2 database as %s", target.name)


def count_orphans(connection: apsw.Connection) -> None:
    for table, column, parent in (
        ("chunks", "document_id", "documents"),
        ("chunks_vec", "chunk_id", "chunks"),
        ("tags", "document_id", "documents"),
    ):
        sql = f"SELECT count(*) FROM {table} WHERE {column} NOT IN (SELECT id FROM {parent})"
        if lost := one(connection, sql):
            log.warning("dropping %d rows of %s that belong to nothing in %s", lost, table, parent)


def derive_v3(tx: SQLiteTransaction, segment: Segment) -> None:
    """Derive what v2 did not record: texts, offsets, full text, media types."""
    for document in tx.rows("SELECT id, title, doc_type, source_path, created_at FROM documents ORDER BY id"):
        doc_type = document["doc_type"] if document["doc_type"] in DOC_TYPES else "text"
        text = derive_chunks(tx, document["id"], document["title"], segment)
        name = None if doc_type == "note" else Path(document["source_path"] or document["title"]).name
        tx.run(
            DERIVE,
            {
                "id": document["id"],
                "doc_type": doc_type,
                "name": name,
                "media_type": V2_MEDIA_TYPES.get(doc_type, "application/octet-stream"),
                "size": len(text.encode()),
            },
        )
        if doc_type == "note":
            tx.run(FIRST_VERSION, {"id": document["id"], "text": text, "created_at": document["created_at"]})
        else:
            tx.run("INSERT INTO texts (document_id, text) VALUES (:id, :text)", {"id": document["id"], "text": text})


def derive_chunks(tx: SQLiteTransaction, document_id: int, title: str, segment: Segment) -> str:
    """Index the chunks of one document anew; its text is the chunks joined."""
    pieces: list[str] = []
    at = 0
    title_terms = segment(title)
    for chunk in tx.rows(
        "SELECT id, text FROM chunks WHERE document_id = :id ORDER BY chunk_index", {"id": document_id}
    ):
        body = segment(chunk["text"])
        tx.fulltext.add(chunk["id"], " ".join(title_terms), "", " ".join(body))
        tx.run(
            "UPDATE chunks SET start_at = :start, end_at = :end, terms = :terms WHERE id = :id",
            {
                "id": chunk["id"],
                "start": at,
                "end": at + len(chunk["text"]),
                "terms": len(title_terms) + len(body),
            },
        )
        pieces.append(chunk["text"])
        at += len(chunk["text"]) + len("\n\n")
    return "\n\n".join(pieces)
