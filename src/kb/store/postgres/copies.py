"""A knowledge base in PostgreSQL as a file of SQLite, which backups hold whatever the store is; and the way back."""

from contextlib import closing
from pathlib import Path

import apsw

from kb.store import copying
from kb.store.backend import Transaction
from kb.store.sqlite.database import SQLiteDatabase
from kb.store.sqlite.migrate import migrate


def write(source: Transaction, path: Path) -> None:
    """Copy what the transaction sees into an empty file."""
    migrate(path, str.split)
    with closing(SQLiteDatabase(path)) as target:
        for step in copying.steps(source):
            with target.write(durable=False) as tx:
                step(tx)
    with closing(apsw.Connection(str(path))) as connection:
        connection.pragma("journal_mode", "delete")
