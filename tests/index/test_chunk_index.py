"""The index in memory: snapshots that never change, rows that follow their chunks."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kb.core.errors import KBError, Unavailable
from kb.index import chunk_index, terms
from kb.index.chunk_index import ChunkIndex, looked_up
from kb.store.backend import Vector
from kb.store.sqlite.database import SQLiteDatabase
from kb.store.sqlite.migrate import migrate

WIDTH = 4


def vectors_of(count: int, value: float = 1.0) -> Vector:
    return np.full((count, WIDTH), value, np.float32)


@pytest.fixture
def chunks(monkeypatch: pytest.MonkeyPatch) -> ChunkIndex:
    index = ChunkIndex(WIDTH)
    index._loaded.set()
    return index


def ids(index: ChunkIndex) -> list[int]:
    snapshot = index.snapshot()
    return sorted(snapshot.chunk_ids[snapshot.alive].tolist())


def test_what_is_added_is_there(chunks: ChunkIndex) -> None:
    chunks.replace(1, [10, 11], [3, 4], vectors_of(2))
    snapshot = chunks.snapshot()
    assert ids(chunks) == [10, 11]
    assert (snapshot.count, snapshot.new_since(snapshot.version - 1).tolist()) == (2, [10, 11])
    assert snapshot.doc_lengths.tolist() == [7]
    assert snapshot.doc_ords.tolist() == [0, 0]


def test_a_new_content_takes_the_place_of_the_old_one(chunks: ChunkIndex) -> None:
    chunks.replace(1, [10, 11], [1, 1], vectors_of(2))
    chunks.replace(2, [12], [1], vectors_of(1))
    chunks.replace(1, [13], [1], vectors_of(1))
    assert ids(chunks) == [12, 13]


def test_what_is_removed_is_gone(chunks: ChunkIndex) -> None:
    chunks.replace(1, [10], [1], vectors_of(1))
    chunks.replace(2, [11], [1], vectors_of(1))
    chunks.remove(1)
    assert ids(chunks) == [11]


def test_a_snapshot_stays_as_it_was(chunks: ChunkIndex) -> None:
    chunks.replace(1, [10], [1], vectors_of(1))
    before = chunks.snapshot()
    chunks.replace(1, [20], [1], vectors_of(1, 2.0))
    chunks.remove(1)
    assert before.chunk_ids[before.alive].tolist() == [10]
    assert before.vectors[0].tolist() == [1.0] * WIDTH
    assert looked_up(before.row_of_chunk, np.array([10, 20]), before.alive).tolist() == [0, -1]


def test_rows_follow_chunks_that_are_published_out_of_order(chunks: ChunkIndex) -> None:
    chunks.replace(1, [500], [1], vectors_of(1))
    chunks.replace(2, [7, 9], [1, 1], vectors_of(2))
    snapshot = chunks.snapshot()
    wanted = np.array([7, 8, 9, 500, 99999])
    found = looked_up(snapshot.row_of_chunk, wanted, snapshot.alive)
    assert found.tolist() == [1, -1, 2, 0, -1]


def test_arrays_grow_and_are_packed_without_losing_anything(
    chunks: ChunkIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunk_index, "SPARE", 2)
    for number in range(300):
        chunks.replace(number, [2 * number, 2 * number + 1], [1, 2], vectors_of(2, number))
    for number in range(0, 300, 3):
        chunks.remove(number)
    snapshot = chunks.snapshot()
    kept = [n for n in range(300) if n % 3]
    assert ids(chunks) == [i for n in kept for i in (2 * n, 2 * n + 1)]
    assert len(snapshot.chunk_ids) < 600
    for number in kept:
        row = int(looked_up(snapshot.row_of_chunk, np.array([2 * number]), snapshot.alive)[0])
        assert (snapshot.document_ids[snapshot.doc_ords[row]], snapshot.vectors[row, 0]) == (number, number)


def test_a_passage_keeps_its_vector_when_packing_follows_a_replacement(chunks: ChunkIndex) -> None:
    for document_id, chunk_id in ((1, 10), (2, 20), (3, 30), (1, 40)):  # the first one comes last
        chunks.replace(document_id, [chunk_id], [1], vectors_of(1, value=chunk_id))
    chunks._pack()
    chunks._publish()
    snapshot = chunks.snapshot()
    assert snapshot.vectors[:, 0].tolist() == snapshot.chunk_ids.tolist() == [40, 20, 30]


def test_nobody_sees_an_empty_index_while_it_is_packed(chunks: ChunkIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunk_index, "SPARE", 0)
    for number in range(1, 9):
        chunks.replace(number, [number], [1], vectors_of(1, number))
    seen = []
    appended = chunks._append

    def watched(*args: Any) -> Any:
        seen.append(chunks.snapshot().count)
        return appended(*args)

    monkeypatch.setattr(chunks, "_append", watched)
    for number in (1, 2, 3):  # the third makes more than a quarter of them dead
        chunks.remove(number)
    assert seen == [6]  # packed once, and meanwhile what was there before
    assert ids(chunks) == [4, 5, 6, 7, 8]


def test_nothing_is_anywhere_after_a_clear(chunks: ChunkIndex) -> None:
    chunks.replace(1, [10, 11], [1, 1], vectors_of(2))
    chunks.clear()
    assert chunks.snapshot().rows_of_chunks(np.array([0, 10, 11, 12])).tolist() == [-1] * 4
    chunks.replace(2, [12], [1], vectors_of(1))
    assert ids(chunks) == [12]


def test_an_index_that_could_not_be_loaded_says_so_and_is_loaded_later(tmp_path: Path) -> None:
    database = SQLiteDatabase(tmp_path / "not-there-yet" / "kb.db")
    index = ChunkIndex(384)
    assert index.problem == "The search index is still loading."
    with pytest.raises(KBError):
        index.load(database)
    assert "cannot be loaded" in (index.problem or "")
    with pytest.raises(Unavailable, match="tried again by itself"):
        index.snapshot()
    database.path.parent.mkdir()
    migrate(database.path, terms.index_terms)
    index.load(database)
    assert index.loaded
    assert index.snapshot().count == 0


def test_an_index_that_has_to_be_made_anew_names_the_command() -> None:
    awaiting = ChunkIndex(WIDTH, awaiting_reindex=True)
    with pytest.raises(Unavailable, match="kb reindex"):
        awaiting.snapshot()
    awaiting.replace_many([1], [1], [10], [3], vectors_of(1))
    assert awaiting.loaded
    assert ids(awaiting) == [10]


def test_metadata_does_not_turn_the_direction_of_a_document(chunks: ChunkIndex) -> None:
    east, north = np.eye(WIDTH, dtype=np.float32)[:2]
    chunks.replace(1, [10, 11], [1, 1], np.stack([east, north]), [False, True])
    chunks.replace(2, [12, 13, 14], [1, 1, 1], np.stack([east, east, north]), [False, False, True])
    assert chunks.snapshot().doc_vectors.tolist() == [east.tolist()] * 2
    chunks._pack()
    chunks._publish()
    assert chunks.snapshot().doc_vectors.tolist() == [east.tolist()] * 2
