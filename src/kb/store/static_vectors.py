"""The static vectors of chunks (`kb.embedding.static`): a column, so that they come and go with their chunk."""

from binascii import a2b_base64, b2a_base64
from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from kb.store import health
from kb.store.backend import Row, Transaction
from kb.store.rows import numbers

MISSING = "SELECT id FROM chunks WHERE static_vector IS NULL ORDER BY id LIMIT :limit"
COUNT_MISSING = "SELECT count(*) FROM chunks WHERE static_vector IS NULL"
SOME = "SELECT id, static_vector FROM chunks WHERE id IN ({ids}) AND static_vector IS NOT NULL"
# All of a stretch of ids: faster than naming each of them.
STRETCH = """
SELECT id, static_vector FROM chunks WHERE id > :after AND static_vector IS NOT NULL ORDER BY id LIMIT :limit
"""
SET = "UPDATE chunks SET static_vector = :vector WHERE id = :id"
DIMENSIONS = 128  # those of `kb.embedding.static`, which a test compares
NAMED_UP_TO = 500  # ids
AT_ONCE = 8192  # vectors: 1 MB

Ids = NDArray[np.int64]
StaticVectors = NDArray[np.int8]


def of(tx: Transaction, chunk_ids: Ids) -> Iterator[tuple[Ids, StaticVectors]]:
    """Those of these chunks that have one, some at a time, and perhaps of others."""
    if len(chunk_ids) <= NAMED_UP_TO:
        if len(chunk_ids):
            yield parsed(tx.tuples(SOME.format(ids=numbers(chunk_ids.tolist()))))
        return
    after, last = int(chunk_ids.min()) - 1, int(chunk_ids.max())
    while after < last and (rows := tx.tuples(STRETCH, {"after": after, "limit": AT_ONCE})):
        after = rows[-1][0]
        yield parsed(rows)


def parsed(rows: list[tuple[int, str]]) -> tuple[Ids, StaticVectors]:
    """Those that are sound: a damaged one is like none, and the doctor names its row."""
    found = [(id_, vector) for id_, text in rows if len(vector := decoded(text)) == DIMENSIONS]
    vectors = np.frombuffer(b"".join(vector for _, vector in found), np.int8)
    return np.array([id_ for id_, _ in found], np.int64), vectors.reshape(len(found), DIMENSIONS)


def decoded(text: str) -> bytes:
    try:
        return a2b_base64(text)
    except ValueError:
        return b""


def encoded(vector: StaticVectors) -> str:
    return b2a_base64(vector.tobytes(), newline=False).decode("ascii")


def missing(tx: Transaction, limit: int) -> list[Row]:
    """Passages without one, with what it is made from. Chunks that nothing uses any more are left out."""
    return health.passages(tx, tx.column(MISSING, {"limit": limit}))


def count_missing(tx: Transaction) -> int:
    return int(tx.value(COUNT_MISSING))


def put(tx: Transaction, vectors: Mapping[int, str]) -> None:
    tx.run_many(SET, [{"id": id_, "vector": vector} for id_, vector in vectors.items()])
