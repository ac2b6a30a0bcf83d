"""A checksum for every row: they prove that documents, texts, full text and vectors are as they were written.

`Changes` notes which rows a transaction touches, as SQLite reports them, and stamps them before the commit, so that no
statement can omit it. A row that is already wrong stays wrong: changing one of its columns does not make the others
right. `changed` finds the rows that are not as they were stamped.

The tables in which virtual tables keep their rows are checked like any other. FTS5 itself compares its index with them.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from hashlib import blake2b, shake_128
from typing import Any, Final

import apsw
import numpy as np
from numpy.typing import NDArray

from kb.store.backend import Vector

# The number of a table in the file never changes.
PARTS: Final = {
    "documents": 1,
    "tags": 2,
    "texts": 3,
    "note_versions": 4,
    "chunks": 5,
    "chunks_fts_content": 6,
    "jobs": 7,
    "meta": 8,
    "line_boxes": 10,
    "folders": 12,
}
VECTORS: Final = 9  # of `chunks_vec`, by chunk id
FULLTEXT: Final = "chunks_fts_content"
VECTOR_ROWS: Final = "chunks_vec_rowids"  # has a row for every vector
# Rows of these are changed column by column; in the others a change replaces all of a row.
CHANGED_BY_COLUMN: Final = ("documents", "chunks", "jobs")
# The column `chunk_count`, which the doctor compares with the chunks and sets. New columns come after all others.
DERIVED: Final = {"documents": 19}

UNREADABLE: Final = "unreadable"  # in place of a checksum
STAMP = "INSERT OR REPLACE INTO checksums (part, id, checksum) VALUES (?, ?, ?)"
FORGET = "DELETE FROM checksums WHERE part = ? AND id = ?"
STAMPED = "SELECT checksum FROM checksums WHERE part = ? AND id = ?"
# A row without a checksum is wrong too.
COMPARED = """
SELECT t.rowid, c.checksum, t.* FROM {table} t LEFT JOIN checksums c ON c.part = {part} AND c.id = t.rowid
"""
LOST = "SELECT id FROM checksums WHERE part = {part} AND id NOT IN (SELECT rowid FROM {table})"
EVERY_ID = "SELECT id FROM checksums WHERE part = {part} UNION SELECT rowid FROM {table}"

_encoded = json.JSONEncoder(default=bytes.hex, separators=(",", ":")).encode


class Changes:
    """The rows that a write transaction touches, as SQLite's hook reports them before each change."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._rows: defaultdict[str, dict[int, int | str | None]] = defaultdict(dict)  # the checksum before
        self._vectors: set[int] = set()
        connection.preupdate_hook(self._note, id="checksums")

    def _note(self, change: apsw.PreUpdate) -> None:
        table = change.table_name
        if table == VECTOR_ROWS:
            self._vectors.add(change.rowid)
        elif table in PARTS:
            rows = self._rows[table]
            if change.op != "UPDATE" or table not in CHANGED_BY_COLUMN:
                rows[change.rowid] = None
            elif change.rowid not in rows:
                rows[change.rowid] = before(table, change)
            if change.rowid_new != change.rowid:
                rows[change.rowid_new] = None

    def forget(self) -> None:
        self._rows.clear()
        self._vectors.clear()

    def stamp(self) -> None:
        """Update the checksums of the rows that the transaction touched."""
        for table, rows in self._rows.items():
            self._stamp_rows(table, rows)
        if self._vectors:
            self._stamp_vectors()
        self.forget()

    def _stamp_rows(self, table: str, rows: Mapping[int, int | str | None]) -> None:
        part, select = PARTS[table], f"SELECT * FROM {table} WHERE rowid = ?"
        stamps, gone = [], []
        for id_, was in rows.items():
            row = self._connection.execute(select, (id_,)).fetchone()
            if row is None:
                gone.append((part, id_))
            elif was is None or self._connection.execute(STAMPED, (part, id_)).fetchone() == (was,):
                stamps.append((part, id_, checksum(table, row)))
        self._connection.executemany(STAMP, stamps)
        self._connection.executemany(FORGET, gone)

    def _stamp_vectors(self) -> None:
        stamps, gone = [], []
        for id_ in self._vectors:
            found = self._connection.execute("SELECT embedding FROM chunks_vec WHERE chunk_id = ?", (id_,)).fetchone()
            if found is None:
                gone.append((VECTORS, id_))
            else:
                stamps.append((VECTORS, id_, int(sums(np.frombuffer(found[0], "<f4")[None])[0])))
        self._connection.executemany(STAMP, stamps)
        self._connection.executemany(FORGET, gone)


def before(table: str, change: apsw.PreUpdate) -> int | str:
    try:
        return checksum(table, change.old)
    except UnicodeDecodeError:
        return UNREADABLE


def checksum(table: str, row: Sequence[Any] | None) -> int:
    """64 bits that differ if any value of the row differs."""
    values = list(row or ())
    if table in DERIVED:
        del values[DERIVED[table]]
    return int.from_bytes(blake2b(_encoded(values).encode(), digest_size=8).digest(), "little", signed=True)


def sums(vectors: Vector) -> NDArray[np.int64]:
    """A checksum for each row: its words times odd numbers, added up. A hundred thousand rows take ten milliseconds."""
    rows = np.ascontiguousarray(vectors)
    words = rows.view("<u8") if rows.shape[1] % 2 == 0 else rows.view("<u4").astype("<u8")
    found: NDArray[np.int64] = np.einsum("ij,j->i", words, factors(words.shape[1])).view(np.int64)
    return found


@cache
def factors(count: int) -> NDArray[np.uint64]:
    """Odd factors, so that every bit of a word changes the product."""
    return np.frombuffer(shake_128(b"kb vectors").digest(8 * count), "<u8") | np.uint64(1)


def changed(connection: apsw.Connection) -> dict[str, list[int]]:
    """Rows that are not as they were stamped, by table, without those of virtual tables."""
    return by_table({table: differing(connection, table) for table in parts(connection) if table != FULLTEXT})


def lost(connection: apsw.Connection) -> dict[str, list[int]]:
    """Rows that were stamped and are gone, by table, without those of virtual tables."""
    return by_table(
        {
            table: [int(id_) for (id_,) in connection.execute(LOST.format(table=table, part=part))]
            for table, part in parts(connection).items()
            if table != FULLTEXT
        }
    )


def parts(connection: apsw.Connection) -> dict[str, int]:
    """The tables with checksums that a file has: one that an older version made lacks some."""
    there = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    return {table: part for table, part in PARTS.items() if table in there}


def by_table(found: dict[str, list[int]]) -> dict[str, list[int]]:
    return {table: ids for table, ids in found.items() if ids}


def differing(connection: Any, table: str) -> list[int]:
    query = COMPARED.format(table=table, part=PARTS[table])
    try:
        return [id_ for id_, was, *row in connection.execute(query) if was != checksum(table, row)]
    except (UnicodeDecodeError, apsw.CorruptError):
        return list(one_by_one(connection, table, PARTS[table]))


def one_by_one(connection: Any, table: str, part: int) -> Iterator[int]:
    """The differing rows of a table in which some cannot be read."""
    for (id_,) in connection.execute(EVERY_ID.format(table=table, part=part)).fetchall():
        try:
            row = connection.execute(f"SELECT * FROM {table} WHERE rowid = ?", (id_,)).fetchone()
            is_sound = connection.execute(STAMPED, (part, id_)).fetchone() == (checksum(table, row),)
        except (UnicodeDecodeError, apsw.CorruptError):
            is_sound = False
        if not is_sound:
            yield id_


def forget_lost(connection: apsw.Connection) -> None:
    """Delete the checksums of rows that are gone."""
    for table, ids in lost(connection).items():
        connection.executemany(FORGET, ((PARTS[table], id_) for id_ in ids))


def forget_part(connection: apsw.Connection, part: int) -> None:
    """Delete all checksums of a virtual table that was made anew: SQLite reports no rows when it drops a table."""
    connection.execute("DELETE FROM checksums WHERE part = ?", (part,))


def stamp_all(connection: apsw.Connection, wrong: Mapping[str, Sequence[int]]) -> None:
    """Stamp every row except those that were wrong before."""
    for table, part in parts(connection).items():
        skipped = set(wrong.get(table, ()))
        rows = connection.execute(f"SELECT rowid, * FROM {table}")
        connection.executemany(STAMP, ((part, id_, checksum(table, row)) for id_, *row in rows if id_ not in skipped))


def stamp_vectors(connection: apsw.Connection) -> None:
    """Stamp every vector."""
    rows = connection.execute("SELECT chunk_id, embedding FROM chunks_vec")
    connection.executemany(
        STAMP, ((VECTORS, id_, int(sums(np.frombuffer(vector, "<f4")[None])[0])) for id_, vector in rows)
    )
