"""Every row is proven to be what was written, whatever wrote it; what is not is named."""

from collections.abc import Iterator
from pathlib import Path

import apsw
import numpy as np
import pytest

from kb.core.values import Anchor, LineBoxes
from kb.index import terms
from kb.store import chunks, documents, line_boxes, notes
from kb.store.chunks import NewChunk
from kb.store.documents import Content
from kb.store.sqlite import checksums
from kb.store.sqlite.connection import connect
from kb.store.sqlite.database import SQLiteDatabase
from kb.store.sqlite.migrate import STAMPED, migrate

CONTENT = Content(
    title="Boiler",
    titled=True,
    filename=None,
    source_path=None,
    doc_type="note",
    media_type="text/markdown",
    content_hash="a" * 64,
    size_bytes=10,
    metadata={},
    processing_method="text_extraction",
    ledger=[],
)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SQLiteDatabase]:
    migrate(tmp_path / "kb.db", terms.index_terms)
    database = SQLiteDatabase(tmp_path / "kb.db")
    yield database
    database.close()


# What the migrations from that of the checksums on made.
UNDONE = """
DROP TABLE checksums;
DROP TABLE line_boxes;
DROP TABLE folder_files;
DROP TABLE folders;
DROP TABLE links;
DROP TABLE names;
DROP VIEW published;
DROP VIEW stored;
CREATE VIEW published AS SELECT * FROM documents WHERE revision > 0;
DROP INDEX documents_edited;
DROP INDEX jobs_document;
DROP INDEX documents_deleted_at;
ALTER TABLE documents DROP COLUMN deleted_at;
DROP INDEX documents_parent;
ALTER TABLE documents DROP COLUMN parent_id;
ALTER TABLE documents DROP COLUMN member;
ALTER TABLE documents DROP COLUMN brought;
ALTER TABLE documents DROP COLUMN given;
ALTER TABLE jobs DROP COLUMN outcome;
ALTER TABLE chunks DROP COLUMN place;
DROP INDEX chunks_without_static_vector;
ALTER TABLE chunks DROP COLUMN static_vector;
"""


def written(database: SQLiteDatabase) -> tuple[int, int]:
    """A document with a passage, a text, a version, tags and lines; the ids of both."""
    chunk = NewChunk(
        index=0,
        text="The boiler was serviced",
        anchor=Anchor(start=0, end=23),
        title_terms=["boiler"],
        heading_terms=[],
        body_terms=["boiler", "servic"],
        vector=np.full(384, 0.05, np.float32),
    )
    with database.write() as tx:
        id_ = documents.reserve(tx)
        revision = chunks.next_revision(tx, id_)
        (chunk_id,) = chunks.add(tx, id_, revision, [chunk])
        documents.publish(tx, id_, CONTENT, revision, 1)
        documents.set_tags(tx, id_, ["home", "heating"])
        documents.set_text(tx, id_, "The boiler was serviced")
        notes.add_version(tx, id_, "The boiler was serviced")
        line_boxes.replace(tx, id_, [(1, 0, LineBoxes(612, 792, [(0, 23, 100, 100, 900, 200)]))])
    return id_, chunk_id


def damaged(database: SQLiteDatabase) -> dict[str, list[int]]:
    with database.read() as tx:
        found = tx.changed_rows() | {"lost " + table: ids for table, ids in tx.lost_rows().items()}
        found |= {"fulltext": tx.fulltext.unsound(), "vectors": tx.vectors.unsound()}
    return {name: ids for name, ids in found.items() if ids}


def by_another(database: SQLiteDatabase, sql: str, *params: object) -> None:
    """As a disk or another program would do it."""
    connection = apsw.Connection(str(database.path))
    connection.execute(sql, params or None)
    connection.close()


def test_whatever_is_written_is_as_it_was_written(database: SQLiteDatabase) -> None:
    id_, chunk_id = written(database)
    other, _ = written(database)
    assert damaged(database) == {}
    with database.write() as tx:
        documents.touch(tx, id_)
        documents.set_tags(tx, id_, ["garden"])
        documents.set_text(tx, id_, "Another text")
        tx.vectors.remove([chunk_id])
        tx.vectors.add(chunk_id, np.full(384, 0.01, np.float32))
    assert damaged(database) == {}
    with database.write() as tx:
        chunks.remove_other_revisions(tx, other, 0)
        documents.delete(tx, other)
    assert damaged(database) == {}
    with database.write() as tx:
        chunks.clear(tx)
        documents.clear(tx)
    database.vacuum()
    assert damaged(database) == {}
    with database.read() as tx:
        assert tx.value("SELECT count(*) FROM checksums") == 0


def test_nothing_of_a_write_that_failed_is_stamped(database: SQLiteDatabase) -> None:
    id_, _ = written(database)
    with pytest.raises(RuntimeError), database.write() as tx:
        documents.touch(tx, id_)
        raise RuntimeError
    assert damaged(database) == {}
    with database.write() as tx:
        documents.touch(tx, id_)
    assert damaged(database) == {}


@pytest.mark.parametrize(
    ("sql", "named"),
    [
        ("UPDATE documents SET title = 'Boilers'", {"documents": [1]}),
        ("UPDATE documents SET metadata = CAST(x'7bff7d' AS TEXT)", {"documents": [1]}),
        ("UPDATE documents SET size_bytes = 'ten'", {"documents": [1]}),
        ("UPDATE texts SET text = 'The boiler was serviceD'", {"texts": [1]}),
        ("UPDATE texts SET text = CAST(text AS BLOB)", {"texts": [1]}),
        ("UPDATE note_versions SET created_at = ''", {"note_versions": [1]}),
        ("UPDATE line_boxes SET lines = '[]'", {"line_boxes": [1]}),
        ("UPDATE tags SET tag = 'hone' WHERE tag = 'home'", {"tags": [1]}),
        ("DELETE FROM tags WHERE tag = 'home'", {"lost tags": [1]}),
        ("INSERT INTO tags (document_id, tag) VALUES (1, 'new')", {"tags": [3]}),
        ("UPDATE chunks SET start_at = 1", {"chunks": [1]}),
        ("UPDATE chunks_fts_content SET c2 = 'boiler servid'", {"fulltext": [1]}),
        ("DELETE FROM checksums WHERE part = 1", {"documents": [1]}),
    ],
)
def test_a_row_that_was_changed_behind_the_engines_back_is_named(
    database: SQLiteDatabase, sql: str, named: dict[str, list[int]]
) -> None:
    written(database)
    by_another(database, sql)
    assert damaged(database) == named


@pytest.mark.parametrize("bits", [b"\x01\x00\x00\x00", b"\x00\x00\x00\x80", b"\x00\x00\xc0\x7f", b"\x00\x00\x80\x7f"])
def test_a_vector_that_is_not_as_it_was_is_named_and_not_loaded(database: SQLiteDatabase, bits: bytes) -> None:
    _, chunk_id = written(database)
    _, sound = written(database)
    connection = apsw.Connection(str(database.path))
    (blob,) = connection.execute("SELECT vectors FROM chunks_vec_vector_chunks00").fetchone() or (b"",)
    assert isinstance(blob, bytes)
    changed = bytes(a ^ b for a, b in zip(blob[:4], bits, strict=True)) if bits[3] != 0x7F else bits
    connection.execute("UPDATE chunks_vec_vector_chunks00 SET vectors = ?", (changed + blob[4:],))
    connection.close()
    assert damaged(database) == {"vectors": [chunk_id]}
    into = np.zeros((2, 384), np.float32)
    with database.read() as tx:
        tx.vectors.load(np.array([chunk_id, sound]), into)
    assert not into[0].any()
    assert into[1].all()


def test_a_vector_that_was_never_finite_is_named_too(database: SQLiteDatabase) -> None:
    _, chunk_id = written(database)
    with database.write() as tx:
        tx.vectors.remove([chunk_id])
        tx.vectors.add(chunk_id, np.full(384, np.nan, np.float32))
    assert damaged(database) == {"vectors": [chunk_id]}


def test_changing_one_column_does_not_make_another_right(database: SQLiteDatabase) -> None:
    id_, _ = written(database)
    by_another(database, "UPDATE documents SET title = 'Boilers'")
    with database.write() as tx:
        documents.touch(tx, id_)
    assert damaged(database) == {"documents": [id_]}


def test_a_file_without_checksums_gets_them_at_the_next_start(tmp_path: Path) -> None:
    path = tmp_path / "kb.db"
    migrate(path, terms.index_terms)
    database = SQLiteDatabase(path)
    written(database)
    database.close()
    connection = connect(path)
    connection.execute(UNDONE).fetchall()
    connection.execute("DELETE FROM migrations WHERE version >= ?", (STAMPED,))
    connection.close()
    migrate(path, terms.index_terms)
    database = SQLiteDatabase(path)
    assert damaged(database) == {}
    with database.read() as tx:
        assert set(tx.column("SELECT part FROM checksums")) == {1, 2, 3, 4, 5, 6, checksums.VECTORS}
    database.close()


def test_a_later_migration_stamps_anew_but_hides_nothing(database: SQLiteDatabase) -> None:
    id_, _ = written(database)
    other, _ = written(database)
    by_another(database, "UPDATE documents SET title = 'Boilers' WHERE id = 1")
    with database.write() as tx:
        wrong = tx.changed_rows()
        tx.run("ALTER TABLE documents ADD COLUMN colour TEXT NOT NULL DEFAULT 'red'")
    assert damaged(database) == {"documents": [id_, other]}
    connection = connect(database.path)
    checksums.stamp_all(connection, wrong)
    connection.close()
    assert damaged(database) == {"documents": [id_]}
