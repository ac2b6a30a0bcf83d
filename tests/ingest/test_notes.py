"""Editing a note on a real database: what it costs, and what happens when others change the note meanwhile."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kb.core.errors import Unavailable
from kb.embedding.embedder import SentenceEmbedder
from kb.embedding.priority import Priority
from kb.index import terms
from kb.index.chunk_index import ChunkIndex
from kb.ingest.notes import NoteEditor
from kb.ingest.prepare import Placed, Preparer
from kb.ingest.publish import ATTEMPTS, NewRevision, Publisher
from kb.ingest.requests import text_hash
from kb.store import documents, notes
from kb.store.chunks import NewChunk
from kb.store.sqlite.database import SQLiteDatabase
from kb.store.sqlite.migrate import migrate
from shelf import chunk, content

TEXT = "The text that the note has"


class Watched(Preparer):
    """Does something before it embeds, and counts how often."""

    meanwhile: Callable[[int], None] = staticmethod(lambda _: None)
    times = 0

    def batches(self, passages: Iterable[Placed]) -> Iterator[list[NewChunk]]:
        self.times += 1
        self.meanwhile(self.times)
        return super().batches(passages)


@pytest.fixture
def database(tmp_path: Path) -> SQLiteDatabase:
    migrate(tmp_path / "kb.db", terms.index_terms)
    return SQLiteDatabase(tmp_path / "kb.db")


@pytest.fixture
def preparer(embedder: SentenceEmbedder) -> Watched:
    return Watched(embedder, 200, Priority())


@pytest.fixture
def editor(database: SQLiteDatabase, preparer: Watched, embedder: SentenceEmbedder) -> NoteEditor:
    """Of a database that holds one note, document 1."""
    index = ChunkIndex(384, model=embedder.fingerprint)
    index.load(database)
    publisher = Publisher(database, index)
    with database.write() as tx:
        revision = NewRevision(documents.reserve(tx))
    publisher.write(revision, [replace(chunk(0, TEXT, np.ones(384, np.float32)), model=embedder.fingerprint)])
    with database.write() as tx:
        publisher.publish(tx, revision, replace(content("a note"), content_hash=text_hash(TEXT)))
        notes.add_version(tx, revision.document_id, TEXT)
    return NoteEditor(database, preparer, publisher, index, lambda tx, row: publisher.remove(tx, row["id"]))


def test_an_unchanged_text_is_not_embedded(editor: NoteEditor, preparer: Watched) -> None:
    assert editor.update("1", TEXT).version == 1
    assert preparer.times == 0
    assert editor.update("1", "Another text").version == 2
    assert preparer.times == 1


def test_metadata_that_comes_meanwhile_is_embedded_too(
    editor: NoteEditor, preparer: Watched, database: SQLiteDatabase
) -> None:
    preparer.meanwhile = lambda times: set_metadata(database, 1) if times == 1 else None
    after = editor.update("1", "Another text")
    assert (after.version, after.metadata, preparer.times) == (2, {"changed": 1}, 2)


def test_a_note_that_changes_all_the_time_is_given_up(
    editor: NoteEditor, preparer: Watched, database: SQLiteDatabase
) -> None:
    preparer.meanwhile = lambda times: set_metadata(database, times)
    with pytest.raises(Unavailable, match="Try again") as refused:
        editor.update("1", "Another text")
    assert (refused.value.http_status, refused.value.retryable) == (503, True)
    assert preparer.times == ATTEMPTS
    with database.read() as tx:
        assert documents.text(tx, 1) == TEXT
        assert tx.abandoned_drafts() == ([], [])


def set_metadata(database: SQLiteDatabase, value: int) -> None:
    with database.write() as tx:
        tx.run("UPDATE documents SET metadata = :new", {"new": f'{{"changed": {value}}}'})
