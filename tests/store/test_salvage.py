"""A damaged file is made whole from what can be read of it, whatever page it lost, or it stays as it is."""

import shutil
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest

from kb.core.values import Anchor, LineBoxes
from kb.index import terms
from kb.store import chunks, documents, health, jobs, line_boxes, notes
from kb.store.backend import Transaction
from kb.store.chunks import NewChunk
from kb.store.documents import Content
from kb.store.sqlite.database import SQLiteDatabase
from kb.store.sqlite.migrate import migrate
from kb.store.sqlite.salvage import LONGEST_GAP, SQLiteMender, TableReader, plain

pytestmark = pytest.mark.slow

PAGE = 4096  # bytes
DOCUMENTS = 60
TRUTH = {"documents", "texts", "note_versions", "tags"}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with something in every table."""
    path = tmp_path_factory.mktemp("whole") / "kb.db"
    migrate(path, terms.index_terms)
    database = SQLiteDatabase(path)
    for number in range(DOCUMENTS):
        with database.write() as tx:
            add(tx, number)
    with database.write() as tx:
        tx.run("INSERT INTO meta (key, value) VALUES ('index.model', 'this one')")
        chunks.remove_other_revisions(tx, DOCUMENTS, keep=0)
        documents.delete(tx, DOCUMENTS)  # its id is never given again
    database.close()
    return path


def add(tx: Transaction, number: int) -> None:
    id_ = documents.reserve(tx)
    revision = chunks.next_revision(tx, id_)
    vector = np.zeros(384, np.float32)
    vector[number] = 1
    words = [f"word{number}", "common"]
    passages = [
        NewChunk(
            index=index,
            text=f"Passage {index} of document {number}. " * 20,
            anchor=Anchor(start=0, end=10),
            title_terms=[],
            heading_terms=[],
            body_terms=words * 20,
            vector=vector,
        )
        for index in range(3)
    ]
    chunks.add(tx, id_, revision, passages)
    is_note = number % 2 == 0
    content = Content(
        title=f"Document {number}",
        titled=True,
        filename=None if is_note else f"{number}.txt",
        source_path=f"/somewhere/{number}",
        doc_type="note" if is_note else "text",
        media_type="text/plain",
        content_hash=f"{number:064x}",
        size_bytes=1,
        metadata={"pages": "x" * 200},
        processing_method="text_extraction",
        ledger=[],
    )
    documents.publish(tx, id_, content, revision, len(passages))
    documents.set_tags(tx, id_, [f"tag{n}" for n in range(10)])
    if is_note:
        notes.add_version(tx, id_, f"The text of note {number}. " * 20)
    else:
        documents.set_text(tx, id_, f"The text of file {number}. " * 400)
        lines = [(at, at + 20, 500, 10 * at, 5000, 10 * at + 9) for at in range(0, 2000, 20)]
        line_boxes.replace(tx, id_, [(1, 0, LineBoxes(612, 792, lines))])
    jobs.add(tx, jobs.NewJob(id=f"job {number}", kind="file", payload={"long": "x" * 300}))


def pages_of(path: Path) -> list[tuple[str, str, int]]:
    """Of each table and index, one page of each kind: name, kind, number."""
    connection = apsw.Connection(str(path))
    found: list[Any] = connection.execute(
        "SELECT name, pagetype, pageno FROM dbstat WHERE name <> 'sqlite_schema' ORDER BY name, pageno"
    ).fetchall()
    connection.close()
    by_kind: dict[tuple[str, str], list[int]] = {}
    for name, kind, number in found:
        by_kind.setdefault((name, kind), []).append(number)
    return [(name, kind, numbers[len(numbers) // 2]) for (name, kind), numbers in by_kind.items()]


def contents(path: Path) -> dict[str, list[Any]]:
    connection = plain(path)
    held: dict[str, list[Any]] = {
        table: connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall() for table in TRUTH
    }
    connection.close()
    return held


@pytest.mark.parametrize("content", [bytes(PAGE), bytes(range(256)) * 16], ids=["zeros", "rubbish"])
def test_whichever_page_is_lost_all_is_mended_or_nothing_changed(whole: Path, tmp_path: Path, content: bytes) -> None:
    before = contents(whole)
    for name, kind, number in pages_of(whole):
        path = tmp_path / f"{number}.db"
        shutil.copy(whole, path)
        with path.open("r+b") as file:
            file.seek((number - 1) * PAGE)
            file.write(content)
        damaged_bytes = path.read_bytes()
        database = SQLiteDatabase(path)
        mender = SQLiteMender(database, terms.index_terms)
        survey = mender.survey()
        salvage = mender.mend(tmp_path / "room")
        said = f"{kind} page {number} of {name}: {salvage}"
        assert salvage == survey, said
        if salvage.lost:
            assert set(salvage.lost) == {name}, said
            assert name in TRUTH, said
            assert path.read_bytes() == damaged_bytes, said
            assert database.damage(), said
        else:
            assert (database.damage(), database.fulltext_damage()) == ([], []), said
            with database.read() as tx:
                assert tx.lost_rows() == {}, said
                assert (tx.fulltext.unsound(), tx.vectors.unsound()) == ([], []), said
                if kind != "overflow":  # a lost end of a text is no damage to SQLite, but its checksum tells
                    assert contents(path) == before, said
                    assert tx.changed_rows() == {}, said
            with database.write() as tx:
                if name != "sqlite_sequence":
                    assert documents.reserve(tx) == DOCUMENTS + 1, said
                    assert tx.ids_given("chunks") == 3 * DOCUMENTS, said
        database.close()
        path.unlink()


def test_what_is_whole_keeps_everything(whole: Path, tmp_path: Path) -> None:
    path = tmp_path / "kb.db"
    shutil.copy(whole, path)
    database = SQLiteDatabase(path)
    with database.read() as tx:
        assert tx.value("SELECT count(*) FROM chunks") == 3 * (DOCUMENTS - 1)  # a reader with a moment of its own
        salvage = SQLiteMender(database, terms.index_terms).mend(tmp_path / "room")
        assert tx.value("SELECT count(*) FROM chunks") == 3 * (DOCUMENTS - 1)
    assert (salvage.lost, salvage.left_out) == ({}, {})
    assert (database.changes, database.replacements) == (1, 1)
    assert contents(path) == contents(whole)
    with database.read() as tx:
        assert health.vector_coverage(tx) == health.fulltext_coverage(tx) == health.Coverage([], [])
        assert tx.fulltext.postings(["word7"])[0].chunk_ids.tolist() == [22, 23, 24]
    database.close()


def test_rows_behind_a_gap_are_read(whole: Path, tmp_path: Path) -> None:
    path = tmp_path / "kb.db"
    shutil.copy(whole, path)
    connection = plain(path)
    leaves: list[Any] = connection.execute(
        "SELECT pageno FROM dbstat WHERE name = 'documents' AND pagetype = 'leaf' ORDER BY pageno"
    ).fetchall()
    connection.close()
    with path.open("r+b") as file:
        file.seek((leaves[len(leaves) // 2][0] - 1) * PAGE)
        file.write(bytes(PAGE))
    connection = plain(path)
    reader = TableReader(connection, "documents", ("id",))
    read = [id_ for _, id_ in reader.rows()]
    connection.close()
    (gap,) = reader.gaps
    assert gap.last is not None
    assert gap.last - gap.first < LONGEST_GAP
    assert read == [id_ for id_ in range(1, DOCUMENTS) if not gap.first <= id_ <= gap.last]
