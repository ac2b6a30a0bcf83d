"""Open the store that the settings name: the only place that knows which stores there are."""

from collections.abc import Callable
from dataclasses import dataclass

from kb.core.errors import KBError
from kb.core.settings import Settings
from kb.store.backend import Database, Mender
from kb.store.originals import Originals
from kb.store.sqlite.database import SQLiteDatabase
from kb.store.sqlite.migrate import migrate
from kb.store.sqlite.originals import OriginalFiles
from kb.store.sqlite.salvage import SQLiteMender

Segment = Callable[[str], list[str]]


@dataclass(frozen=True)
class Store:
    location: str  # for messages
    database: Database
    originals: Originals
    mender: Mender
    migrate: Callable[[], None]  # open the database, and bring it to the current schema


def open_store(settings: Settings, segment: Segment, *, shared: bool = False) -> Store:
    """`segment` turns text into full-text terms. A store that can be is `shared` with other engines."""
    return postgres_store(settings, shared=shared) if settings.uses_postgres else sqlite_store(settings, segment)


def sqlite_store(settings: Settings, segment: Segment) -> Store:
    path, database = settings.database_path, SQLiteDatabase(settings.database_path)
    return Store(
        location=str(path),
        database=database,
        originals=OriginalFiles(settings.data_dir, settings.max_file_mb * 2**20),
        mender=SQLiteMender(database, segment),
        migrate=lambda: migrate(path, segment),
    )


def postgres_store(settings: Settings, *, shared: bool) -> Store:
    """Its packages are imported only here: an engine with SQLite does without them."""
    try:
        from kb.store.postgres import store  # noqa: PLC0415
    except ModuleNotFoundError as missing:
        raise KBError(
            f"KB_DATABASE_URL names PostgreSQL, but the package {missing.name} is not installed. Install kb with the "
            'extra postgres: pip install "kb-server[engine,postgres]"'
        ) from missing
    database, originals = store.opened(settings, shared=shared)
    return Store(
        location=database.address.shown,
        database=database,
        originals=originals,
        mender=store.PostgresMender(),
        migrate=lambda: store.migrate(database),
    )
