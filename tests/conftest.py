"""Fixtures that every test may use: the real model, one shared engine, settings for an engine of one's own."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from kb.core.settings import Settings, bundled_model_dir
from kb.embedding.embedder import SentenceEmbedder, load
from support import EngineProcess, Http, StartEngine

STARTS_A_SERVER = {"embedder", "engine_url", "start_engine"}  # or loads the model
STARTS_PROCESSES = {"api", "crash", "embedding", "engine", "ingest", "mcp_server", "network", "web"}  # folders of tests


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what `make check` leaves out: tests that start servers."""
    for item in items:
        folder = item.path.relative_to(Path(__file__).parent).parts[0]
        if folder in STARTS_PROCESSES or STARTS_A_SERVER & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)


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
def settings(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path / "data", port=0)
