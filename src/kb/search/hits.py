"""What an answer shows of a passage: its text, its anchor, and what is known of its document.

Passages that were shown lately are kept for as long as nothing is written: who asks on usually sees some of them again.
"""

import threading
from collections import OrderedDict
from collections.abc import Sequence

from kb.store import chunks
from kb.store.backend import Database
from kb.store.chunks import Passage

KEPT = 4096  # of some 2 kB each


class Passages:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._kept: OrderedDict[int, Passage] = OrderedDict()
        self._changes = -1
        self._lock = threading.Lock()

    def of(self, chunk_ids: Sequence[int], changes: int) -> dict[int, Passage]:
        """Those among these chunks that are published.

        `changes` is what the database said before this, so that what is read here has seen all of them.
        """
        with self._lock:
            if changes != self._changes:
                self._kept.clear()
                self._changes = changes
            found = {}
            for id_ in chunk_ids:
                if (passage := self._kept.get(id_)) is not None:
                    found[id_] = passage
                    self._kept.move_to_end(id_)
        if len(found) == len(chunk_ids):
            return found
        new = chunks.hits(self._database, [id_ for id_ in chunk_ids if id_ not in found])
        with self._lock:
            if changes == self._changes:
                self._kept |= new
                while len(self._kept) > KEPT:
                    self._kept.popitem(last=False)
        return found | new
