"""Which documents a filter lets through is remembered only for as long as it stays true."""

from pathlib import Path

import numpy as np
import pytest

from kb.core.searches import Filter
from kb.index import terms
from kb.index.chunk_index import ChunkIndex
from kb.search.filter_scope import Scope, Scopes
from kb.store import chunks, documents
from kb.store.sqlite.database import SQLiteDatabase
from kb.store.sqlite.migrate import migrate
from shelf import chunk, content

WIDTH = 384
TAGGED = Filter(tags=("x",))


@pytest.fixture
def database(tmp_path: Path) -> SQLiteDatabase:
    migrate(tmp_path / "kb.db", terms.index_terms)
    return SQLiteDatabase(tmp_path / "kb.db")


def add(database: SQLiteDatabase, tag: str, size: int = 1) -> int:
    with database.write() as tx:
        id_ = documents.reserve(tx)
        chunks.add(tx, id_, 1, [chunk(at, "heron", np.ones(WIDTH, np.float32)) for at in range(size)])
        documents.publish(tx, id_, content(str(id_)), 1, size)
        documents.set_tags(tx, id_, [tag])
    return id_


def test_a_scope_is_worked_out_anew_after_a_write(database: SQLiteDatabase) -> None:
    first, second = add(database, "x", 2), add(database, "y")
    live, scopes = ChunkIndex(WIDTH), Scopes(database)
    live.load(database)

    def now() -> Scope:
        return scopes.of(live.snapshot(), TAGGED, database.changes)

    before = now()
    assert (before.chunks, before.documents, before.matching) == (2, 1, 1)
    assert now() is before
    with database.write() as tx:
        documents.set_tags(tx, second, ["x"])
    after = now()
    assert (after.chunks, after.documents, after.terms) == (3, 2, 3)
    with database.write() as tx:
        documents.set_tags(tx, first, ["y"])
    assert now().chunks == 1
    database.close()


def test_a_moment_before_a_document_was_replaced_still_has_the_old_one() -> None:
    live = ChunkIndex(4)
    live.replace_many([1, 2], [1, 1, 2], [10, 11, 12], [1, 1, 1], np.ones((3, 4), np.float32))
    before = live.snapshot()
    live.replace(1, [13], [1], np.ones((1, 4), np.float32))
    assert Scope.of_documents(before, np.array([1, 99])).every_row.tolist() == [0, 1]
    after = Scope.of_documents(live.snapshot(), np.array([1, 2]))
    assert live.snapshot().chunk_ids[after.every_row].tolist() == [12, 13]


def test_only_the_latest_filters_are_remembered(database: SQLiteDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kb.search.filter_scope.KEPT", 2)
    add(database, "x")
    live, scopes = ChunkIndex(WIDTH), Scopes(database)
    live.load(database)
    first = scopes.of(live.snapshot(), TAGGED, 1)
    for tag in ("a", "b"):
        scopes.of(live.snapshot(), Filter(tags=(tag,)), 1)
    assert scopes.of(live.snapshot(), TAGGED, 1) is not first
    database.close()
