"""Make the whole index anew: every document is cut, embedded and segmented again from its stored text.

The old index answers until the new one is complete; then one transaction swaps them. A document that changes
meanwhile is left alone: it was indexed by the same code. Until the swap nothing of the old index is touched, so
a process that dies in the middle loses nothing.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby
from operator import itemgetter
from typing import Protocol

import numpy as np

from kb.core.invisible import tag_characters
from kb.core.values import Anchor, Chunk, DocType, Document
from kb.ingest.chunking.chunker import Kind
from kb.ingest.extract import FORMATS, Part
from kb.ingest.prepare import Placed, PlacedPassages, Preparer
from kb.ingest.written import Written
from kb.store import chunks, documents, jobs, meta
from kb.store.backend import Database, Row, Transaction, Vector
from kb.store.chunks import NewChunk

DOCUMENTS_AHEAD = 8  # that are being embedded while another is written
CHARACTERS_AHEAD = 2**22  # of their texts: a large document waits alone
SWEEP_BATCH = 50  # documents whose old chunks are removed at a time, so that no writer waits long


class SwappableIndex(Protocol):
    """The index in memory, as far as a swap needs it."""

    def replace_many(
        self,
        document_ids: Sequence[int],
        owners: Sequence[int],
        chunk_ids: Sequence[int],
        terms: Sequence[int],
        vectors: Vector,
        of_metadata: Sequence[bool],
    ) -> None: ...


@dataclass(frozen=True, slots=True)
class Begun:
    """One document whose new chunks are being embedded."""

    document_id: int
    old_revision: int
    characters: int
    batches: Iterator[list[NewChunk]]


@dataclass(frozen=True, slots=True)
class Remade:
    """One document with its new chunks, not published yet."""

    document_id: int
    old_revision: int
    revision: int
    written: Written


class Reindexer:
    """`fresh` is true when the old index cannot be used at all: it was made with another model or chunker."""

    def __init__(
        self,
        database: Database,
        preparer: Preparer,
        index: SwappableIndex,
        changed: Callable[[str], None],
        *,
        fresh: bool,
    ) -> None:
        self._database = database
        self._preparer = preparer
        self._index = index
        self._changed = changed
        self._fresh = fresh

    def run(self, job: Row, interrupt: Callable[[], None]) -> None:
        taken: list[tuple[int, int]] = []  # document and revision of what this run writes or replaces
        try:
            remade = [one for one in self._remade(job, interrupt, taken) if one is not None]
            with self._database.write() as tx:
                self._settle(tx, job, [one for one in remade if self._swap(tx, one)])
            taken += [(one.document_id, one.old_revision) for one in remade]
        finally:
            self._sweep(taken)
        self._fresh = False

    def _progress(self, job: Row) -> Iterator[int]:
        with self._database.read() as tx:
            ids = tx.column("SELECT id FROM published ORDER BY id")
        for number, document_id in enumerate(ids):
            if number % 10 == 0:
                with self._database.write(durable=False) as tx:
                    jobs.progress(tx, job["id"], number, len(ids), f"Indexing document {number + 1} of {len(ids)}")
                    tx.after_commit(lambda: self._changed(job["id"]))
            yield document_id

    def _remade(self, job: Row, interrupt: Callable[[], None], taken: list[tuple[int, int]]) -> Iterator[Remade | None]:
        """Each document anew; while one is written, the next ones are being embedded."""
        begun: deque[Begun] = deque()
        for document_id in self._progress(job):
            if (one := self._begin(document_id, interrupt)) is not None:
                begun.append(one)
            while len(begun) > DOCUMENTS_AHEAD or sum(one.characters for one in begun) > CHARACTERS_AHEAD:
                yield self._remake(begun.popleft(), interrupt, taken)
        while begun:
            yield self._remake(begun.popleft(), interrupt, taken)

    def _begin(self, document_id: int, interrupt: Callable[[], None]) -> Begun | None:
        with self._database.read() as tx:
            row = tx.row("SELECT * FROM published WHERE id = :id", {"id": document_id})
            if row is None:
                return None
            document = documents.as_documents(tx, [row])[0]
            text = documents.text(tx, document_id)
            old = chunks.of_document(tx, document_id, 0, None)
        passages = passages_again(self._preparer, document, text, old, interrupt)
        return Begun(document_id, row["revision"], len(text), self._preparer.batches(passages, document.title))

    def _remake(self, begun: Begun, interrupt: Callable[[], None], taken: list[tuple[int, int]]) -> Remade | None:
        """Write a document's new chunks where nobody sees them."""
        document_id = begun.document_id
        revision: int | None = None
        written = Written(vectors=None)
        for batch in begun.batches:
            interrupt()
            with self._database.write(durable=False) as tx:
                if not tx.value("SELECT 1 FROM documents WHERE id = :id", {"id": document_id}):
                    return None
                if revision is None:
                    revision = chunks.next_revision(tx, document_id)
                    taken.append((document_id, revision))
                ids = chunks.add(tx, document_id, revision, batch, vectors=not self._fresh)
            written.add(ids, batch)
        return Remade(document_id, begun.old_revision, revision, written) if revision else None

    def _swap(self, tx: Transaction, one: Remade) -> bool:
        """Unless the document changed or went away, its new chunks are its chunks."""
        return documents.move_revision(tx, one.document_id, one.old_revision, one.revision, len(one.written))

    def _settle(self, tx: Transaction, job: Row, swapped: list[Remade]) -> None:
        written = [one.written for one in swapped]
        ids = [chunk_id for one in written for chunk_id in one.ids]
        vectors = np.concatenate(
            [np.empty((0, self._preparer.dimensions), np.float32), *(some for one in written for some in one.vectors)]
        )
        if self._fresh:
            tx.vectors.clear(self._preparer.dimensions)
            for chunk_id, vector in zip(ids, vectors, strict=True):
                tx.vectors.add(chunk_id, vector)
        meta.record(tx, self._preparer.versions)
        jobs.complete(tx, job["id"], None, None, len(ids))
        tx.after_commit(
            lambda: self._index.replace_many(
                [one.document_id for one in swapped],
                [one.document_id for one in swapped for _ in one.written.ids],
                ids,
                [terms for one in written for terms in one.terms],
                vectors,
                [of_metadata for one in written for of_metadata in one.of_metadata],
            )
        )
        tx.after_commit(lambda: self._changed(job["id"]))

    def _sweep(self, taken: Sequence[tuple[int, int]]) -> None:
        """Remove the old chunks, or the new ones that were not published; what others are writing stays."""
        for at in range(0, len(taken), SWEEP_BATCH):
            with self._database.write() as tx:
                for document_id, revision in taken[at : at + SWEEP_BATCH]:
                    chunks.remove_unpublished(tx, document_id, revision)


def passages_again(
    preparer: Preparer,
    document: Document,
    text: str,
    old: Sequence[Chunk],
    interrupt: Callable[[], None] = lambda: None,
) -> Iterator[Placed]:
    """What a document's stored text and metadata are cut into; `old` is what it was cut into before."""
    of_text = chain.from_iterable(text_passages(preparer, document.doc_type, text, old, interrupt))
    return chain(of_text, preparer.metadata_passages(document.metadata, document.title))


def text_passages(
    preparer: Preparer, doc_type: DocType, text: str, old: Sequence[Chunk], interrupt: Callable[[], None]
) -> Iterator[PlacedPassages]:
    """What each part of a stored text is cut into."""
    kind: Kind = "markdown" if doc_type == "note" else FORMATS[doc_type].kind
    parts = list(parts_of(text, [chunk for chunk in old if not chunk.anchor.metadata], headed=kind == "text"))
    return (preparer.passages(part, kind, offset, interrupt) for offset, part in parts)


def parts_of(text: str, old: Sequence[Chunk], *, headed: bool = False) -> Iterator[tuple[int, Part]]:
    """The parts that the text was joined from, with their offsets: chunks never cross a part.

    With `headed`, headings are the parts' (a bookmark, a range of cells); else they were found in the text.
    """
    unheaded = {} if headed else {"heading": None}
    places = [
        ((replace(c.anchor, start=None, end=None, **unheaded), bool(c.hidden) and not tag_characters(c.text)), c)
        for c in old
    ]
    groups = [
        (place, min(c.anchor.start or 0 for _, c in group)) for place, group in groupby(places, key=itemgetter(0))
    ]
    if not groups:  # every chunk was lost: what is known is the text
        groups = [((Anchor(), False), 0)]
    starts = [0, *(start for _, start in groups[1:])]
    for ((anchor, hidden), _), start, end in zip(groups, starts, [*starts[1:], len(text)], strict=True):
        yield start, Part("part", text[start:end], anchor, hidden=hidden)
