"""One unit of work on a SQLite connection."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import apsw
import numpy as np
from numpy.typing import NDArray

from kb.core.changes import Change
from kb.core.errors import damaged
from kb.store.backend import Row
from kb.store.sqlite import checksums
from kb.store.sqlite.connection import copy_into
from kb.store.sqlite.fulltext import SQLiteFullText, parsed
from kb.store.sqlite.vectors import SQLiteVectors
from kb.store.stored import readable

# No two workers get the same job: each claims inside a write transaction, and there is one writer at a time.
CLAIM = """
UPDATE jobs SET status = 'running', started_at = :now, attempts = attempts + 1
 WHERE seq = (SELECT seq FROM jobs
               WHERE status = 'queued' AND lane = :lane AND (not_before IS NULL OR not_before <= :now)
               ORDER BY seq LIMIT 1)
RETURNING *
"""


class SQLiteTransaction:
    """One unit of work on one connection."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._after: list[Callable[[], None]] = []
        self.told: list[Change] = []
        self.fulltext = SQLiteFullText(connection)
        self.vectors = SQLiteVectors(connection)

    def run(self, sql: str, params: Mapping[str, Any] | None = None) -> None:
        self._connection.execute(sql, params).fetchall()

    def run_many(self, sql: str, params: Sequence[Mapping[str, Any]]) -> None:
        self._connection.executemany(sql, params).fetchall()

    def rows(self, sql: str, params: Mapping[str, Any] | None = None) -> list[Row]:
        cursor = self._connection.execute(sql, params)
        first = cursor.fetchone()
        if first is None:
            return []
        names = [column[0] for column in cursor.get_description()]
        return [dict(zip(names, values, strict=True)) for values in without_bytes([first, *cursor])]

    def tuples(self, sql: str, params: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        return without_bytes(self._connection.execute(sql, params).fetchall())

    def row(self, sql: str, params: Mapping[str, Any] | None = None) -> Row | None:
        return next(iter(self.rows(sql, params)), None)

    def column(self, sql: str, params: Mapping[str, Any] | None = None) -> list[Any]:
        return [values[0] for values in without_bytes(self._connection.execute(sql, params).fetchall())]

    def value(self, sql: str, params: Mapping[str, Any] | None = None) -> Any:
        return next(iter(self.column(sql, params)), None)

    def integers(self, columns: Sequence[str], rest: str, params: Mapping[str, Any] | None = None) -> NDArray[np.int64]:
        row = " || ' ' || ".join(columns)
        found = self.value(f"SELECT group_concat({row}, ' ') FROM {rest}", params)
        with readable("numbers"):
            return parsed(found).reshape(-1, len(columns))

    def chunk_ids_given(self) -> int:
        return int(self.value("SELECT CAST(seq AS INTEGER) FROM sqlite_sequence WHERE name = 'chunks'") or 0)

    def claim_job(self, lane: str, now: str) -> Row | None:
        return self.row(CLAIM, {"lane": lane, "now": now})

    def copy_to(self, path: Path) -> None:
        copy_into(self._connection, path)

    def changed_rows(self) -> dict[str, list[int]]:
        return checksums.changed(self._connection)

    def lost_rows(self) -> dict[str, list[int]]:
        return checksums.lost(self._connection)

    def forget_lost_rows(self) -> None:
        checksums.forget_lost(self._connection)

    def broken_references(self) -> list[str]:
        return [str(row["table"]) for row in self.rows("PRAGMA foreign_key_check")]

    def after_commit(self, action: Callable[[], None]) -> None:
        self._after.append(action)

    def tell(self, change: Change) -> None:
        self.told.append(change)

    def committed(self) -> None:
        for action in self._after:
            action()


def without_bytes(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return the rows; raise an error if one has bytes, which only a damaged file has in place of a text."""
    for row in rows:
        if bytes in map(type, row):
            raise damaged("The database has bytes in the place of a text.")
    return rows
