"""A knowledge base moves between stores, also by way of a backup, and stays the same."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from kb.core.errors import Conflict
from kb.store import copying, documents
from kb.store.moving import move
from kb.store.open import Store
from kb.store.sqlite import inspect
from kb.store.sqlite.connection import connect
from kb.store.sqlite.database import SQLiteDatabase
from store.contract.test_contents import WIDTH, add

# Tables that only one of the stores has: for full text, vectors, checksums, originals and its own affairs.
OWN = (
    "chunks_fts",
    "chunks_vec",
    "sqlite_",
    "checksums",
    "migrations",
    "chunk_terms",
    "chunk_vectors",
    "head",
    "changes",
    "drafts",
    "engines",
    "originals",
)


def filled(store: Store) -> Store:
    with store.database.write() as tx:
        tx.vectors.clear(WIDTH)
        add(tx, "a\0b", "heron heron", "otter", tags=("z", "y"))
        documents.delete(tx, add(tx, "gone", "badger"))
        add(tx, "c", "weasel")
    with store.originals.stage() as staged, store.database.write() as tx:
        staged.write(b"the original")
        staged.sync()
        store.originals.keep(tx, staged)
        tx.run("UPDATE documents SET doc_type = 'text', content_hash = :h WHERE title = 'c'", {"h": staged.sha256})
    return store


def test_everything_moves_and_stays_the_same(opened: Callable[[], Store]) -> None:
    source, target = filled(opened()), opened()
    done = move(source, target)
    assert (done.rows["documents"], done.rows["chunks"], done.originals, done.missing) == (2, 3, 1, [])
    with target.database.read() as tx:
        assert tx.ids_given("chunks") == 4
        assert tx.fulltext.postings(["heron"])[0].counts.tolist() == [2]
        (sha256,) = tx.column("SELECT content_hash FROM documents WHERE title = 'c'")
    assert target.originals.verified(sha256).read_bytes() == b"the original"
    assert move(source, target) == done  # as after an end behind the copying: it is compared once more
    with source.database.write() as tx:
        tx.run("UPDATE documents SET title = 'another' WHERE title = 'c'")
    with pytest.raises(Conflict, match="not empty"):
        move(source, target)
    assert move(source, target, force=True) == done


def test_a_copy_for_a_backup_is_a_sound_file_of_sqlite(opened: Callable[[], Store], tmp_path: Path) -> None:
    store, path = filled(opened()), tmp_path / "copy.db"
    path.touch()
    with store.database.read() as tx:
        tx.copy_to(path)
        assert sorted(file.name for file in tmp_path.glob("copy.db*")) == ["copy.db"]
        inspect.check(path)
        assert inspect.damage(path) == []
        with closing(SQLiteDatabase(path)) as copy, copy.read() as copied:
            for table in copying.TABLES:
                assert list(copying.batches(copied, table)) == list(copying.batches(tx, table))


def test_every_store_has_the_same_tables_with_the_same_columns(store: Store, tmp_path: Path) -> None:
    """A migration of one store needs a twin in the other, and `copying` must know a new table."""
    if store.database.name == "sqlite":
        with closing(connect(tmp_path / "data-0" / "kb.db")) as connection:
            names = [str(name) for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        names = [name for name in names if not name.startswith(OWN)]
        assert sorted([*copying.TABLES, "meta"]) == sorted(names)
        return
    sqlite = SQLiteDatabase(tmp_path / "other.db")
    from kb.store.sqlite.migrate import migrate

    migrate(sqlite.path, str.split)
    with closing(sqlite), sqlite.read() as old, store.database.read() as new:
        kinds = "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()"
        tables = {name for name in new.column(kinds) if not name.startswith(OWN)}
        views = "SELECT name FROM sqlite_schema WHERE type = 'view'"
        assert tables == {*copying.TABLES, "meta", *old.column(views)}
        of_sqlite = "SELECT name FROM pragma_table_info(:name)"
        of_postgres = """
            SELECT column_name::text FROM information_schema.columns
             WHERE table_schema = current_schema() AND table_name = :name"""
        for name in tables:
            columns = [one for one in new.column(of_postgres, {"name": name}) if one not in copying.LEFT_OUT]
            assert sorted(columns) == sorted(old.column(of_sqlite, {"name": name})), name
