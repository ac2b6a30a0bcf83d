"""The only way in which the chunks of a document become visible, change or go away.

The chunks of a new revision are written unpublished, batch by batch. One short transaction publishes them. After its
commit, and before the next write, the index in memory follows.
"""

from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from kb.core.errors import Unavailable
from kb.index.chunk_index import ChunkIndex
from kb.store import chunks, documents, meta, trash
from kb.store.backend import Database, Transaction, Vector
from kb.store.chunks import NewChunk
from kb.store.documents import Content

Result = TypeVar("Result")

ATTEMPTS = 5
# Vectors that are kept in memory, 100 MB of them. Those of a larger document are read again from the database.
MAX_VECTORS = 65_536
WITHDRAWN_AT_ONCE = 500  # chunks, so that no other writer waits long
READ_ONE_BY_ONE = 1000  # vectors; for more it is quicker to read all that there are


class NewRevision:
    """Chunks that are written and not published yet: what the index in memory needs of them, not their texts.

    `replaces` is the published revision, where the same content is cut anew. `max_vectors` limits the vectors that
    are kept in memory; None keeps all.
    """

    def __init__(self, document_id: int, *, replaces: int = 0, max_vectors: int | None = MAX_VECTORS) -> None:
        self.document_id = document_id
        self.replaces = replaces
        self.number = 0  # until the first chunks are written
        self.model = ""  # that made the vectors
        self.published = False
        self.ids = array("q")
        self.terms = array("i")
        self.of_metadata: list[bool] = []
        self.vectors: list[Vector] = []  # batch by batch; empty if there are too many
        self._max_vectors = max_vectors

    def add(self, number: int, ids: Sequence[int], batch: Sequence[NewChunk]) -> None:
        self.number, self.model = number, batch[0].model
        self.ids.extend(ids)
        self.terms.extend(chunk.terms for chunk in batch)
        self.of_metadata.extend(chunk.of_metadata for chunk in batch)
        if self._max_vectors is None or len(self.ids) <= self._max_vectors:
            self.vectors.append(np.stack([chunk.vector for chunk in batch]))
        else:
            self.vectors.clear()

    def __len__(self) -> int:
        return len(self.ids)

    def mark_published(self) -> None:
        self.published = True

    def fill(self, tx: Transaction, into: Vector) -> None:
        """Write the vectors, in order, into an array; `tx` may be over, but its connection is open."""
        if self.vectors:
            np.concatenate(self.vectors, out=into)
        else:
            tx.vectors.load(np.array(self.ids, np.int64), into)


class MovedError(Exception):
    """The document came into being, changed or was deleted while its new content was being prepared.

    Or another model took over: vectors of two models never stand in one index.
    """


def attempted(attempt: Callable[[], Result]) -> Result:
    """The result of an attempt, which is repeated while other requests change the same document."""
    for _ in range(ATTEMPTS):
        with suppress(MovedError):
            return attempt()
    raise Unavailable(
        f"Other requests changed the same document {ATTEMPTS} times while its new content was being prepared. Nothing "
        "was changed. Try again."
    )


@dataclass(frozen=True)
class Publisher:
    _database: Database
    _index: ChunkIndex

    @contextmanager
    def withdrawing(self, *revisions: NewRevision) -> Iterator[None]:
        """Remove on leaving what was not published of these revisions."""
        try:
            yield
        finally:
            self.withdraw([one for one in revisions if not one.published])

    def write(self, revision: NewRevision, batch: Sequence[NewChunk], *, vectors: bool = True) -> None:
        """Write chunks that no reader sees yet; without `vectors`, the caller writes those before it publishes."""
        # Not durable: the transaction that publishes these chunks makes them durable too.
        with self._database.write(durable=False, publishes=False) as tx:
            if batch[0].model != self._index.model or not documents.exists(tx, revision.document_id):
                raise MovedError
            number = revision.number or chunks.next_revision(tx, revision.document_id)
            ids = chunks.add(tx, revision.document_id, number, batch, vectors=vectors)
        revision.add(number, ids, batch)

    def publish(self, tx: Transaction, revision: NewRevision, content: Content) -> None:
        """Replace the content of a document. Revisions that other writers have not published yet stay theirs."""
        document_id = revision.document_id
        if not made_for_index(tx, revision):
            raise MovedError
        if chunks.count(tx, document_id, revision.number) != len(revision):
            raise Unavailable(f"Chunks of document {document_id} are missing; nothing was changed. Try again.")
        old = documents.publish(tx, document_id, content, revision.number, len(revision))
        chunks.remove_unpublished(tx, document_id, old)
        tx.end_draft(document_id, revision.number)

        def follow() -> None:
            fill = partial(revision.fill, tx)
            self._index.replace(document_id, revision.ids, revision.terms, fill, revision.of_metadata)
            self._index.take_static(tx, revision.ids)

        tx.publishes([document_id], follow)
        tx.after_commit(revision.mark_published)

    def swap(self, tx: Transaction, revisions: Sequence[NewRevision]) -> list[NewRevision]:
        """Publish revisions that cut the same contents anew; return them without those whose content has changed.

        The chunks that they replace stay until they are withdrawn.
        """
        swapped = [
            one
            for one in revisions
            if one.number
            and made_for_index(tx, one)
            and documents.move_revision(tx, one.document_id, one.replaces, one.number, len(one))
        ]
        deleted = trash.ids(tx)
        shown = [one for one in swapped if one.document_id not in deleted]
        none = np.empty((0, self._index.dimensions), np.float32)
        for one in swapped:
            tx.end_draft(one.document_id, one.number)
        ids = [chunk_id for one in shown for chunk_id in one.ids]

        def follow() -> None:
            self._index.replace_many(
                [one.document_id for one in shown],
                [one.document_id for one in shown for _ in one.ids],
                ids,
                [terms for one in shown for terms in one.terms],
                np.concatenate([none, *(some for one in shown for some in one.vectors)]),
                [of_metadata for one in shown for of_metadata in one.of_metadata],
            )
            self._index.take_static(tx, ids)

        tx.publishes([one.document_id for one in shown], follow)
        return swapped

    def withdraw(self, revisions: Sequence[NewRevision]) -> None:
        """Remove the unpublished chunks of these revisions and of those that they replaced, in steps."""
        waiting = [(one.document_id, number) for one in revisions for number in (one.replaces, one.number)]
        while waiting:
            room = WITHDRAWN_AT_ONCE
            with self._database.write(publishes=False) as tx:
                while waiting and room > 0:
                    removed = chunks.discard(tx, *waiting[-1], most=room)
                    if removed < room:
                        waiting.pop()
                    room -= removed + 1

    def hide(self, tx: Transaction, document_id: int, moment: str) -> None:
        """Put a document into the trash: its chunks stay in the database and leave the index in memory."""
        trash.put(tx, document_id, moment)
        tx.publishes([document_id], lambda: self._index.remove(document_id))

    def show(self, tx: Transaction, document_id: int) -> None:
        """Take a document out of the trash, with the chunks that it had."""
        trash.take_out(tx, document_id)
        found = chunks.live(tx, [document_id])
        ids, terms, of_metadata = found.chunk_ids.tolist(), found.terms.tolist(), found.of_metadata.tolist()
        fill = partial(fill_from, tx, found.chunk_ids)

        def follow() -> None:
            self._index.replace(document_id, ids, terms, fill, of_metadata)
            self._index.take_static(tx, ids)

        tx.publishes([document_id], follow)

    def remove(self, tx: Transaction, document_id: int) -> int:
        """Remove a document with all its chunks for good; return how many it had."""
        removed = chunks.remove_other_revisions(tx, document_id, keep=0)
        documents.delete(tx, document_id)
        tx.publishes([document_id], lambda: self._index.remove(document_id))
        return len(removed)

    def clear(self, tx: Transaction) -> tuple[int, int]:
        """Remove everything; return how many documents and chunks there were."""
        removed = chunks.clear(tx)
        count = documents.clear(tx)
        tx.publishes(None, self._index.clear)
        return count, removed


def made_for_index(tx: Transaction, revision: NewRevision) -> bool:
    """Whether its vectors are of the model that the index has; a store without any record takes all."""
    recorded = meta.model(tx)
    return len(revision) == 0 or recorded is None or recorded[1] == revision.model


def fill_from(tx: Transaction, chunk_ids: NDArray[np.int64], into: Vector) -> None:
    """Write the stored vectors of these chunks, in order, into an array; a chunk without a sound one gets zeros."""
    if len(chunk_ids) > READ_ONE_BY_ONE:
        tx.vectors.load(chunk_ids, into)
        return
    for row, chunk_id in enumerate(chunk_ids.tolist()):
        if (vector := tx.vectors.get(chunk_id)) is not None:
            into[row] = vector
