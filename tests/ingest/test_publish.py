"""Publishing on a real database: what replaces what, and what is left alone."""

from pathlib import Path

import numpy as np
import pytest

from kb.core.errors import Unavailable
from kb.index import terms
from kb.index.chunk_index import ChunkIndex
from kb.ingest.publish import ATTEMPTS, MovedError, NewRevision, Publisher, attempted
from kb.store import documents
from kb.store.sqlite.database import SQLiteDatabase
from kb.store.sqlite.migrate import migrate
from shelf import chunk, content


@pytest.fixture
def database(tmp_path: Path) -> SQLiteDatabase:
    migrate(tmp_path / "kb.db", terms.index_terms)
    return SQLiteDatabase(tmp_path / "kb.db")


@pytest.fixture
def live(database: SQLiteDatabase) -> ChunkIndex:
    index = ChunkIndex(384)
    index.load(database)
    return index


@pytest.fixture
def publisher(database: SQLiteDatabase, live: ChunkIndex) -> Publisher:
    return Publisher(database, live)


def reserved(database: SQLiteDatabase) -> int:
    with database.write() as tx:
        return documents.reserve(tx)


def chunk_ids(database: SQLiteDatabase) -> list[int]:
    """Of all chunks; full text and vectors have the same."""
    with database.read() as tx:
        ids: list[int] = tx.column("SELECT id FROM chunks ORDER BY id")
        assert sorted(tx.fulltext.ids()) == sorted(tx.vectors.ids()) == ids
    return ids


def test_who_publishes_first_leaves_the_passages_of_those_who_are_still_writing(
    database: SQLiteDatabase, live: ChunkIndex, publisher: Publisher
) -> None:
    document_id = reserved(database)
    revisions = [NewRevision(document_id) for _ in range(3)]
    for number, revision in enumerate(revisions):
        publisher.write(revision, [chunk(0, f"revision {number}", np.ones(384, np.float32))])
    for number in (1, 0, 2):
        with database.write() as tx:
            publisher.publish(tx, revisions[number], content(str(number)))
    assert chunk_ids(database) == revisions[2].ids.tolist()
    assert live.snapshot().count == 1


@pytest.mark.parametrize("kept", [None, 100, 4], ids=["all", "enough", "too few"])
def test_the_index_gets_the_vectors_whether_they_were_kept_at_hand_or_not(
    database: SQLiteDatabase, live: ChunkIndex, publisher: Publisher, kept: int | None
) -> None:
    vectors = np.random.default_rng(1).normal(size=(10, 384)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    revision = NewRevision(reserved(database), max_vectors=kept)
    for first in range(0, 10, 3):
        new = [chunk(number, f"part {number}", vectors[number]) for number in range(first, min(first + 3, 10))]
        publisher.write(revision, new)
    assert bool(revision.vectors) == (kept != 4)
    with database.write() as tx:
        publisher.publish(tx, revision, content("a"))
    assert np.array_equal(live.snapshot().vectors, vectors)
    assert live.snapshot().chunk_ids.tolist() == revision.ids.tolist()


def test_nothing_is_left_of_a_revision_that_is_not_published(
    database: SQLiteDatabase, publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kb.ingest.publish.WITHDRAWN_AT_ONCE", 2)
    new = [chunk(number, f"part {number}", np.ones(384, np.float32)) for number in range(5)]
    revision = NewRevision(reserved(database))
    with pytest.raises(RuntimeError), publisher.withdrawing(revision):
        publisher.write(revision, new)
        raise RuntimeError
    assert chunk_ids(database) == []
    with database.read() as tx:
        assert not documents.exists(tx, revision.document_id)
    with pytest.raises(MovedError):
        publisher.write(NewRevision(revision.document_id), new)


def test_a_swap_leaves_alone_what_has_changed_since(
    database: SQLiteDatabase, live: ChunkIndex, publisher: Publisher
) -> None:
    old, changed = NewRevision(reserved(database)), NewRevision(reserved(database))
    for revision in (old, changed):
        publisher.write(revision, [chunk(0, "as it was", np.ones(384, np.float32))])
        with database.write() as tx:
            publisher.publish(tx, revision, content("a"))
    recut = [NewRevision(one.document_id, replaces=one.number) for one in (old, changed)]
    for revision in recut:
        publisher.write(revision, [chunk(number, "cut anew", np.ones(384, np.float32)) for number in range(2)])
    newest = NewRevision(changed.document_id)
    publisher.write(newest, [chunk(0, "another text", np.ones(384, np.float32))])
    with database.write() as tx:
        publisher.publish(tx, newest, content("b"))
    with database.write() as tx:
        assert publisher.swap(tx, recut) == recut[:1]
    publisher.withdraw(recut)
    assert chunk_ids(database) == sorted([*recut[0].ids, *newest.ids])
    assert sorted(live.snapshot().chunk_ids[live.snapshot().alive]) == chunk_ids(database)


def test_attempts_at_a_document_that_keeps_changing_have_an_end() -> None:
    tries: list[None] = []

    def attempt() -> None:
        tries.append(None)
        raise MovedError

    with pytest.raises(Unavailable, match="Try again"):
        attempted(attempt)
    assert len(tries) == ATTEMPTS
