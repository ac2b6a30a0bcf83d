"""Postings in memory: what was written later is found, what is gone is not, and memory stays bounded."""

from collections.abc import Iterator
from pathlib import Path
from threading import Event

import numpy as np
import pytest

from kb.index import postings, terms
from kb.index.chunk_index import ChunkIndex
from kb.index.postings import PostingsCache
from kb.search import keyword
from kb.search.filter_scope import Scope
from kb.search.keyword import KeywordIndex
from kb.store import chunks, documents
from kb.store.sqlite.database import SQLiteDatabase
from kb.store.sqlite.migrate import migrate
from shelf import chunk, content

WIDTH = 384


class Held:
    """A small knowledge base, and the postings that follow it."""

    def __init__(self, path: Path) -> None:
        migrate(path, terms.index_terms)
        self.database = SQLiteDatabase(path)
        self.live = ChunkIndex(WIDTH)
        self.live.load(self.database)
        self.cache = PostingsCache()

    def add(self, *texts: str) -> int:
        rows = np.ones((len(texts), WIDTH), np.float32)
        with self.database.write() as tx:
            id_ = documents.reserve(tx)
            new = [chunk(at, text, row) for at, (text, row) in enumerate(zip(texts, rows, strict=True))]
            ids = chunks.add(tx, id_, 1, new)
            documents.publish(tx, id_, content(str(id_)), 1, len(texts))
            tx.after_commit(lambda: self.live.replace(id_, ids, [one.terms for one in new], rows))
        return id_

    def remove(self, id_: int) -> None:
        with self.database.write() as tx:
            chunks.remove_other_revisions(tx, id_, keep=0)
            documents.delete(tx, id_)
            tx.after_commit(lambda: self.live.remove(id_))

    def count(self, term: str) -> list[float]:
        """How often the term occurs in each passage that holds it."""
        with self.database.read() as tx:
            found = self.cache.of(tx, self.live.snapshot(), [term])[term]
        assert np.all(np.diff(found.rows) > 0)
        assert found.totals.sum() == found.counts.sum()
        return [float(count) for count in found.counts]


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Held]:
    made = Held(tmp_path / "kb.db")
    yield made
    made.database.close()


@pytest.mark.parametrize("largest_delta", [0, 1, 3, 1000])
def test_what_is_written_later_is_found(held: Held, monkeypatch: pytest.MonkeyPatch, largest_delta: int) -> None:
    """Whether it is read chunk by chunk, taken over into what is held, or is so much that all is read anew."""
    monkeypatch.setattr(postings, "LARGEST_DELTA", largest_delta)
    held.add("heron heron reeds")
    assert held.count("heron") == [2]
    for number in range(8):
        held.add(f"heron {number}", "reeds", "heron heron heron")
        assert held.count("heron") == [2, *[1, 3] * (number + 1)]
        assert len(held.count("reed")) == number + 2
    assert held.count("otter") == []
    held.add("otter")
    assert held.count("otter") == [1]


def test_what_is_gone_is_not_found(held: Held) -> None:
    first, second = held.add("heron"), held.add("heron heron")
    assert held.count("heron") == [1, 2]
    held.remove(first)
    assert held.count("heron") == [2]
    held.remove(second)
    assert held.count("heron") == []


def test_a_passage_that_comes_back_counts_once(held: Held) -> None:
    """As one does that is taken out of the trash, also after the arrays were packed meanwhile."""
    id_ = held.add("heron heron")
    held.add("heron")
    assert held.count("heron") == [2, 1]
    for packed in (False, True):
        held.live.remove(id_)
        assert held.count("heron") == [1]
        if packed:
            held.live._pack()
        held.live.replace(id_, [1], [2], lambda into: into.fill(1), [False])
        assert held.count("heron") == [1, 2]


@pytest.mark.parametrize("packed", [False, True])
def test_a_passage_that_was_away_when_postings_were_read_is_found_when_it_is_back(held: Held, packed: bool) -> None:
    """Added and deleted without a search in between; then a search, and only then it is taken out of the trash."""
    held.add("heron")
    assert held.count("heron") == [1]
    id_ = held.add("heron heron")
    held.live.remove(id_)
    if packed:
        held.live._pack()
    assert held.count("heron") == [1]
    held.live.replace(id_, [2], [2], lambda into: into.fill(1), [False])
    assert held.count("heron") == [1, 2]
    held.add("otter")
    assert held.count("heron") == [1, 2]


def test_documents_count_whole(held: Held) -> None:
    held.add("heron", "otter", "heron heron")
    held.add("heron")
    with held.database.read() as tx:
        found = held.cache.of(tx, held.live.snapshot(), ["heron"])["heron"]
    assert found.totals.tolist() == [3, 1]


def test_an_older_moment_stays_as_it_was(held: Held) -> None:
    held.add("heron")
    before = held.live.snapshot()
    held.add("heron heron")
    assert held.count("heron") == [1, 2]
    with held.database.read() as tx:
        assert held.cache.of(tx, before, ["heron"])["heron"].counts.tolist() == [1]


def test_passages_that_are_published_in_another_order_than_written_are_in_the_order_of_their_rows(held: Held) -> None:
    rows = np.ones((1, WIDTH), np.float32)
    with held.database.write() as tx:
        late = documents.reserve(tx)
        (id_,) = chunks.add(tx, late, 1, [chunk(0, "heron heron", rows[0])])
    held.add("heron")
    with held.database.write() as tx:
        documents.publish(tx, late, content("late"), 1, 1)
        tx.after_commit(lambda: held.live.replace(late, [id_], [2], rows))
    assert held.count("heron") == [1, 2]


@pytest.mark.parametrize("largest_delta", [0, 1000])
def test_a_passage_with_a_lower_id_than_those_known_is_found(
    held: Held, monkeypatch: pytest.MonkeyPatch, largest_delta: int
) -> None:
    """A store with several writers commits out of the order of ids."""
    monkeypatch.setattr(postings, "LARGEST_DELTA", largest_delta)
    held.add("heron")
    with held.database.write() as tx:
        tx.raise_ids("chunks", 2)
    held.add("heron heron")
    assert held.count("heron") == [1, 2]
    rows = np.ones((1, WIDTH), np.float32)
    with held.database.write() as tx:
        late = documents.reserve(tx)
        (id_,) = chunks.add(tx, late, 1, [chunk(0, "heron heron heron", rows[0])])
        tx.run("UPDATE chunks SET id = 2 WHERE id = :id", {"id": id_})
        ((_, terms),) = tx.fulltext.terms_of([id_])
        tx.fulltext.remove([id_])
        tx.fulltext.add(2, "", "", " ".join(terms))
        documents.publish(tx, late, content("late"), 1, 1)
        tx.after_commit(lambda: held.live.replace(late, [2], [3], rows))
    assert held.count("heron") == [1, 2, 3]


@pytest.mark.parametrize("bound", ["HELD_POSTINGS", "RESOLVED_POSTINGS"])
def test_memory_is_bounded_and_what_was_dropped_is_read_again(
    held: Held, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    monkeypatch.setattr(postings, bound, 10)
    held.cache = PostingsCache()
    for number in range(6):
        held.add("heron otter", f"badger{number}")
    for term, count in (("heron", 6), ("otter", 6), ("badger1", 1), ("heron", 6)):
        assert len(held.count(term)) == count
        assert getattr(held.cache, "_held" if bound == "HELD_POSTINGS" else "_resolved").weight <= 10 + postings.ENTRY
    assert held.cache.size > 0


def test_every_term_is_read_ahead_but_stop_words(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyword, "FREQUENT", 6)
    for number in range(60):
        held.add(f"the heron {'otter' if number % 2 else 'reeds'} {number}")
    index = KeywordIndex()
    index.warm(held.database, held.live, Event())
    assert index.cached_postings == 60 + 30 + 30 + 60
    stopped = Event()
    stopped.set()
    idle = KeywordIndex()
    idle.warm(held.database, held.live, stopped)
    assert idle.cached_postings == 0


def test_reading_ahead_stops_where_memory_ends_and_takes_the_most_frequent(
    held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (keyword, postings):
        monkeypatch.setattr(module, "ENTRY", 1)
        monkeypatch.setattr(module, "HELD_POSTINGS", 107)
    monkeypatch.setattr(keyword, "MOST_FREQUENT", 102)
    monkeypatch.setattr(keyword, "FREQUENT", 6)
    for number in range(60):
        held.add(f"heron {'otter' if number % 2 else 'reeds'} {'badger' if number % 3 else 'weasel'} {number}")
    index = KeywordIndex()
    index.warm(held.database, held.live, Event())
    assert index.cached_postings == 60 + 40 + 2  # heron and badger, and two numbers
    for asked in ("7", "8"):
        with held.database.read() as tx:
            index.search(tx, Scope.unfiltered(held.live.snapshot()), terms.query_terms(asked), 10)
    assert index.cached_postings == 60 + 40 + 2  # two that nobody asked for went, and nothing else


def test_no_more_terms_are_looked_at_than_there_may_be(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyword, "MOST_TERMS", 2)
    held.add("heron", "heron otter", "heron otter badger")
    index = KeywordIndex()
    index.warm(held.database, held.live, Event())
    assert index.cached_postings == 3 + 2  # heron and otter


def test_what_was_read_ahead_follows_what_is_written(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when the delta is merged: then a term of few postings is forgotten, and one of many is added to."""
    monkeypatch.setattr(postings, "LARGEST_DELTA", 3)
    monkeypatch.setattr(postings, "FEW", 2)
    held.add("heron otter", "heron", "heron reeds")
    with held.database.read() as tx:
        held.cache.hold(tx, held.live.snapshot(), ["heron", "otter", "reed"])
    assert held.cache.size == 3 + 1 + 1
    for number in range(4):
        held.add(f"heron otter {number}")
        assert held.count("heron") == [1] * (4 + number)
    assert held.cache.size == 7 + 0 + 1
    assert (held.count("otter"), held.count("reed")) == ([1] * 5, [1])
    assert held.cache.size == 7 + 5 + 1


def test_a_knowledge_base_may_be_empty_again(held: Held) -> None:
    held.remove(held.add("heron"))
    assert held.count("heron") == []
    index = KeywordIndex()
    index.warm(held.database, held.live, Event())
    assert not index.is_cold


def test_postings_are_held_also_when_the_newest_passage_is_gone(held: Held) -> None:
    held.add("heron")
    newest = held.add("heron otter")
    assert held.count("heron") == [1, 1]
    held.remove(newest)
    assert (held.count("heron"), held.count("badger"), held.count("otter")) == ([1], [], [])
    held.cache = PostingsCache()
    assert held.count("heron") == [1]
    assert held.cache.size == 1


def test_what_is_forgotten_is_to_be_read_ahead_again(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postings, "LARGEST_DELTA", 3)
    held.add("heron")
    index = KeywordIndex()
    cold = [index.is_cold]
    index.warm(held.database, held.live, Event())
    cold.append(index.is_cold)
    for _ in range(5):
        held.add("heron")
    with held.database.read() as tx:
        index.search(tx, Scope.unfiltered(held.live.snapshot()), terms.query_terms("heron"), 10)
    assert [*cold, index.is_cold] == [True, False, True]
