"""Full text in FTS5: three columns of pre-segmented terms, one row per chunk.

FTS5 is the durable index. Its own ranking is not used: its idf ignores terms that half of a small knowledge base
holds, and reading rows one by one into Python is the slow part. So a term's postings come out in one aggregated
string, and BM25 is computed over arrays (`kb.search.keyword`).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import apsw
import numpy as np
from numpy.typing import NDArray

from kb.core.arrays import lengths_of, starts_of
from kb.store.backend import Postings
from kb.store.rows import readable
from kb.store.sqlite import checksums

# Every occurrence of a term, as the chunk's id: one string for all of them (a tenth of the time of rows).
POSTINGS = "SELECT group_concat(doc, ' ') FROM temp.chunks_fts_terms WHERE term = ?"
PIECE = 2**17  # characters: a millisecond
# Temporary tables of each connection, made before any transaction: a rollback would remove them, and with them every
# prepared statement.
VOCABULARY = """
CREATE VIRTUAL TABLE temp.chunks_fts_terms USING fts5vocab(main, chunks_fts, instance);
CREATE VIRTUAL TABLE temp.chunks_fts_counts USING fts5vocab(main, chunks_fts, row);
"""


@dataclass
class SQLiteFullText:
    _connection: apsw.Connection

    def add(self, chunk_id: int, title: str, heading: str, body: str) -> None:
        self._connection.execute(
            "INSERT INTO chunks_fts(rowid, title, heading, body) VALUES (?, ?, ?, ?)", (chunk_id, title, heading, body)
        )

    def remove(self, chunk_ids: Iterable[int]) -> None:
        self._connection.executemany("DELETE FROM chunks_fts WHERE rowid = ?", ((id_,) for id_ in chunk_ids))

    def clear(self) -> None:
        made_anew(self._connection, "chunks_fts")
        checksums.forget_part(self._connection, checksums.PARTS[checksums.FULLTEXT])
        self._connection.execute("INSERT INTO chunks_fts (chunks_fts, rank) VALUES ('secure-delete', 1)")

    def ids(self) -> NDArray[np.int64]:
        return np.array([id_ for (id_,) in self._connection.execute("SELECT rowid FROM chunks_fts")], np.int64)

    def unsound(self) -> list[int]:
        return checksums.differing(self._connection, checksums.FULLTEXT)

    def rebuild(self) -> None:
        self._connection.execute("INSERT INTO chunks_fts (chunks_fts) VALUES ('rebuild')")

    def postings(self, terms: Sequence[str]) -> list[Postings]:
        return [self._postings(term) for term in terms]

    def _postings(self, term: str) -> Postings:
        found = self._connection.execute(POSTINGS, (term,)).fetchone()
        with readable("full text"):
            occurrences = parsed(found[0] if found else None)
        occurrences.sort(kind="stable")  # FTS5 returns them so, but does not promise it
        starts = starts_of(occurrences)
        return Postings(occurrences.take(starts), lengths_of(starts, len(occurrences)).astype(np.float32))

    def vocabulary(self) -> Iterator[tuple[str, int]]:
        for term, chunks in self._connection.execute("SELECT term, doc FROM temp.chunks_fts_counts"):
            yield str(term), int(chunks)

    def terms_of(self, chunk_ids: Sequence[int]) -> list[tuple[int, list[str]]]:
        rows = self._connection.executemany(
            "SELECT rowid, title, heading, body FROM chunks_fts WHERE rowid = ?", ((id_,) for id_ in chunk_ids)
        )
        with readable("full text"):
            return [(int(id_), " ".join(columns).split()) for id_, *columns in rows]


def parsed(numbers: str | None) -> NDArray[np.int64]:
    """Parse whole numbers between blanks, a piece at a time, so that other threads can run."""
    pieces = [np.empty(0, np.int64)]
    start = 0
    while numbers and start < len(numbers):
        end = numbers.find(" ", start + PIECE)
        end = len(numbers) if end < 0 else end
        pieces.append(np.fromstring(numbers[start:end], dtype=np.int64, sep=" "))
        start = end
    return np.concatenate(pieces)


def made_anew(connection: apsw.Connection, table: str, change: Callable[[str], str] = str) -> None:
    """Drop a virtual table and create it again: deleting its rows one by one would be slow."""
    ((sql,),) = connection.execute("SELECT sql FROM sqlite_master WHERE name = ?", (table,)).fetchall()
    connection.execute(f"DROP TABLE {table}")
    connection.execute(change(str(sql)))
