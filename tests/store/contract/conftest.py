"""Each promise is kept by every store: the tests of this folder run on SQLite and on a real PostgreSQL server."""

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kb.core.settings import Settings
from kb.index import terms
from kb.store.open import Store, open_store
from postgres import PostgresServer

OpenStore = Callable[[], Store]


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OpenStore]:
    """Opens stores: the first call a new one, each further call another new one of the same kind."""
    stores: list[Store] = []

    def opening() -> Store:
        folder = tmp_path / f"data-{len(stores)}"
        folder.mkdir()
        settings = Settings(data_dir=folder)
        if request.param == "postgres":
            server: PostgresServer = request.getfixturevalue("postgres")
            settings = Settings(data_dir=folder, database_url=server.url, name=f"t{uuid.uuid4().hex[:20]}")
        store = open_store(settings, terms.index_terms)
        store.migrate()
        stores.append(store)
        return store

    yield opening
    for store in stores:
        store.database.close()


@pytest.fixture
def store(opened: OpenStore) -> Store:
    return opened()
