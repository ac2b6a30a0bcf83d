"""A file of v2 opens, migrates by itself and loses nothing."""

import json
import re
from pathlib import Path

import apsw
import numpy as np
import pytest

from kb.core.errors import Conflict, KBError
from kb.index import terms
from kb.store import chunks, documents, jobs, notes
from kb.store.sqlite.connection import connect
from kb.store.sqlite.database import SQLiteDatabase
from kb.store.sqlite.migrate import migrate
from kb.store.sqlite.schema import MIGRATIONS

FIRST = (MIGRATIONS / "0001_v2.sql").read_text()


@pytest.fixture
def v2(tmp_path: Path) -> Path:
    """A v2 file with a note, a PDF of two pages, orphans of each kind, and jobs in every state."""
    path = tmp_path / "kb.db"
    connection = connect(path)
    connection.pragma("foreign_keys", "OFF")
    connection.execute(FIRST).fetchall()
    connection.execute(
        """
        INSERT INTO documents (id, title, doc_type, source_path, content_hash, created_at) VALUES
            (3, 'A note', 'note', NULL, 'aa', '2025-01-02 03:04:05'),
            (7, 'Report', 'pdf', '/home/ann/report.pdf', 'bb', '2025-02-03 04:05:06');
        INSERT INTO chunks (id, document_id, chunk_index, text, page) VALUES
            (11, 3, 0, 'The boiler was serviced', NULL), (12, 3, 1, 'in March by Anna', NULL),
            (21, 7, 0, 'Pension revaluation', 1), (22, 7, 1, 'Inflation', 2), (99, 1000, 0, 'orphan', NULL);
        INSERT INTO tags (document_id, tag) VALUES (3, 'home'), (7, 'finance'), (1000, 'orphan');
        INSERT INTO jobs (id, status, filename, document_id, error, created_at, finished_at) VALUES
            ('j1', 'completed', 'report.pdf', 7, NULL, '2025-02-03 04:05:00', '2025-02-03 04:05:06'),
            ('j2', 'failed', 'bad.pdf', NULL, 'broken', '2025-02-03 04:06:00', '2025-02-03 04:06:01'),
            ('j3', 'running', 'half.pdf', NULL, NULL, '2025-02-03 04:07:00', NULL);
        """
    ).fetchall()
    for number, chunk_id in enumerate((11, 12, 21, 22, 98, 99)):
        vector = np.zeros(384, np.float32)
        vector[number] = 1
        connection.execute("INSERT INTO chunks_vec (chunk_id, embedding) VALUES (?, ?)", (chunk_id, vector.tobytes()))
    connection.close()
    return path


def opened(path: Path) -> SQLiteDatabase:
    migrate(path, terms.index_terms)
    return SQLiteDatabase(path)


def test_documents_keep_their_ids_times_and_tags(v2: Path) -> None:
    with opened(v2).read() as tx:
        note, report = documents.get(tx, 3), documents.get(tx, 7)
    assert (note.doc_type, note.created_at, note.updated_at, note.tags) == (
        "note",
        "2025-01-02T03:04:05.000Z",
        None,
        ["home"],
    )
    assert (report.filename, report.source_path, report.media_type, report.tags) == (
        "report.pdf",
        "/home/ann/report.pdf",
        "application/pdf",
        ["finance"],
    )
    assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", note.uid)
    assert note.uid != report.uid


def test_chunks_get_the_key_of_their_text(v2: Path) -> None:
    with opened(v2).read() as tx:
        rows = tx.rows("SELECT text, text_key FROM chunks")
    assert len(rows) == 4
    assert all(row["text_key"] == chunks.text_key(row["text"]) for row in rows)
    assert chunks.text_key(" The boiler\nwas  serviced") == chunks.text_key("The boiler was serviced")


def test_a_notes_text_is_its_chunks_joined_and_offsets_point_into_it(v2: Path) -> None:
    with opened(v2).read() as tx:
        text = documents.text(tx, 3)
        assert text == "The boiler was serviced\n\nin March by Anna"
        assert notes.versions(tx, 3)[0].text == text
        for chunk in chunks.of_document(tx, 3, 0, None):
            assert text[chunk.anchor.start : chunk.anchor.end] == chunk.text


def test_pages_stay_anchors(v2: Path) -> None:
    with opened(v2).read() as tx:
        assert [chunk.anchor.page for chunk in chunks.of_document(tx, 7, 0, None)] == [1, 2]


def test_full_text_and_vectors_cover_exactly_the_chunks(v2: Path) -> None:
    with opened(v2).read() as tx:
        ids = tx.column("SELECT id FROM chunks ORDER BY id")
        assert ids == [11, 12, 21, 22]
        assert tx.column("SELECT rowid FROM chunks_fts ORDER BY rowid") == ids
        assert sorted(tx.vectors.ids().tolist()) == ids
        assert tx.fulltext.postings(["pension"])[0].chunk_ids.tolist() == [21]
        assert tx.fulltext.postings(list(terms.query_terms("serviced")))[0].chunk_ids.tolist() == [11]


def test_unfinished_jobs_end_as_failed_with_a_reason(v2: Path) -> None:
    with opened(v2).read() as tx:
        found = {job.id: job for job in jobs.page(tx, None, 10, 0)[0]}
    assert found["j1"].status == "completed"
    assert found["j2"].error is not None
    assert found["j2"].error.message == "broken"
    assert found["j3"].status == "failed"
    assert found["j3"].error is not None
    assert "add it again" in found["j3"].error.message


TRIGGER = "CREATE TRIGGER thief AFTER INSERT ON chunks BEGIN DELETE FROM tags; END"


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        (TRIGGER, "trigger named 'thief'"),
        ("CREATE VIEW spy AS SELECT * FROM documents", "view named 'spy'"),
        ("CREATE TABLE loot (text)", "table named 'loot'"),
        ("CREATE INDEX slow ON tags (upper(tag))", "index named 'slow'"),
        ("DROP TABLE tags; CREATE TABLE tags (document_id INTEGER, tag)", "'tags' in the database file is not"),
        ("DROP TRIGGER chunks_ad", "no trigger named 'chunks_ad'"),
        (f"DROP TRIGGER chunks_ai; {TRIGGER.replace('thief', 'chunks_ai')}", "trigger 'chunks_ai' in the database"),
    ],
)
def test_a_file_with_anything_that_kb_did_not_make_is_refused_by_name(v2: Path, statement: str, named: str) -> None:
    connection = connect(v2)
    connection.execute(statement).fetchall()
    connection.close()
    before = v2.read_bytes()
    with pytest.raises(Conflict, match=named):
        opened(v2)
    assert v2.read_bytes() == before


def test_a_trigger_in_a_present_file_is_refused_too(v2: Path) -> None:
    opened(v2).close()
    connection = connect(v2)
    connection.execute(TRIGGER)
    connection.close()
    with pytest.raises(Conflict, match="trigger named 'thief'"):
        opened(v2)


def test_orphans_are_counted_in_the_log(v2: Path, caplog: pytest.LogCaptureFixture) -> None:
    opened(v2)
    dropped = [record.getMessage() for record in caplog.records if "dropping" in record.getMessage()]
    assert [line.split(" that ")[0] for line in dropped] == [
        "dropping 1 rows of chunks",
        "dropping 1 rows of chunks_vec",
        "dropping 1 rows of tags",
    ]


def test_a_copy_of_the_v2_file_is_kept(v2: Path) -> None:
    opened(v2)
    copy = connect(Path(f"{v2}.v2"))
    assert copy.execute("SELECT title FROM documents ORDER BY id").fetchall() == [("A note",), ("Report",)]


def test_a_crash_in_the_middle_changes_nothing(v2: Path) -> None:
    def crash(_: str) -> list[str]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        migrate(v2, crash)
    plain = apsw.Connection(str(v2))
    tables = {name for (name,) in plain.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert "migrations" not in tables
    assert plain.execute("SELECT count(*) FROM chunks").fetchone() == (5,)
    plain.close()
    with opened(v2).read() as tx:
        assert documents.counts(tx).total == 2


def test_new_ids_follow_the_old_ones(v2: Path) -> None:
    with opened(v2).write() as tx:
        assert documents.reserve(tx) == 8
        assert tx.value("SELECT seq FROM sqlite_sequence WHERE name = 'chunks'") == 99


def test_migrating_twice_does_nothing(v2: Path) -> None:
    before = json.dumps(schema(opened(v2)))
    assert json.dumps(schema(opened(v2))) == before


def test_a_new_file_has_the_same_schema_as_a_migrated_one(v2: Path, tmp_path: Path) -> None:
    assert schema(opened(v2)) == schema(opened(tmp_path / "new.db"))


def test_a_file_of_a_newer_kb_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path / "kb.db").write() as tx:
        tx.run("INSERT INTO migrations (version, applied_at) VALUES (99, 'x')")
    with pytest.raises(KBError, match="made by a newer kb"):
        migrate(tmp_path / "kb.db", terms.index_terms)


def test_terms_hold_no_character_that_full_text_would_split_at(tmp_path: Path) -> None:
    declared = "".join(sql for _, sql in schema(opened(tmp_path / "kb.db")) if "fts5" in (sql or ""))
    assert f"tokenchars '{terms.TOKENCHARS}'" in declared


def schema(database: SQLiteDatabase) -> list[tuple[str, str]]:
    with database.read() as tx:
        return [(row["name"], row["sql"]) for row in tx.rows("SELECT name, sql FROM sqlite_master ORDER BY name")]


AT_V3 = """
INSERT INTO documents (id, title, doc_type, content_hash, created_at, version, revision, accepted, source_path)
VALUES (1, 'Only added', 'note', 'a', '', 1, 1, 1, '/a'), (2, 'Added twice', 'note', 'b', '', 2, 1, 2, '/b'),
       (3, 'Edited', 'note', 'c', '', 3, 1, 3, '/c'), (4, 'Its job is gone', 'note', 'd', '', 2, 1, 99, '/d'),
       (5, 'A file', 'pdf', 'e', '', 2, 1, 5, '/e');
UPDATE documents SET metadata = '{"by": "Ann"}' WHERE id = 1;
INSERT INTO note_versions (document_id, version, text, created_at)
VALUES (1, 1, 'a', '2026-01-01T10:00:00.000Z'),
       (2, 1, 'b1', '2026-01-01T10:00:00.000Z'), (2, 2, 'b2', '2026-01-02T10:00:00.000Z'),
       (3, 1, 'c1', '2026-01-01T10:00:00.000Z'), (3, 2, 'c2', '2026-01-02T10:00:00.000Z'),
       (3, 3, 'c3', '2026-01-03T10:00:00.000Z'),
       (4, 1, 'd1', '2026-01-01T10:00:00.000Z'), (4, 2, 'd2', '2026-01-02T10:00:00.000Z');
INSERT INTO jobs (seq, id, kind, status, created_at, finished_at)
VALUES (1, 'j1', 'note', 'completed', '', '2026-01-01T10:00:00.002Z'),
       (2, 'j2', 'note', 'completed', '', '2026-01-02T10:00:00.002Z'),
       (3, 'j3', 'note', 'completed', '', '2026-01-02T10:00:00.002Z');
"""


def test_which_version_a_path_brought_is_told_from_its_job(tmp_path: Path) -> None:
    path = tmp_path / "kb.db"
    connection = connect(path)
    before = [file for file in sorted(MIGRATIONS.glob("*.sql")) if file.name < "0005"]
    for file in before:
        connection.execute(file.read_text()).fetchall()
    connection.execute("CREATE TABLE migrations (version INTEGER PRIMARY KEY, applied_at TEXT NOT NULL)")
    connection.execute("INSERT INTO migrations (version, applied_at) VALUES (?, '')", (len(before),))
    connection.execute(AT_V3).fetchall()
    connection.close()
    with opened(path).read() as tx:
        rows = tx.rows("SELECT id, brought, given FROM published ORDER BY id")
    # One that may have been edited counts as edited: 0 is no version.
    assert [(row["id"], row["brought"]) for row in rows] == [(1, 1), (2, 2), (3, 2), (4, 0), (5, 0)]
    assert rows[0]["given"] == '{"by": "Ann"}'
