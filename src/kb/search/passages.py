"""What an answer shows of a passage: its text, its anchor, and what is known of its document.

Passages that were shown lately are kept for as long as nothing is written: who asks on usually sees some of them again.
"""

import json
import threading
from collections import OrderedDict
from collections.abc import Sequence

from kb.nouns import Json
from kb.store import chunks, documents
from kb.store.backend import Row, Transaction

KEPT = 4096  # of some 2 kB each


class Passages:
    def __init__(self) -> None:
        self._kept: OrderedDict[int, Json] = OrderedDict()
        self._changes = -1
        self._lock = threading.Lock()

    def of(self, tx: Transaction, chunk_ids: Sequence[int], changes: int) -> dict[int, Json]:
        """The fields of a hit, but for its score, of those among these chunks that are published.

        `changes` is what the database said before `tx` began, so that `tx` has seen all of them.
        """
        with self._lock:
            if changes != self._changes:
                self._kept.clear()
                self._changes = changes
            found = {id_: self._kept[id_] for id_ in chunk_ids if id_ in self._kept}
            for id_ in found:
                self._kept.move_to_end(id_)
        new = loaded(tx, [id_ for id_ in chunk_ids if id_ not in found])
        with self._lock:
            if changes == self._changes:
                self._kept |= new
                while len(self._kept) > KEPT:
                    self._kept.popitem(last=False)
        return found | new


def loaded(tx: Transaction, chunk_ids: Sequence[int]) -> dict[int, Json]:
    rows = chunks.hits(tx, chunk_ids)
    tags = documents.tags_of(tx, [row["id"] for row in rows.values()])
    return {id_: fields(row, tags[row["id"]]) for id_, row in rows.items()}


def fields(row: Row, tags: list[str]) -> Json:
    return {
        "chunk_id": row["chunk_id"],
        "document_id": row["id"],
        "uid": row["uid"],
        "title": row["title"],
        "filename": row["filename"],
        "source_path": row["source_path"],
        "doc_type": row["doc_type"],
        "media_type": row["media_type"],
        "text": row["text"],
        "tags": tags,
        "metadata": json.loads(row["metadata"]),
        "anchor": chunks.anchor_of(row),
        "created_at": row["created_at"],
        "updated_at": row["updated_at"],
        "version": row["version"],
    }
