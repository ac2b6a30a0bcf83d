"""Make a damaged database file whole again: every row that can be read goes into a new one.

SQLite cannot drop a table whose pages are damaged, so nothing is mended in place. Documents, texts, notes and tags are
the truth: when one of their rows cannot be read, the file stays as it is. Indexes, full text, vectors and chunks are
made from them: what cannot be read of those is left out, for the doctor to make again.

Rows keep their checksums. A row whose checksum cannot be read gets a new one.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw
import numpy as np

from kb.store.backend import Salvage, Vector
from kb.store.sqlite import checksums
from kb.store.sqlite.connection import SQLiteTransaction, connect, translated
from kb.store.sqlite.database import SQLiteDatabase
from kb.store.sqlite.migrate import Segment, migrate
from kb.store.sqlite.vectors import SQLiteVectors

# Tables that may lose rows. Unreadable jobs are dropped: without a queue, nothing could be added at all. Folders can be
# watched again.
EXPENDABLE = {"chunks", "jobs", "meta", "line_boxes", "folders", "folder_files", "links", "names"}
# Without those of SQLite and inside virtual tables. The new file has its own record of migrations.
TABLES = """
SELECT name FROM sqlite_schema
 WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%' AND name NOT IN ('migrations', 'checksums')
   AND name NOT GLOB 'sqlite_*' AND name NOT GLOB 'chunks_fts_*' AND name NOT GLOB 'chunks_vec_*'
"""
LONGEST_GAP = 20_000  # successive row ids that cannot be read, until the rest of a table is given up
UNIT = (0.99, 1.01)  # the length of every vector that the model makes

UNREADABLE = (apsw.CorruptError, UnicodeDecodeError)


@dataclass
class Gap:
    """Row ids that cannot be read; `last` is None when nothing after the first can be read either."""

    first: int
    last: int | None = None

    def __str__(self) -> str:
        if self.last is None:
            return f"{self.first} and later"
        return str(self.first) if self.last == self.first else f"{self.first} to {self.last}"


class TableReader:
    """Reads a table by row id, never by an index, and skips what cannot be read."""

    def __init__(self, connection: apsw.Connection, table: str, names: Sequence[str]) -> None:
        self._connection = connection
        self._select = f"SELECT _rowid_, {', '.join(names)} FROM {table} NOT INDEXED"
        self.gaps: list[Gap] = []

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Each readable row, with its row id first."""
        start: int | None = -(2**63)
        while start is not None:
            try:
                for row in self._connection.execute(f"{self._select} WHERE _rowid_ >= ? ORDER BY _rowid_", (start,)):
                    yield row
                    start = int(row[0]) + 1
            except UNREADABLE:
                start = self._behind(max(start, 1))
            else:
                return

    def row(self, row_id: int) -> tuple[Any, ...] | None:
        """The row, None if it is not there or cannot be read."""
        try:
            return self._connection.execute(f"{self._select} WHERE _rowid_ = ?", (row_id,)).fetchone()
        except UNREADABLE:
            return None

    def _behind(self, first: int) -> int | None:
        """The next row id that can be read; None if there is none."""
        gap = Gap(first)
        self.gaps.append(gap)
        following = f"{self._select} WHERE _rowid_ >= ? ORDER BY _rowid_ LIMIT 1"
        for row_id in range(first + 1, first + 1 + LONGEST_GAP):
            try:
                self._connection.execute(following, (row_id,)).fetchall()
            except UNREADABLE:
                continue
            gap.last = row_id - 1
            return row_id
        return None


@dataclass(frozen=True)
class SQLiteMender:
    _database: SQLiteDatabase
    _segment: Segment

    def survey(self) -> Salvage:
        with translated(), closing(plain(self._database.path)) as source:
            return salvage_of({table: gaps_in(source, table) for table in tables(source)})

    def mend(self, room: Path) -> Salvage:
        with self._database.replacing() as replace:
            with closing(plain(self._database.path)) as source:
                room.unlink(missing_ok=True)
                same_pages(source, room)
                migrate(room, self._segment)
                with closing(connect(room)) as target:
                    done = copied(source, target)
            if not done.lost:
                replace(room)
        return done


def plain(path: Path) -> apsw.Connection:
    """A connection without sqlite-vec: it reads shadow tables also if the virtual table is damaged."""
    connection = apsw.Connection(str(path))
    connection.pragma("cell_size_check", "ON")
    connection.pragma("trusted_schema", "OFF")
    return connection


def gaps_in(connection: apsw.Connection, table: str) -> list[Gap]:
    reader = TableReader(connection, table, columns(connection, table))
    for _ in reader.rows():
        pass
    return reader.gaps


def same_pages(source: apsw.Connection, room: Path) -> None:
    """Create an empty file with the page size of the source, as replacing requires it."""
    with closing(apsw.Connection(str(room))) as connection:
        connection.pragma("page_size", source.pragma("page_size"))
        connection.pragma("journal_mode", "wal")


def copied(source: apsw.Connection, target: apsw.Connection) -> Salvage:
    """Copy every readable row, in one transaction."""
    target.pragma("foreign_keys", "OFF")
    source.execute("BEGIN")
    target.execute("BEGIN")
    gaps = {table: copy_table(source, target, table) for table in tables(target)}
    copy_sequences(source, target)
    copy_fulltext(source, target)
    copy_vectors(source, target)
    target.execute("COMMIT")
    source.execute("ROLLBACK")
    return salvage_of(gaps)


def copy_table(source: apsw.Connection, target: apsw.Connection, table: str) -> list[Gap]:
    names = columns(target, table)
    reader = TableReader(source, table, names)
    insert = f"INSERT INTO {table} (_rowid_, {', '.join(names)}) VALUES ({', '.join('?' * (len(names) + 1))})"
    for row in reader.rows():
        try:
            target.execute(insert, row)
        except apsw.ConstraintError:  # the row is damaged
            reader.gaps.append(Gap(row[0], row[0]))
            continue
        if table in checksums.PARTS:
            stamp(target, checksums.PARTS[table], row[0], stamped(source, table, row[0], row[1:]))
    return reader.gaps


def stamped(source: apsw.Connection, table: str, row_id: int, row: Sequence[Any]) -> Any:
    """The stored checksum of a row, None if there is none; a new one where it cannot be read."""
    try:
        found = source.execute(checksums.STAMPED, (checksums.PARTS[table], row_id)).fetchone()
    except UNREADABLE:
        return checksums.checksum(table, row)
    return found[0] if found else None


def stamp(target: apsw.Connection, part: int, row_id: int, checksum: int | None) -> None:
    if checksum is not None:
        target.execute(checksums.STAMP, (part, row_id, checksum))


def copy_sequences(source: apsw.Connection, target: apsw.Connection) -> None:
    """Copy the sequences, so that no id is given twice."""
    own, transaction = set(tables(target)), SQLiteTransaction(target)
    for _, name, seq in TableReader(source, "sqlite_sequence", ("name", "seq")).rows():
        if name in own:
            transaction.raise_ids(name, seq)


def copy_fulltext(source: apsw.Connection, target: apsw.Connection) -> None:
    """Copy the terms of every chunk, except damaged ones."""
    fulltext, known, table = SQLiteTransaction(target).fulltext, chunk_ids(target), checksums.FULLTEXT
    for _, chunk_id, *terms in TableReader(source, table, ("id", "c0", "c1", "c2")).rows():
        checksum = checksums.checksum(table, (chunk_id, *terms))
        if chunk_id in known and stamped(source, table, chunk_id, (chunk_id, *terms)) == checksum:
            fulltext.add(chunk_id, *terms)
            stamp(target, checksums.PARTS[table], chunk_id, checksum)


def copy_vectors(source: apsw.Connection, target: apsw.Connection) -> None:
    """Copy the vectors, a thousand of which are in one blob, except damaged ones."""
    vectors, known = SQLiteTransaction(target).vectors, chunk_ids(target)
    vectors.clear(dimensions := SQLiteVectors(source).dimensions())
    blobs = TableReader(source, "chunks_vec_vector_chunks00", ("vectors",))
    for block, validity, rowids in TableReader(source, "chunks_vec_chunks", ("validity", "rowids")).rows():
        found = blobs.row(block)
        ids = np.frombuffer(rowids, "<i8")
        if found is None or len(found[1]) != 4 * dimensions * len(ids) or 8 * len(validity) != len(ids):
            continue
        rows = np.frombuffer(found[1], "<f4").reshape(len(ids), dimensions)
        valid = np.unpackbits(np.frombuffer(validity, np.uint8), bitorder="little").astype(np.bool_)
        sums = checksums.sums(rows).tolist()
        for at in np.flatnonzero(valid):
            chunk_id = int(ids[at])
            if chunk_id in known and vector_stamp(source, chunk_id, rows[at], sums[at]) == sums[at]:
                known.discard(chunk_id)  # one vector per chunk
                vectors.add(chunk_id, rows[at])
                stamp(target, checksums.VECTORS, chunk_id, sums[at])


def vector_stamp(source: apsw.Connection, chunk_id: int, vector: Vector, own: int) -> Any:
    """The stored checksum of a vector; where it cannot be read, `own` if the vector has the length 1."""
    try:
        found = source.execute(checksums.STAMPED, (checksums.VECTORS, chunk_id)).fetchone()
    except UNREADABLE:
        with np.errstate(all="ignore"):
            return own if UNIT[0] < np.linalg.norm(vector) < UNIT[1] else None
    return found[0] if found else None


def chunk_ids(connection: apsw.Connection) -> set[int]:
    return {int(id_) for (id_,) in connection.execute("SELECT id FROM chunks")}


def tables(connection: apsw.Connection) -> list[str]:
    return [str(name) for (name,) in connection.execute(TABLES)]


def columns(connection: apsw.Connection, table: str) -> list[str]:
    return [str(name) for (name,) in connection.execute("SELECT name FROM pragma_table_info(?)", (table,))]


def salvage_of(gaps: dict[str, list[Gap]]) -> Salvage:
    said = {table: ", ".join(map(str, found)) for table, found in gaps.items() if found}
    return Salvage(
        lost={table: rows for table, rows in said.items() if table not in EXPENDABLE},
        left_out={table: rows for table, rows in said.items() if table in EXPENDABLE},
    )
