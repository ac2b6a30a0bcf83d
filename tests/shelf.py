"""Documents and chunks as the store wants them, with no more said than a search needs."""

from kb.core.values import Anchor
from kb.index import terms
from kb.store.backend import Vector
from kb.store.chunks import NewChunk
from kb.store.documents import Content


def chunk(index: int, text: str, vector: Vector, static: str | None = None) -> NewChunk:
    return NewChunk(
        index=index,
        text=text,
        anchor=Anchor(start=0, end=len(text)),
        title_terms=[],
        heading_terms=[],
        body_terms=terms.index_terms(text),
        vector=vector,
        static_vector=static,
    )


def content(name: str) -> Content:
    return Content(
        title=name,
        titled=True,
        filename=None,
        source_path=None,
        doc_type="note",
        media_type="text/markdown",
        content_hash=name,
        size_bytes=1,
        metadata={},
        processing_method="text_extraction",
        ledger=[],
    )
