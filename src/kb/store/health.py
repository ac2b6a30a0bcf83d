"""Consistency of the database: what does not fit together, and how to mend it.

Documents in the trash are looked after like all others: they come back as they are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kb.core.metadata import MAX_BYTES, MAX_DEPTH, read
from kb.store import chunks
from kb.store.backend import Row, Transaction
from kb.store.rows import numbers

INDEXED = """
SELECT c.id FROM chunks c JOIN stored d ON d.id = c.document_id AND d.revision = c.revision ORDER BY c.id
"""
OF_NO_DOCUMENT = "SELECT id FROM chunks WHERE document_id NOT IN (SELECT id FROM documents)"
DROP_OF_NO_DOCUMENT = "DELETE FROM {table} WHERE document_id NOT IN (SELECT id FROM documents)"
CHILDREN = ("tags", "texts", "note_versions", "line_boxes", "links", "names")
PASSAGES = """
SELECT c.id, c.text, c.heading, CASE c.start_at WHEN -1 THEN '' ELSE d.title END AS title
  FROM chunks c JOIN stored d ON d.id = c.document_id AND d.revision = c.revision
 WHERE c.id IN ({ids})
"""
MISCOUNTED = """
SELECT d.id FROM stored d
  LEFT JOIN (SELECT document_id, revision, count(*) AS n, max(chunk_index) AS highest
               FROM chunks GROUP BY document_id, revision) c
    ON c.document_id = d.id AND c.revision = d.revision
 WHERE COALESCE(c.n, 0) <> d.chunk_count OR COALESCE(c.highest, -1) <> d.chunk_count - 1
 ORDER BY d.id
"""
OWNERS = """
SELECT DISTINCT d.id FROM chunks c JOIN stored d ON d.id = c.document_id WHERE c.id IN ({ids}) ORDER BY d.id
"""
OWNERS_OF_ROWS = "SELECT DISTINCT document_id FROM {table} WHERE rowid IN ({rowids}) ORDER BY document_id"
DROP_ENDED = "DELETE FROM jobs WHERE seq IN ({ids}) AND status NOT IN ('queued', 'running')"
WITHOUT_METADATA_PASSAGE = """
SELECT d.id, d.title, d.metadata FROM stored d
 WHERE d.metadata <> '{}' AND NOT EXISTS
       (SELECT 1 FROM chunks c WHERE c.document_id = d.id AND c.revision = d.revision AND c.start_at = -1)
 ORDER BY d.id
"""
# Candidates: `kb.core.metadata` decides which are beyond the limits.
LARGE_METADATA = """
SELECT id, metadata FROM stored
 WHERE length(metadata) > :characters
    OR length(metadata) - length(replace(replace(metadata, '{', ''), '[', '')) > :levels
 ORDER BY id
"""
# `accepted` is 0 for what came from v2, which kept no originals.
FILES = "SELECT id, content_hash, accepted > 0 AS ours FROM stored WHERE doc_type <> 'note' ORDER BY id"


@dataclass(frozen=True, slots=True)
class Coverage:
    """Where a derived index and the chunks disagree, by chunk id."""

    missing: list[int]  # chunks that it should have and does not
    stray: list[int]  # what it has of chunks that are not there


def fulltext_coverage(tx: Transaction) -> Coverage:
    return coverage(tx, tx.fulltext.ids(), tx.fulltext.unsound())


def vector_coverage(tx: Transaction) -> Coverage:
    return coverage(tx, tx.vectors.ids(), tx.vectors.unsound())


def coverage(tx: Transaction, indexed: NDArray[np.int64], unsound: list[int]) -> Coverage:
    """Compare an index with the chunks. A damaged entry counts as missing, as it can be made again."""
    wanted, every = ids(tx, INDEXED), ids(tx, "SELECT id FROM chunks")
    sound = np.setdiff1d(indexed, np.array(unsound, np.int64))
    return Coverage(np.setdiff1d(wanted, sound).tolist(), np.setdiff1d(indexed, every).tolist())


def ids(tx: Transaction, sql: str) -> NDArray[np.int64]:
    return np.array(tx.column(sql), np.int64)


def drop_of_no_document(tx: Transaction) -> None:
    """Delete the rows of documents that are not there: nothing can reach them."""
    chunks.remove(tx, tx.column(OF_NO_DOCUMENT))
    for table in CHILDREN:
        tx.run(DROP_OF_NO_DOCUMENT.format(table=table))


def passages(tx: Transaction, chunk_ids: Sequence[int]) -> list[Row]:
    """Those of these chunks that are in use, with what their index entries are made from."""
    return tx.rows(PASSAGES.format(ids=numbers(chunk_ids)))


def set_fulltext(tx: Transaction, chunk_id: int, columns: Sequence[Sequence[str]]) -> None:
    title, heading, body = (" ".join(terms) for terms in columns)
    tx.fulltext.remove([chunk_id])
    tx.fulltext.add(chunk_id, title, heading, body)
    length = sum(len(terms) for terms in columns)
    tx.run("UPDATE chunks SET terms = :length WHERE id = :id", {"id": chunk_id, "length": length})


def miscounted(tx: Transaction) -> list[int]:
    """Documents whose `chunk_count` is wrong."""
    return tx.column(MISCOUNTED)


def documents_of(tx: Transaction, chunk_ids: Sequence[int]) -> list[int]:
    """The documents that these chunks belong to."""
    return tx.column(OWNERS.format(ids=numbers(chunk_ids)))


def with_damage(tx: Transaction, rows: Mapping[str, Sequence[int]]) -> dict[str, list[int]]:
    """What these rows are about, by what is wrong with it: the ids of documents, or of jobs."""
    found = {"document": sorted(rows.get("documents", ())), "text of document": sorted(rows.get("texts", ()))}
    for about, table in (
        ("version of note", "note_versions"),
        ("tag of document", "tags"),
        ("boxes of lines of document", "line_boxes"),
    ):
        if table in rows:
            found[about] = tx.column(OWNERS_OF_ROWS.format(table=table, rowids=numbers(rows[table])))
    found |= {"job": sorted(rows.get("jobs", ())), "record of the index": sorted(rows.get("meta", ()))}
    return {about: ids for about, ids in found.items() if ids}


def drop_ended_jobs(tx: Transaction, sequence: Sequence[int]) -> None:
    """Delete those of these jobs that have ended: their documents stay."""
    tx.run(DROP_ENDED.format(ids=numbers(sequence)))


def without_metadata_passage(tx: Transaction) -> list[Row]:
    """Documents that have metadata and no passage made from it."""
    return tx.rows(WITHOUT_METADATA_PASSAGE)


def files(tx: Transaction) -> list[Row]:
    """Every document that has an original, or had one."""
    return tx.rows(FILES)


def metadata_beyond_limits(tx: Transaction) -> list[int]:
    """The documents whose metadata is too deep or too large to be shown: an older version took any."""
    rows = tx.rows(LARGE_METADATA, {"characters": MAX_BYTES // 4, "levels": MAX_DEPTH})
    return [row["id"] for row in rows if read(row["metadata"]) is None]
