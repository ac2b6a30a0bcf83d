"""Chunks with their full text and vectors: the three are always written and removed together.

A chunk belongs to a revision of its document. Only the revision that the document names is published; the others
are being written, or were left behind by a process that died and are swept at start.
"""

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kb.core.metadata import shown
from kb.core.searches import Explanation, Hit
from kb.core.values import Anchor, Chunk
from kb.core.wire import made
from kb.store.backend import Database, Row, Transaction, Vector
from kb.store.rows import ALL, HIGHEST_ID, checked_id, listed, readable

log = logging.getLogger(__name__)

INSERT = """
INSERT INTO chunks (document_id, revision, chunk_index, text, heading, page, slide, sheet, start_at, end_at, terms,
                    text_key, hidden, place, static_vector)
VALUES (:document_id, :revision, :index, :text, :heading, :page, :slide, :sheet, :start, :end, :terms, :text_key,
        :hidden, :place, :static_vector)
RETURNING id
"""
# Fields of an anchor that share a column.
PLACES = ("chapter", "cell", "rows", "member", "message", "symbol", "picture")
NO_PLACE: dict[str, Any] = dict.fromkeys(PLACES)
NOWHERE = -1  # start and end of a passage that is made from metadata: it is not in the document's text
OF_DOCUMENT = """
SELECT c.* FROM chunks c JOIN stored d ON d.id = c.document_id AND d.revision = c.revision
 WHERE c.document_id = :id ORDER BY c.chunk_index LIMIT :limit OFFSET :offset
"""
STRETCH_OF_PAGE = """
SELECT min(c.start_at), max(c.end_at) FROM chunks c JOIN published d ON d.id = c.document_id AND d.revision = c.revision
 WHERE c.document_id = :id AND c.page = :page AND c.start_at >= 0
"""
# No two writers of a document ever get the same revision.
NEXT_REVISION = "UPDATE documents SET taken = taken + 1 WHERE id = :id RETURNING taken"
COUNT = "SELECT count(*) FROM chunks WHERE document_id = :id AND revision = :revision"
PUBLISHED_COUNT = "SELECT COALESCE(sum(chunk_count), 0) FROM published"
OTHER_REVISIONS = "SELECT id FROM chunks WHERE document_id = :id AND revision <> :revision"
UNPUBLISHED = """
SELECT c.id FROM chunks c JOIN documents d ON d.id = c.document_id
 WHERE c.document_id = :id AND c.revision = :revision AND d.revision <> c.revision
 LIMIT :most
"""
WILD = """
SELECT c.id FROM chunks c JOIN stored d ON d.id = c.document_id AND d.revision = c.revision
 WHERE c.id NOT BETWEEN 1 AND :highest OR d.id NOT BETWEEN 1 AND :highest OR c.terms NOT BETWEEN 0 AND :terms
"""
MOST_TERMS = 2**24  # of one passage: far more than occur
LIVE = "chunks c JOIN published d ON d.id = c.document_id AND d.revision = c.revision"
# One search hit each: the passage, what the answer says about its document, and its text's key if another has it too.
HITS = """
SELECT c.id, d.id, d.uid, d.title, d.filename, d.source_path, d.doc_type, d.media_type, c.text, d.created_at,
       d.updated_at, d.version, c.page, c.slide, c.sheet, c.heading, c.start_at, c.end_at, c.hidden, c.place,
       d.parent_id, d.metadata,
       (SELECT string_agg(t.tag, '{between}' ORDER BY t.position, t.tag) FROM tags t WHERE t.document_id = d.id),
       CASE WHEN EXISTS (SELECT 1 FROM chunks k WHERE k.text_key = c.text_key AND k.id <> c.id) THEN c.text_key END
  FROM chunks c JOIN published d ON d.id = c.document_id AND d.revision = c.revision
 WHERE c.id IN ({ids})
"""
BETWEEN_TAGS = "\x1f"  # no tag holds it
WITH_TEXT_KEYS = "SELECT text_key, id FROM chunks WHERE text_key IN ({keys})"


class StoredPassage(NamedTuple):
    """A hit without its score."""

    fields: dict[str, Any]
    copies_key: int | None  # the key of its text, if another chunk, published or not, has the same text

    def scored(self, score: float, explain: Explanation | None = None) -> Hit:
        fields = self.fields.copy()
        fields["score"] = score
        fields["explain"] = explain
        return made(Hit, fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewChunk:
    """A passage ready to be written."""

    index: int
    text: str
    anchor: Anchor
    title_terms: list[str]
    heading_terms: list[str]
    body_terms: list[str]
    vector: Vector
    hidden: bool = False  # some of the text cannot be seen in the original
    model: str = ""  # fingerprint of the embedding model that made the vector
    static_vector: str | None = None

    @property
    def of_metadata(self) -> bool:
        return bool(self.anchor.metadata)

    @property
    def terms(self) -> int:
        return len(self.title_terms) + len(self.heading_terms) + len(self.body_terms)


@dataclass(frozen=True, slots=True)
class PublishedChunks:
    """Every published chunk, as arrays ascending by chunk id."""

    chunk_ids: NDArray[np.int64]
    document_ids: NDArray[np.int64]
    terms: NDArray[np.int32]
    of_metadata: NDArray[np.bool_]  # a document's last ones, made from its metadata


def add(
    tx: Transaction, document_id: int, revision: int, chunks: Sequence[NewChunk], *, vectors: bool = True
) -> list[int]:
    """Write chunks of a revision; without `vectors`, the caller writes those before it publishes."""
    ids = [checked_id(id_) for id_ in tx.values(INSERT, [row_of(document_id, revision, chunk) for chunk in chunks])]
    for chunk_id, chunk in zip(ids, chunks, strict=True):
        tx.fulltext.add(
            chunk_id, " ".join(chunk.title_terms), " ".join(chunk.heading_terms), " ".join(chunk.body_terms)
        )
        if vectors:
            tx.vectors.add(chunk_id, chunk.vector)
    return ids


def row_of(document_id: int, revision: int, chunk: NewChunk) -> dict[str, Any]:
    """What `INSERT` takes."""
    anchor = chunk.anchor
    return {
        "document_id": document_id,
        "revision": revision,
        "index": chunk.index,
        "text": chunk.text,
        "heading": anchor.heading,
        "page": anchor.page,
        "slide": anchor.slide,
        "sheet": anchor.sheet,
        "start": NOWHERE if anchor.metadata else anchor.start,
        "end": NOWHERE if anchor.metadata else anchor.end,
        "terms": chunk.terms,
        "text_key": text_key(chunk.text),
        "hidden": int(chunk.hidden),
        "place": place_of(anchor),
        "static_vector": chunk.static_vector,
    }


def next_revision(tx: Transaction, document_id: int) -> int:
    revision = int(tx.value(NEXT_REVISION, {"id": document_id}))
    tx.begin_draft(document_id, revision)
    return revision


def remove_other_revisions(tx: Transaction, document_id: int, keep: int) -> list[int]:
    """Remove all chunks of a document except one revision (0 keeps none). Return their ids."""
    return remove(tx, tx.column(OTHER_REVISIONS, {"id": document_id, "revision": keep}))


def discard(tx: Transaction, document_id: int, revision: int, most: int) -> int:
    """Remove `most` chunks of a revision, unless it is published; with the last chunks, also a document that was
    never published. Return how many chunks were removed.
    """
    removed = remove_unpublished(tx, document_id, revision, most)
    if removed < most:
        tx.end_draft(document_id, revision)
        tx.run("DELETE FROM documents WHERE id = :id AND revision = 0", {"id": document_id})
    return removed


def clear(tx: Transaction) -> int:
    """Remove every chunk. Return how many were published."""
    count = published_count(tx)
    tx.fulltext.clear()
    tx.vectors.clear()
    tx.run("DELETE FROM chunks")
    return count


def published_count(tx: Transaction) -> int:
    return int(tx.value(PUBLISHED_COUNT))


def remove_unpublished(tx: Transaction, document_id: int, revision: int, most: int = ALL) -> int:
    """Remove unpublished chunks of a revision: all, or `most` of them. Return how many were removed."""
    return len(remove(tx, tx.column(UNPUBLISHED, {"id": document_id, "revision": revision, "most": most})))


def remove(tx: Transaction, chunk_ids: list[int]) -> list[int]:
    """Remove these chunks with their full text and vectors. Return their ids."""
    tx.fulltext.remove(chunk_ids)
    tx.vectors.remove(chunk_ids)
    tx.run_many("DELETE FROM chunks WHERE id = :id", [{"id": id_} for id_ in chunk_ids])
    return chunk_ids


def sweep(tx: Transaction) -> int:
    """Remove what an engine that died left unpublished."""
    left, reserved = tx.abandoned_drafts()
    remove(tx, left)
    tx.run_many("DELETE FROM documents WHERE id = :id AND revision = 0", [{"id": id_} for id_ in reserved])
    tx.forget_abandoned_drafts()
    return len(left)


def count(tx: Transaction, document_id: int, revision: int) -> int:
    return int(tx.value(COUNT, {"id": document_id, "revision": revision}))


def of_document(tx: Transaction, document_id: int, first: int, limit: int | None) -> list[Chunk]:
    """The chunks that are published, or were when the document was put into the trash."""
    rows = tx.rows(OF_DOCUMENT, {"id": document_id, "limit": ALL if limit is None else limit, "offset": first})
    return [
        Chunk(row["id"], row["chunk_index"], row["text"], anchor_of(row), True if row["hidden"] else None)
        for row in rows
    ]


def stretch_of_page(tx: Transaction, document_id: int, page: int) -> tuple[int, int]:
    """Where in the document's text a page starts and ends, as far as it has passages; 0 and 0 if it has none."""
    ((start, end),) = tx.tuples(STRETCH_OF_PAGE, {"id": document_id, "page": page})
    return (0, 0) if start is None else (int(start), int(end))


def hits(database: Database, chunk_ids: Sequence[int]) -> dict[int, StoredPassage]:
    """The published ones among these chunks, by id."""
    if not chunk_ids:
        return {}
    names, params = listed(map(int, chunk_ids))
    with readable("passages"):
        return {
            row[0]: passage_of(row) for row in database.select(HITS.format(ids=names, between=BETWEEN_TAGS), params)
        }


def with_text_keys(database: Database, keys: Sequence[int]) -> dict[int, list[int]]:
    """The ids of all chunks with these texts, published or not, by the key of the text."""
    names, params = listed(keys)
    found: dict[int, list[int]] = {}
    for key, chunk_id in database.select(WITH_TEXT_KEYS.format(keys=names), params):
        found.setdefault(key, []).append(chunk_id)
    return found


def text_key(text: str) -> int:
    """A number that two texts share only if they are the same but for white space."""
    return int.from_bytes(blake2b(" ".join(text.split()).encode(), digest_size=8).digest(), signed=True)


def passage_of(row: tuple[Any, ...]) -> StoredPassage:
    """The passage of a row of `HITS`."""
    chunk_id, document_id, uid, title, filename, source_path, doc_type, media_type, text, *others = row
    created_at, updated_at, version, page, slide, sheet, heading, start, end, hidden, place, *rest = others
    parent, metadata, tags, key = rest
    anchor = {"page": page, "slide": slide, "sheet": sheet, "heading": heading, **stretch(start, end), **placed(place)}
    return StoredPassage(
        {
            "chunk_id": chunk_id,
            "document_id": document_id,
            "uid": uid,
            "title": title,
            "filename": filename,
            "source_path": source_path,
            "doc_type": doc_type,
            "media_type": media_type,
            "text": text,
            "tags": tags.split(BETWEEN_TAGS) if tags else [],
            "metadata": shown(metadata),
            "anchor": made(Anchor, anchor),
            "created_at": created_at,
            "updated_at": updated_at,
            "version": version,
            "parent": parent,
            "truncated": None,
            "hidden": True if hidden else None,
            "also_in": None,
            "also_in_more": None,
        },
        key,
    )


def live(tx: Transaction, document_ids: Sequence[int] | None = None) -> PublishedChunks:
    """Every published chunk, or those of some documents.

    Those with an impossible id, document or length are left out; the doctor names them.
    """
    names, params = listed(document_ids or ())
    only = "" if document_ids is None else f" WHERE d.id IN ({names})"
    found = tx.integers(("c.id", "c.document_id", "c.terms", "c.start_at"), LIVE + only, params)
    numbers = found[:, :3]
    held = ((numbers >= (1, 1, 0)) & (numbers <= (HIGHEST_ID, HIGHEST_ID, MOST_TERMS))).all(axis=1)
    if not held.all():
        log.warning("%d passages have ids or lengths that cannot be; `kb doctor` names them", np.count_nonzero(~held))
    ids, owners, terms, starts = found[held].T
    order = np.argsort(ids)
    return PublishedChunks(ids[order], owners[order], terms[order].astype(np.int32), starts[order] == NOWHERE)


def wild(tx: Transaction) -> list[int]:
    """Chunks, also in the trash, whose own id, document or number of terms the index in memory cannot hold."""
    return tx.column(WILD, {"highest": HIGHEST_ID, "terms": MOST_TERMS})


def anchor_of(row: Row) -> Anchor:
    place = stretch(row["start_at"], row["end_at"]) | placed(row["place"])
    return Anchor(page=row["page"], slide=row["slide"], sheet=row["sheet"], heading=row["heading"], **place)


def place_of(anchor: Anchor) -> str | None:
    """The fields of an anchor that share a column, as JSON."""
    found = {name: value for name in PLACES if (value := getattr(anchor, name)) is not None}
    return json.dumps(found, ensure_ascii=False) if found else None


def placed(place: str | None) -> dict[str, Any]:
    """Those fields again, all of them."""
    return NO_PLACE if place is None else NO_PLACE | json.loads(place)


def stretch(start: int, end: int) -> dict[str, Any]:
    """The fields of an anchor that say where in the text a passage stands, or that it is made from metadata."""
    if start == NOWHERE:
        return {"start": None, "end": None, "metadata": True}
    return {"start": start, "end": end, "metadata": None}
