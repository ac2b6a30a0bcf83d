"""Publishing on a real database: what replaces what, and what is left alone."""

from pathlib import Path

import numpy as np
import pytest

from kb import terms
from kb.ingest.publish import Publisher
from kb.search.live import LiveChunks
from kb.store import chunks, documents
from kb.store.sqlite.database import SQLiteDatabase
from kb.store.sqlite.migrate import migrate
from shelf import chunk, content


@pytest.fixture
def database(tmp_path: Path) -> SQLiteDatabase:
    migrate(tmp_path / "kb.db", terms.index_terms)
    return SQLiteDatabase(tmp_path / "kb.db")


def test_who_publishes_first_leaves_the_passages_of_those_who_are_still_writing(database: SQLiteDatabase) -> None:
    live = LiveChunks(384)
    live.load(database)
    publisher = Publisher(live)
    with database.write() as tx:
        document_id = documents.reserve(tx)
        revisions = [chunks.next_revision(tx, document_id) for _ in range(3)]
        written = {
            revision: list(zip(chunks.add(tx, document_id, revision, [new]), [new], strict=True))
            for revision in revisions
            for new in [chunk(0, f"revision {revision}", np.ones(384, np.float32))]
        }
    for revision in (revisions[1], revisions[0], revisions[2]):
        with database.write() as tx:
            publisher.publish(tx, document_id, content(str(revision)), revision, written[revision])
    with database.read() as tx:
        assert tx.column("SELECT id FROM chunks") == [written[revisions[2]][0][0]]
        assert tx.fulltext.ids().tolist() == tx.vectors.ids().tolist() == tx.column("SELECT id FROM chunks")
    assert live.snapshot().count == 1
