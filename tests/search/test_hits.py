"""What is shown of a passage is kept only for as long as it is true."""

from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from kb.core.searches import Hit
from kb.core.values import Anchor
from kb.index import terms
from kb.search import hits
from kb.search.hits import Passages
from kb.store import chunks, documents
from kb.store.chunks import StoredPassage
from kb.store.sqlite.database import SQLiteDatabase
from kb.store.sqlite.migrate import migrate
from shelf import chunk, content


@pytest.fixture
def database(tmp_path: Path) -> SQLiteDatabase:
    migrate(tmp_path / "kb.db", terms.index_terms)
    return SQLiteDatabase(tmp_path / "kb.db")


def add(database: SQLiteDatabase, text: str) -> tuple[int, int]:
    with database.write() as tx:
        document_id = documents.reserve(tx)
        (chunk_id,) = chunks.add(tx, document_id, 1, [chunk(0, text, np.ones(384, np.float32))])
        documents.publish(tx, document_id, content(text), 1, 1)
        documents.set_tags(tx, document_id, ["first"])
    return document_id, chunk_id


def shown(database: SQLiteDatabase, kept: Passages, *ids: int) -> dict[int, StoredPassage]:
    return kept.of(ids, database.changes)


def test_a_change_is_seen_at_once(database: SQLiteDatabase) -> None:
    kept = Passages(database)
    document_id, chunk_id = add(database, "herons")
    before = shown(database, kept, chunk_id, 999)
    hit = before[chunk_id].scored(0.5)
    assert (hit.tags, hit.text, hit.score, list(before)) == (["first"], "herons", 0.5, [chunk_id])
    assert shown(database, kept, chunk_id)[chunk_id] is before[chunk_id]
    with database.write() as tx:
        documents.set_tags(tx, document_id, ["second"])
    assert shown(database, kept, chunk_id)[chunk_id].scored(0).tags == ["second"]
    with database.write() as tx:
        chunks.remove_other_revisions(tx, document_id, keep=0)
        documents.delete(tx, document_id)
    assert shown(database, kept, chunk_id) == {}
    database.close()


def test_tags_are_in_the_order_in_which_they_were_given(database: SQLiteDatabase) -> None:
    (several, one), (none, other) = add(database, "herons"), add(database, "otters")
    given = ["zebra", "Ä b, c", "apple"]
    with database.write() as tx:
        documents.set_tags(tx, several, given)
        documents.set_tags(tx, none, [])
    found = shown(database, Passages(database), one, other)
    assert (found[one].scored(0).tags, found[other].scored(0).tags) == (given, [])
    database.close()


def test_a_hit_has_all_its_fields(database: SQLiteDatabase) -> None:
    """It is made without its `__init__`, which would have noticed."""
    _, chunk_id = add(database, "herons")
    hit = shown(database, Passages(database), chunk_id)[chunk_id].scored(0.5)
    assert vars(hit).keys() == {field.name for field in fields(Hit)}
    assert vars(hit.anchor).keys() == {field.name for field in fields(Anchor)}
    assert hit == replace(hit)
    database.close()


def test_only_the_latest_are_kept(database: SQLiteDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hits, "KEPT", 2)
    kept = Passages(database)
    ids = [add(database, text)[1] for text in ("one", "two", "three")]
    everything = shown(database, kept, *ids)
    assert len(everything) == 3
    assert shown(database, kept, ids[2])[ids[2]] is everything[ids[2]]
    assert shown(database, kept, ids[0])[ids[0]] is not everything[ids[0]]
    database.close()
