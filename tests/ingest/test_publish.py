"""Publishing on a real database: what replaces what, and what is left alone."""

from pathlib import Path

import numpy as np
import pytest

from kb.index import terms
from kb.index.chunk_index import ChunkIndex
from kb.ingest.publish import Publisher
from kb.ingest.written import Written
from kb.store import chunks, documents
from kb.store.sqlite.database import SQLiteDatabase
from kb.store.sqlite.migrate import migrate
from shelf import chunk, content


@pytest.fixture
def database(tmp_path: Path) -> SQLiteDatabase:
    migrate(tmp_path / "kb.db", terms.index_terms)
    return SQLiteDatabase(tmp_path / "kb.db")


def test_who_publishes_first_leaves_the_passages_of_those_who_are_still_writing(database: SQLiteDatabase) -> None:
    live = ChunkIndex(384)
    live.load(database)
    publisher = Publisher(live)
    with database.write() as tx:
        document_id = documents.reserve(tx)
        revisions = [chunks.next_revision(tx, document_id) for _ in range(3)]
        written = {revision: Written() for revision in revisions}
        for revision in revisions:
            new = [chunk(0, f"revision {revision}", np.ones(384, np.float32))]
            written[revision].add(chunks.add(tx, document_id, revision, new), new)
    for revision in (revisions[1], revisions[0], revisions[2]):
        with database.write() as tx:
            publisher.publish(tx, document_id, content(str(revision)), revision, written[revision])
    with database.read() as tx:
        assert tx.column("SELECT id FROM chunks") == written[revisions[2]].ids.tolist()
        assert tx.fulltext.ids().tolist() == tx.vectors.ids().tolist() == tx.column("SELECT id FROM chunks")
    assert live.snapshot().count == 1


@pytest.mark.parametrize("kept", [None, 100, 4], ids=["all", "enough", "too few"])
def test_the_index_gets_the_vectors_whether_they_were_kept_at_hand_or_not(
    database: SQLiteDatabase, kept: int | None
) -> None:
    live = ChunkIndex(384)
    live.load(database)
    vectors = np.random.default_rng(1).normal(size=(10, 384)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    written = Written(kept)
    with database.write() as tx:
        document_id = documents.reserve(tx)
        revision = chunks.next_revision(tx, document_id)
        for first in range(0, 10, 3):
            new = [chunk(number, f"part {number}", vectors[number]) for number in range(first, min(first + 3, 10))]
            written.add(chunks.add(tx, document_id, revision, new), new)
    assert bool(written.vectors) == (kept != 4)
    with database.write() as tx:
        Publisher(live).publish(tx, document_id, content("a"), revision, written)
    assert np.array_equal(live.snapshot().vectors, vectors)
    assert live.snapshot().chunk_ids.tolist() == written.ids.tolist()
