"""What an answer shows of a passage: its text, its anchor, and what is known of its document.

Passages that were shown recently are cached until the database changes: the next question often finds some again.
"""

from collections.abc import Sequence

from kb.core.lru import VersionedCache
from kb.store import chunks
from kb.store.backend import Database
from kb.store.chunks import Passage

KEPT = 4096  # of some 2 kB each


class Passages:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._kept: VersionedCache[int, Passage] = VersionedCache(KEPT)

    def of(self, chunk_ids: Sequence[int], changes: int) -> dict[int, Passage]:
        """Those of these chunks that are published.

        `changes` is the database's count of changes, taken before this call: what is read here is not older.
        """
        kept = self._kept.at(changes)
        found = {id_: passage for id_ in chunk_ids if (passage := kept.get(id_)) is not None}
        if len(found) == len(chunk_ids):
            return found
        new = chunks.hits(self._database, [id_ for id_ in chunk_ids if id_ not in found])
        for id_, passage in new.items():
            kept.put(id_, passage)
        return found | new
