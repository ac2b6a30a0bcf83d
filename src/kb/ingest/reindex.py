"""Make the whole index anew: every document, also in the trash, is cut, embedded and segmented from its stored text.

The old index answers until the new one is complete; then one transaction swaps them. A document that changes
meanwhile is left alone: it was indexed by the same code. Until the swap nothing of the old index is touched, so
a process that dies in the middle loses nothing.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from kb.core.types import Interrupt
from kb.ingest.prepare import Preparer
from kb.ingest.publish import MovedError, NewRevision, Publisher
from kb.ingest.recut import text_passages
from kb.ingest.sandbox.sandbox import Sandbox
from kb.store import chunks, documents, jobs, meta
from kb.store.backend import Database, Row
from kb.store.chunks import NewChunk

DOCUMENTS_AHEAD = 8  # that are being embedded while another is written
CHARACTERS_AHEAD = 2**22  # of their texts: a large document waits alone


@dataclass(frozen=True, slots=True)
class Recut:
    """A document whose new chunks are being embedded."""

    revision: NewRevision
    characters: int
    batches: Iterator[list[NewChunk]]


@dataclass
class Reindexer:
    """`fresh` is true when the old index cannot be used at all: it was made with another model or chunker."""

    _database: Database
    _sandbox: Sandbox
    _preparer: Preparer
    _publisher: Publisher
    _fresh: bool

    def run(self, job: Row, interrupt: Interrupt) -> None:
        revisions: list[NewRevision] = []
        try:
            for recut in self._recut_all(job, interrupt):
                revisions.append(recut.revision)
                self._write(recut, interrupt, vectors=not self._fresh)
            with self._database.write() as tx:
                tx.hold(job)
                meta.record(tx, self._preparer.versions)
                swapped = self._publisher.swap(tx, revisions)
                if self._fresh:
                    tx.publishes(None, lambda: None)  # other engines have the index of another model
                    tx.vectors.clear(self._preparer.dimensions)
                    for one in swapped:
                        for chunk_id, vector in zip(one.ids, chain.from_iterable(one.vectors), strict=True):
                            tx.vectors.add(chunk_id, vector)
                jobs.complete(tx, job["id"], None, None, sum(map(len, swapped)))
        finally:
            self._publisher.withdraw(revisions)
        self._fresh = False

    def document(self, document_id: int) -> bool:
        """Make the chunks of one document anew. False if it has no text, changes or goes away meanwhile."""
        recut = self._recut(document_id)
        if recut is None:
            return False
        try:
            self._write(recut)
            with self._database.write() as tx:
                return bool(self._publisher.swap(tx, [recut.revision]))
        finally:
            self._publisher.withdraw([recut.revision])

    def _recut_all(self, job: Row, interrupt: Interrupt) -> Iterator[Recut]:
        """Every document; while the caller writes one, the next ones are being embedded."""
        ahead: deque[Recut] = deque()
        for document_id in self._progress(job):
            if recut := self._recut(document_id, interrupt):
                ahead.append(recut)
            while len(ahead) > DOCUMENTS_AHEAD or sum(one.characters for one in ahead) > CHARACTERS_AHEAD:
                yield ahead.popleft()
        yield from ahead

    def _progress(self, job: Row) -> Iterator[int]:
        with self._database.read() as tx:
            ids = documents.stored_ids(tx)
        for number, document_id in enumerate(ids):
            if number % 10 == 0:
                with self._database.write(durable=False, publishes=False) as tx:
                    jobs.progress(tx, job["id"], number, len(ids), f"Indexing document {number + 1} of {len(ids)}")
            yield document_id

    def _recut(self, document_id: int, interrupt: Interrupt = lambda: None) -> Recut | None:
        with self._database.read() as tx:
            row = documents.find_stored(tx, document_id)
            if row is None:
                return None
            document = documents.as_documents(tx, [row])[0]
            text = documents.text(tx, document_id)
            old = chunks.of_document(tx, document_id, 0, None)
        of_text = text_passages(
            self._preparer, self._sandbox, document.doc_type, document.filename, document.title, text, old, interrupt
        )
        of_metadata = self._preparer.metadata_passages(document.metadata, document.title)
        batches = self._preparer.batches(chain(chain.from_iterable(of_text), of_metadata))
        return Recut(NewRevision(document_id, replaces=row["revision"], max_vectors=None), len(text), batches)

    def _write(self, recut: Recut, interrupt: Interrupt = lambda: None, *, vectors: bool = True) -> None:
        for batch in recut.batches:
            interrupt()
            try:
                self._publisher.write(recut.revision, batch, vectors=vectors)
            except MovedError:
                return
