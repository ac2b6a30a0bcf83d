"""A data folder with as many chunks as wanted, written through kb's own store with vectors that are known already.

The real engine serves it afterwards. Documents are notes of 1 to 12 chunks, every other of a single one; chunk number
n of the corpus becomes chunk id n + 1.
"""

import hashlib
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from benchmarks import machine
from benchmarks.corpus import BLOCK, Batch, Corpus, Delivery, Vectors, tags_of
from benchmarks.pieces import kept
from kb.core.settings import Settings
from kb.core.values import Anchor
from kb.embedding.lazy import WarmingEmbedder
from kb.embedding.priority import Priority
from kb.embedding.runtimes import Finish
from kb.embedding.tokenizer import Tokenizer, Tokens
from kb.index import terms
from kb.index.chunk_index import ChunkIndex
from kb.ingest.prepare import Preparer, shown
from kb.search.keyword import KeywordIndex
from kb.search.pruning import prune, score_all
from kb.search.searcher import Searcher
from kb.store import chunks, documents, meta, notes
from kb.store.backend import Transaction, Vector
from kb.store.chunks import NewChunk
from kb.store.documents import Content
from kb.store.sqlite.database import SQLiteDatabase
from kb.store.sqlite.migrate import migrate

SEPARATOR = "\n\n"


@dataclass(frozen=True, slots=True)
class Shelf:
    """A filled data folder, and what filling it took."""

    folder: str
    chunks: int
    documents: int
    seconds: float
    disk_bytes: int


class Row(NamedTuple):
    """One chunk of the corpus."""

    number: int
    document: int
    title: str
    text: str
    vector: Vector


class RememberingEmbedder(WarmingEmbedder):
    """Knows the vectors of some questions and nothing else; the model is not loaded."""

    def __init__(self, questions: Sequence[str], vectors: Vectors) -> None:
        super().__init__(Settings().model_dir, Priority())
        self._tokenizer = Tokenizer(Settings().model_dir / "tokenizer.json")
        self._known: Mapping[str, Vector] = dict(zip(questions, vectors, strict=True))

    @property
    def tokenizer(self) -> Tokenizer:
        return self._tokenizer

    def begin_query(self, text: str, tokens: Tokens | None = None) -> Finish:  # noqa: ARG002
        return lambda: self._known[text]


def shelf(corpus: Corpus, count: int, *, again: bool = False) -> Shelf:
    """The folder with the first `count` chunks, which is filled when that was not done before."""
    folder = corpus.folder / f"shelf-{count}"
    made = kept(folder.with_suffix(".json"), lambda: asdict(_fill(folder, corpus, count)), again=again)
    return Shelf(**made | {"folder": str(folder)})  # it may have been moved since


@contextmanager
def searcher(folder: Path, embedder: WarmingEmbedder, *, exact: bool = False) -> Iterator[Searcher]:
    """Search of such a folder within this process; `exact` scores every chunk, whatever bounds say."""
    database = SQLiteDatabase(Settings(data_dir=folder).database_path)
    live = ChunkIndex(embedder.dimensions)
    live.load(database)
    yield Searcher(database, live, KeywordIndex(), embedder, score_all if exact else prune)
    database.close()


def _fill(folder: Path, corpus: Corpus, count: int) -> Shelf:
    settings = Settings(data_dir=folder)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, parents=True)
    started = time.perf_counter()
    migrate(settings.database_path, terms.index_terms)
    database = SQLiteDatabase(settings.database_path)
    with database.write() as tx:
        priority = Priority()
        embedder = WarmingEmbedder(settings.model_dir, priority)
        meta.record(tx, Preparer(embedder, settings.chunk_tokens, priority).versions)
    written = 0
    delivery = Delivery(corpus.batches(count))
    for some in _by_documents(_rows(delivery)):
        with database.write() as tx:
            for rows in some:
                _write(tx, rows)
                written += 1
    database.close()
    seconds = time.perf_counter() - started - delivery.seconds
    return Shelf(str(folder), count, written, seconds, machine.folder_bytes(folder))


def _rows(batches: Iterable[Batch]) -> Iterator[Row]:
    for batch in batches:
        yield from map(Row, batch.numbers, map(int, batch.documents), batch.titles, batch.texts, batch.vectors)


def _by_documents(rows: Iterator[Row]) -> Iterator[list[list[Row]]]:
    """The chunks of whole documents, in batches that suit one transaction."""
    some: list[list[Row]] = []
    size = 0
    for _, group in groupby(rows, key=lambda row: row.document):
        some.append(list(group))
        size += len(some[-1])
        if size >= BLOCK:
            yield some
            some, size = [], 0
    if some:
        yield some


def _write(tx: Transaction, rows: Sequence[Row]) -> None:
    title = rows[0].title
    text = SEPARATOR.join(row.text for row in rows)
    document_id = documents.reserve(tx)
    revision = chunks.next_revision(tx, document_id)
    ids = chunks.add(tx, document_id, revision, list(_chunks(title, rows)))
    if ids != [row.number + 1 for row in rows]:
        raise RuntimeError(f"chunks {rows[0].number} ff. got the ids {ids}")
    documents.publish(tx, document_id, _content(title, text), revision, len(rows))
    documents.set_tags(tx, document_id, tags_of(rows[0].document))
    notes.add_version(tx, document_id, text)


def _chunks(title: str, rows: Sequence[Row]) -> Iterator[NewChunk]:
    at = 0
    for index, row in enumerate(rows):
        yield NewChunk(
            index=index,
            text=row.text,
            anchor=Anchor(start=at, end=at + len(row.text)),
            title_terms=terms.index_terms(shown(title, row.text)),
            heading_terms=[],
            body_terms=terms.index_terms(row.text),
            vector=row.vector,
        )
        at += len(row.text) + len(SEPARATOR)


def _content(title: str, text: str) -> Content:
    data = text.encode()
    return Content(
        title=title,
        titled=True,
        filename=None,
        source_path=None,
        doc_type="note",
        media_type="text/markdown",
        content_hash=hashlib.sha256(data).hexdigest(),
        size_bytes=len(data),
        metadata={},
        processing_method="text_extraction",
        ledger=[],
    )
