"""Ways to damage a database file, each decided by a random generator."""

import random
from collections.abc import Callable
from pathlib import Path

import apsw
import sqlite_vec

from kb.store.sqlite import checksums

TABLES = (
    "documents",
    "chunks",
    "tags",
    "texts",
    "note_versions",
    "line_boxes",
    "jobs",
    "meta",
    "migrations",
    "sqlite_sequence",
    "checksums",
    "chunks_fts_content",
    "chunks_fts_data",
    "chunks_fts_docsize",
    "chunks_fts_config",
    "chunks_vec_rowids",
    "chunks_vec_chunks",
    "chunks_vec_vector_chunks00",
)
# SQL expressions: NULL, integers at the edges of what arrays hold, other types, paths, texts that are no UTF-8, and
# JSON that is deep, large or none. `{c}` is the column's own value.
VALUES = (
    "NULL",
    "0",
    "-1",
    "1",
    "4294967297",
    "2147483647",
    "2147483648",
    "268435456",
    "9223372036854775807",
    "-9223372036854775807 - 1",
    "1e308",
    "-0.5",
    "'text'",
    "''",
    "'../../../etc/passwd'",
    "x''",
    "x'ff00fe'",
    "zeroblob(100000)",
    "CAST(x'c3' AS TEXT)",
    "CAST(x'61ff62' AS TEXT)",
    "char(0, 55296, 65535)",
    "replace(hex(zeroblob(5000)), '00', '[')",
    "replace(hex(zeroblob(400)), '00', '{\"a\":') || '1' || replace(hex(zeroblob(400)), '00', '}')",
    "replace(hex(zeroblob(500000)), '00', 'ab ')",
    "'{\"a\": NaN}'",
    "'[1, 2]'",
    "'[{\"part\": 1}]'",
    "{c} + 1",
    "{c} || 'x'",
    "CAST({c} AS BLOB)",
    "substr({c}, 1, length({c}) / 2)",
    "randomblob(length({c}))",
    "replace(hex(zeroblob(length({c}) / 4)), '00', '0000c07f')",
)


def damage(path: Path, chance: random.Random) -> str:
    """Damage the file in one way; what was done."""
    ways: list[Callable[[Path, random.Random], str]] = [bits, bits, pages, cut, values, values, values, values, vectors]
    return chance.choice(ways)(path, chance)


def bits(path: Path, chance: random.Random) -> str:
    data = bytearray(path.read_bytes())
    places = [chance.randrange(len(data) * 8) for _ in range(chance.choice((1, 1, 1, 4, 30)))]
    for place in places:
        data[place // 8] ^= 1 << place % 8
    path.write_bytes(data)
    return f"flipped bits {places}"


def pages(path: Path, chance: random.Random) -> str:
    data = bytearray(path.read_bytes())
    page = chance.randrange(len(data) // 4096)
    data[page * 4096 : page * 4096 + 4096] = chance.choice((bytes(4096), chance.randbytes(4096), b"\xff" * 4096))
    path.write_bytes(data)
    return f"overwrote page {page}"


def cut(path: Path, chance: random.Random) -> str:
    size = chance.randrange(path.stat().st_size)
    with path.open("rb+") as file:
        file.truncate(size)
    return f"cut to {size} bytes"


def vectors(path: Path, chance: random.Random) -> str:
    """Vectors of NaN, infinities or nothing, with checksums as if kb had written them, or without."""
    connection = opened(path)
    ((length,),) = connection.execute("SELECT length(vectors) FROM chunks_vec_vector_chunks00 LIMIT 1").fetchall()
    assert isinstance(length, int)
    number = chance.choice((b"\x00\x00\xc0\x7f", b"\x00\x00\x80\x7f", b"\xff\xff\x7f\x7f", b"\x01\x00\x00\x00"))
    blob = (number * (length // 4))[: chance.choice((length, length, length // 2, 3))]
    connection.execute("UPDATE chunks_vec_vector_chunks00 SET vectors = ?", (blob,))
    return f"vectors of {number.hex()}, {len(blob)} bytes" + restamped(connection, chance)


def values(path: Path, chance: random.Random) -> str:
    """Other values in columns, with checksums as if kb had written them, or without."""
    connection = opened(path)
    done = []
    for _ in range(chance.choice((1, 1, 3))):
        table = chance.choice(TABLES)
        columns = [name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")]
        column = chance.choice(columns)
        value = chance.choice(VALUES).replace("{c}", column)
        some = chance.choice(("", f" WHERE rowid = (SELECT max(rowid) FROM {table})"))
        if table == "checksums":
            some = ""
        try:
            connection.execute(f"UPDATE {table} SET {column} = {value}{some}")
            done.append(f"{table}.{column} = {value[:40]}{some}")
        except apsw.Error as refused:
            done.append(f"{table}.{column} = {value[:40]} was refused: {refused}")
    return "; ".join(done) + restamped(connection, chance)


def opened(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path))
    connection.enable_load_extension(True)
    connection.load_extension(sqlite_vec.loadable_path())
    connection.pragma("synchronous", "OFF")
    return connection


def restamped(connection: apsw.Connection, chance: random.Random) -> str:
    try:
        if chance.random() < 0.5:
            return ""
        try:
            checksums.stamp_all(connection, {})
            checksums.stamp_vectors(connection)
        except (apsw.Error, UnicodeDecodeError, ValueError, TypeError) as unable:
            return f", some checksums made anew ({type(unable).__name__})"
        return ", checksums made anew"
    finally:
        connection.close()
