"""The index of an engine follows what another engine wrote: before a search, and before a job is said to have ended."""

import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import pytest

from kb.store import documents
from kb.store.postgres import listener
from kb.store.postgres.address import parsed
from kb.store.postgres.database import PostgresDatabase
from kb.store.postgres.migrate import migrate
from postgres import PostgresServer
from shelf import content
from support import eventually


@dataclass
class Index:
    """What an index in memory was told."""

    load: Callable[[], None] = lambda: None
    adopted: list[int] = field(default_factory=list)

    def adopt(self, document_ids: Sequence[int]) -> None:
        self.adopted += document_ids

    def reload(self) -> None:
        self.load()


@pytest.fixture
def name() -> str:
    return f"t{uuid.uuid4().hex[:20]}"


@pytest.fixture
def engines(postgres: PostgresServer, name: str) -> Iterator[list[PostgresDatabase]]:
    """Two engines on one knowledge base."""
    both = [PostgresDatabase(parsed(postgres.url, name), f"{place}:/data") for place in ("here", "there")]
    for engine in both:
        migrate(engine)
    yield both
    for engine in both:
        engine.close()


def publish(engine: PostgresDatabase) -> int:
    with engine.write() as tx:
        id_ = documents.reserve(tx)
        documents.publish(tx, id_, content("a document"), 1, 0)
        tx.publishes([id_], lambda: None)
    return id_


def away(engine: PostgresDatabase) -> bool:
    return any(value for gauge, _, value in engine.gauges() if gauge == "database_away")


def test_what_was_read_is_in_memory_also_while_the_listener_is_not_connected_again(
    postgres: PostgresServer, engines: list[PostgresDatabase], monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = engines
    index = Index()
    here.follow(index)
    monkeypatch.setattr(listener, "PAUSE", 60.0)
    postgres.end_connections()
    eventually(lambda: away(here))
    id_ = publish(there)
    assert here.catch_up() is not None  # a search says from which moment its answer is
    assert index.adopted == []
    here.settle()
    assert index.adopted == [id_]


def test_a_search_that_waited_for_the_index_finds_what_was_written_while_it_was_loaded(
    engines: list[PostgresDatabase],
) -> None:
    here, there = engines
    loaded, go = threading.Event(), threading.Event()

    def load() -> None:
        loaded.set()
        go.wait(30)

    index = Index(load)
    following = threading.Thread(target=here.follow, args=(index,))
    following.start()
    assert loaded.wait(30)
    id_ = publish(there)
    searching = threading.Thread(target=here.catch_up)
    searching.start()
    searching.join(0.3)
    assert searching.is_alive()
    here.settle()  # does not wait: searches do
    go.set()
    searching.join(30)
    following.join(30)
    assert index.adopted == [id_]
