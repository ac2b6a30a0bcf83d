"""From text to chunks that are ready to be written: cut, put in context, embedded, segmented."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from kb import terms
from kb.embed import Embedder
from kb.ingest import chunk
from kb.ingest.chunk import Kind, Passage
from kb.ingest.extract.part import Part
from kb.nouns import Anchor
from kb.store.chunks import NewChunk
from kb.store.meta import IndexVersions

SPECIAL_TOKENS = 2  # what a BERT tokenizer adds to every text
BATCH = 16  # chunks that are embedded and written at a time: half a second, so that a job stops soon


class Preparer:
    def __init__(self, embedder: Embedder, chunk_tokens: int) -> None:
        self._embedder = embedder
        # Special tokens belong to the window; a passage leaves room for them, and its context takes what is left.
        self.budget = min(chunk_tokens, embedder.max_tokens - SPECIAL_TOKENS)

    @property
    def dimensions(self) -> int:
        return self._embedder.dimensions

    @property
    def versions(self) -> IndexVersions:
        return IndexVersions(
            model=f"{self._embedder.name} {self._embedder.fingerprint}",
            chunker=f"{chunk.VERSION}, {self.budget} tokens",
            context=chunk.CONTEXT_VERSION,
            terms=terms.VERSION,
        )

    def passages(self, part: Part, kind: Kind) -> list[Passage]:
        return chunk.chunk(part.text, kind, self._embedder.tokenizer, self.budget)

    def batches(
        self, part: Part, passages: Sequence[Passage], title: str, offset: int, first: int
    ) -> Iterator[list[NewChunk]]:
        """The passages of one part, embedded; `offset` is where the part starts in the document's text."""
        for at in range(0, len(passages), BATCH):
            yield self._batch(part, passages[at : at + BATCH], title, offset, first + at)

    def _batch(self, part: Part, passages: Sequence[Passage], title: str, offset: int, first: int) -> list[NewChunk]:
        texts = [part.text[p.start : p.end] for p in passages]
        # A passage that opens with the title needs no second copy of it.
        titles = ["" if text.lstrip("# \t").startswith(title) else title for text in texts]
        vectors = self._embedder.embed(
            [self._in_context(text, t, p.heading) for text, t, p in zip(texts, titles, passages, strict=True)]
        )
        return [
            NewChunk(
                index=first + number,
                text=text,
                anchor=anchored(part.anchor, passage, offset),
                title_terms=terms.index_terms(t),
                heading_terms=terms.index_terms(passage.heading or ""),
                body_terms=terms.index_terms(text),
                vector=vectors[number],
            )
            for number, (text, t, passage) in enumerate(zip(texts, titles, passages, strict=True))
        ]

    def _in_context(self, text: str, title: str, heading: str | None) -> str:
        context = chunk.context(title or None, heading)
        if not context:
            return text
        tokenizer = self._embedder.tokenizer
        room = self._embedder.max_tokens - SPECIAL_TOKENS - tokenizer.count(text)
        fitted = chunk.fit_context(context, tokenizer, room)
        return f"{fitted}\n{text}" if fitted else text


def anchored(where: Anchor, passage: Passage, offset: int) -> Anchor:
    return replace(where, heading=passage.heading, start=offset + passage.start, end=offset + passage.end)
