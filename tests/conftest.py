"""Fixtures that every test may use: the real model, one shared engine, settings for an engine of one's own."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from kb.core.settings import Settings, bundled_model_dir
from kb.embedding.embedder import SentenceEmbedder, load
from kb.store.open import Store
from postgres import PostgresServer
from support import TEST_DATABASE_URL, EngineProcess, Http, StartEngine, settings_of, stored

STARTS_A_SERVER = {"embedder", "engine_url", "postgres", "start_engine"}  # or loads the model
# Folders of tests.
STARTS_PROCESSES = {"api", "crash", "embedding", "engine", "folders", "ingest", "mcp_server", "network", "web"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what `make check` leaves out, tests that start servers, and what `make test-postgres` does."""
    for item in items:
        if on_postgres() and item.get_closest_marker("sqlite"):
            item.add_marker(pytest.mark.skip(f"{item.name}: about the files of SQLite"))
        folder = item.path.relative_to(Path(__file__).parent).parts[0]
        if folder in STARTS_PROCESSES or STARTS_A_SERVER & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)


def on_postgres() -> bool:
    return os.environ.get("KB_TEST_DATABASE") == "postgres"


@pytest.fixture(scope="session", autouse=True)
def no_settings_of_the_user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The file with settings of whoever runs the tests must not change them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
        yield


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """One server of PostgreSQL for all tests that need one; each uses a schema of its own."""
    server = PostgresServer()
    yield server
    server.close()


@pytest.fixture(scope="session", autouse=True)
def store_of_engines(request: pytest.FixtureRequest) -> Iterator[None]:
    """With KB_TEST_DATABASE=postgres, the engines that tests start use PostgreSQL."""
    if on_postgres():
        os.environ[TEST_DATABASE_URL] = request.getfixturevalue("postgres").url
    yield
    os.environ.pop(TEST_DATABASE_URL, None)


@pytest.fixture(scope="session")
def embedder() -> SentenceEmbedder:
    """The real model."""
    return load(bundled_model_dir())


@pytest.fixture(scope="session")
def engine_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One engine for all tests that can share it; what they add, they tell apart by tags."""
    engine = EngineProcess(tmp_path_factory.mktemp("shared") / "data")
    yield engine.url
    assert engine.stop() == 0, engine.log.read_text()


@pytest.fixture
def http(engine_url: str) -> Http:
    return Http(engine_url)


@pytest.fixture
def start_engine(tmp_path: Path) -> Iterator[StartEngine]:
    """Start engines of the test's own; they are stopped at its end."""
    started: list[EngineProcess] = []

    def start(data_dir: Path | None = None, arguments: Sequence[str] = (), **settings: str) -> EngineProcess:
        started.append(EngineProcess(data_dir or tmp_path / "data", arguments, **settings))
        return started[-1]

    yield start
    for engine in started:
        engine.stop()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """The store of the test's own data folder, where no engine runs."""
    with stored(tmp_path / "data") as opened:
        yield opened


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return settings_of(tmp_path / "data")
