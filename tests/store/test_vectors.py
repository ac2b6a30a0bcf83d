"""Vectors come back the same, however they are read."""

from pathlib import Path

import apsw
import numpy as np
import pytest

from kb.index import terms
from kb.store.sqlite.database import SQLiteDatabase
from kb.store.sqlite.migrate import migrate
from kb.store.sqlite.vectors import SQLiteVectors

RANDOM = np.random.default_rng(2)


@pytest.mark.parametrize("in_blobs", [True, False])
def test_every_vector_gets_to_its_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_blobs: bool) -> None:
    """Also after rows were removed and others took their place: sqlite-vec fills its blobs up again."""
    migrate(tmp_path / "kb.db", terms.index_terms)
    database = SQLiteDatabase(tmp_path / "kb.db")
    kept = {id_: RANDOM.normal(size=384).astype(np.float32) for id_ in range(1, 3001)}
    with database.write() as tx:
        for id_, vector in kept.items():
            tx.vectors.add(id_, vector)
    gone = RANDOM.choice(3000, 700, replace=False) + 1
    with database.write() as tx:
        tx.vectors.remove(gone.tolist())
        for id_ in range(5000, 5200):
            kept[id_] = RANDOM.normal(size=384).astype(np.float32)
            tx.vectors.add(id_, kept[id_])
    for id_ in gone.tolist():
        del kept[id_]
    wanted = RANDOM.permutation([*kept, 7777])  # one that has no vector
    into = np.zeros((len(wanted), 384), np.float32)
    with database.read() as tx:
        assert isinstance(tx.vectors, SQLiteVectors)
        assert tx.vectors._kept_in_blobs()
        if not in_blobs:
            monkeypatch.setattr(SQLiteVectors, "_kept_in_blobs", lambda _: False)
        tx.vectors.load(wanted, into)
    for id_, row in zip(wanted.tolist(), into, strict=True):
        assert np.array_equal(row, kept.get(id_, np.zeros(384, np.float32)))
    database.close()


def test_blobs_that_hold_something_else_are_not_believed(tmp_path: Path) -> None:
    migrate(tmp_path / "kb.db", terms.index_terms)
    database = SQLiteDatabase(tmp_path / "kb.db")
    with database.write() as tx:
        tx.vectors.add(1, np.ones(384, np.float32))
        tx.vectors.add(2, np.ones(384, np.float32))
    with apsw.Connection(str(database.path)) as another:  # the engine's own may not write what vectors are kept in
        another.execute("UPDATE chunks_vec_rowids SET chunk_offset = 1 - chunk_offset")
    with database.read() as tx:
        assert isinstance(tx.vectors, SQLiteVectors)
        assert not tx.vectors._kept_in_blobs()
    database.close()
