"""Copy a knowledge base from one store to another: every row with its id, full text and vectors.

Both stores have the same tables with the same columns; a test compares them. Originals are copied by the caller.
"""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from kb.store.backend import Row, Transaction, Vector

# Each table with its key, parents first. What is made from chunks comes with them.
TABLES: dict[str, tuple[str, ...]] = {
    "documents": ("id",),
    "tags": ("document_id", "tag"),
    "texts": ("document_id",),
    "note_versions": ("document_id", "version"),
    "line_boxes": ("document_id", "page"),
    "links": ("document_id", "position"),
    "names": ("document_id", "kind", "name"),
    "chunks": ("id",),
    "jobs": ("seq",),
    "folders": ("id",),
    "folder_files": ("folder_id", "path"),
}
# Which engine runs a job is true only where it runs.
LEFT_OUT = ("claimed_by", "lease_until")
NUMBERED = ("documents", "chunks", "jobs", "folders")  # give ids that are never given again
NEXT = "SELECT max(k) FROM (SELECT DISTINCT {by} AS k FROM {table} WHERE {by} > :after ORDER BY k LIMIT :limit) part"
SOME = "SELECT * FROM {table} WHERE {by} > :after AND {by} <= :last ORDER BY {key}"
AT_ONCE = {"texts": 20, "note_versions": 20, "line_boxes": 100, "folder_files": 1}
MANY = 500
LOADED = 65_536  # vectors: 100 MB

Step = Callable[[Transaction], None]


def steps(source: Transaction) -> Iterator[Step]:
    """What writes everything into an empty store, step by step: in one transaction, or in several."""
    for table in TABLES:
        for rows in batches(source, table):
            yield partial(insert, table=table, rows=rows)
            if table == "chunks":
                yield partial(add_terms, chunks=source.fulltext.terms_of([row["id"] for row in rows]))
    yield from vectors(source)
    yield partial(insert, table="meta", rows=source.rows("SELECT * FROM meta"))
    given = {table: source.ids_given(table) for table in NUMBERED}
    yield partial(raise_ids, given=given)


def batches(source: Transaction, table: str) -> Iterator[list[Row]]:
    """All rows of a table in the order of its key, some at a time."""
    after, limit = -(2**62), AT_ONCE.get(table, MANY)
    about = {"table": table, "by": TABLES[table][0], "key": ", ".join(TABLES[table])}
    while (last := source.value(NEXT.format(**about), {"after": after, "limit": limit})) is not None:
        rows = source.rows(SOME.format(**about), {"after": after, "last": last})
        yield [{name: value for name, value in row.items() if name not in LEFT_OUT} for row in rows]
        after = last


def add_terms(target: Transaction, *, chunks: list[tuple[int, list[str]]]) -> None:
    for chunk_id, terms in chunks:
        target.fulltext.add(chunk_id, "", "", " ".join(terms))


def vectors(source: Transaction) -> Iterator[Step]:
    """Vectors that are missing or damaged stay missing: the doctor makes them again."""
    dimensions = source.vectors.dimensions()
    if dimensions is None:
        return
    yield lambda target: target.vectors.clear(dimensions)
    ids = np.array(source.column("SELECT id FROM chunks ORDER BY id"), np.int64)
    for start in range(0, len(ids), LOADED):  # SQLite's are read all at once, however few are asked for
        some = ids[start : start + LOADED]
        rows = np.zeros((len(some), dimensions), np.float32)
        source.vectors.load(some, rows)
        sound = np.flatnonzero(rows.any(axis=1))
        for at in range(0, len(sound), MANY):
            part = sound[at : at + MANY]
            yield partial(add_vectors, chunk_ids=some[part].tolist(), rows=rows[part])


def add_vectors(target: Transaction, *, chunk_ids: list[int], rows: Vector) -> None:
    for chunk_id, row in zip(chunk_ids, rows, strict=True):
        target.vectors.add(chunk_id, row)


def insert(target: Transaction, *, table: str, rows: list[Row]) -> None:
    if rows:
        names = list(rows[0])
        values = ", ".join(f":{name}" for name in names)
        target.run_many(f"INSERT INTO {table} ({', '.join(names)}) VALUES ({values})", rows)


def raise_ids(target: Transaction, *, given: dict[str, int]) -> None:
    for table, highest in given.items():
        target.raise_ids(table, highest)


def clear(target: Transaction) -> None:
    """Delete every row."""
    target.fulltext.clear()
    target.vectors.clear()
    for table in ("meta", *reversed(TABLES)):
        target.run(f"DELETE FROM {table}")
