"""Runs statements on a connection, which it gets when the first statement needs it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import psycopg
from numpy.typing import NDArray

from kb.store.backend import Row
from kb.store.postgres.statements import escaped_params, translated, unescaped_rows

Connection = psycopg.Connection[tuple[Any, ...]]
Cursor = psycopg.Cursor[tuple[Any, ...]]


class Runner:
    """`begin` returns the connection, inside a transaction; a read that needs no statement needs no connection."""

    def __init__(self, begin: Callable[[], Connection]) -> None:
        self._begin = begin
        self.connection: Connection | None = None

    def execute(self, sql: str, params: Mapping[str, Any] | None = None) -> Cursor:
        if self.connection is None:
            self.connection = self._begin()
        return executed(self.connection, sql, params)

    def run(self, sql: str, params: Mapping[str, Any] | None = None) -> None:
        self.execute(sql, params)

    def run_many(self, sql: str, params: Sequence[Mapping[str, Any]]) -> None:
        """All at once: psycopg sends them without waiting for each answer."""
        self._many(sql, params, returning=False)

    def values(self, sql: str, params: Sequence[Mapping[str, Any]]) -> list[Any]:
        cursor = self._many(sql, params, returning=True)
        found = []
        for _ in params:
            found += [row[0] for row in unescaped_rows(cursor.fetchall())]
            cursor.nextset()
        return found

    def _many(self, sql: str, params: Sequence[Mapping[str, Any]], *, returning: bool) -> Cursor:
        if self.connection is None:
            self.connection = self._begin()
        cursor = self.connection.cursor(binary=True)
        cursor.executemany(translated(sql), [escaped_params(one) for one in params], returning=returning)
        return cursor

    def rows(self, sql: str, params: Mapping[str, Any] | None = None) -> list[Row]:
        cursor = self.execute(sql, params)
        names = [column.name for column in cursor.description or ()]
        return [dict(zip(names, values, strict=True)) for values in unescaped_rows(cursor.fetchall())]

    def tuples(self, sql: str, params: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        return unescaped_rows(self.execute(sql, params).fetchall())

    def raw(self, sql: str, params: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """Rows whose texts, if there are any, the caller unescapes."""
        return self.execute(sql, params).fetchall()

    def row(self, sql: str, params: Mapping[str, Any] | None = None) -> Row | None:
        return next(iter(self.rows(sql, params)), None)

    def column(self, sql: str, params: Mapping[str, Any] | None = None) -> list[Any]:
        return [values[0] for values in self.tuples(sql, params)]

    def value(self, sql: str, params: Mapping[str, Any] | None = None) -> Any:
        return next(iter(self.column(sql, params)), None)

    def integers(self, columns: Sequence[str], rest: str, params: Mapping[str, Any] | None = None) -> NDArray[np.int64]:
        row = " || ".join(f"int8send(({column})::bigint)" for column in columns)
        found = self.value(f"SELECT string_agg({row}, ''::bytea) FROM {rest}", params)
        return np.frombuffer(found or b"", ">i8").astype(np.int64).reshape(-1, len(columns))


def executed(connection: Connection, sql: str, params: Mapping[str, Any] | None = None) -> Cursor:
    return connection.cursor(binary=True).execute(translated(sql), escaped_params(params))
