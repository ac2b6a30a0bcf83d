"""The parts of a store in PostgreSQL, put together."""

import socket
from pathlib import Path

from kb.core.endpoint import ANY_ADDRESS, reached
from kb.core.settings import Settings
from kb.store.backend import Salvage
from kb.store.postgres.address import parsed
from kb.store.postgres.database import PostgresDatabase
from kb.store.postgres.migrate import migrate
from kb.store.postgres.originals import OriginalRows

__all__ = ["PostgresMender", "migrate", "opened"]


class PostgresMender:
    """Mends nothing: the files are the server's. It says so, so that the doctor names the way out."""

    def survey(self) -> Salvage:
        return Salvage(lost={"the server": "pages with a wrong checksum"}, left_out={})

    def mend(self, room: Path) -> Salvage:  # noqa: ARG002 - nothing is written
        return self.survey()


def opened(settings: Settings, *, shared: bool) -> tuple[PostgresDatabase, OriginalRows]:
    place = f"{socket.gethostname()}:{settings.data_dir}" if shared else ""
    host = settings.host if settings.host not in ANY_ADDRESS else socket.gethostname()
    url = reached(host, settings.port)
    database = PostgresDatabase(parsed(settings.database_url, settings.name), place, url)
    return database, OriginalRows(database, settings.data_dir, settings.max_file_mb * 2**20)
