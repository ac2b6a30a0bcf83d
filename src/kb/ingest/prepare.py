"""From text to chunks that are ready to be written: cut, put in context, embedded, segmented."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from kb import terms
from kb.embed import Embedder
from kb.ingest import chunk
from kb.ingest.chunk import Kind, Passage
from kb.ingest.extract.part import Part
from kb.nouns import Anchor
from kb.store.backend import Vector
from kb.store.chunks import NewChunk
from kb.store.meta import IndexVersions

SPECIAL_TOKENS = 2  # what a BERT tokenizer adds to every text
BATCH = 16  # chunks that are embedded and written at a time: half a second, so that a job stops soon


@dataclass(frozen=True, slots=True)
class Placed:
    """A passage and where in its document it stands."""

    text: str
    anchor: Anchor


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

    def passages(self, part: Part, kind: Kind, offset: int = 0) -> list[Placed]:
        """What a part is cut into; `offset` is where the part starts in the document's text."""
        return [
            Placed(part.text[passage.start : passage.end], anchored(part.anchor, passage, offset))
            for passage in chunk.chunk(part.text, kind, self._embedder.tokenizer, self.budget)
        ]

    def batches(self, passages: Sequence[Placed], title: str, first: int = 0) -> Iterator[list[NewChunk]]:
        """The passages, embedded; the first one becomes the chunk of that number."""
        for at in range(0, len(passages), BATCH):
            yield self._batch(passages[at : at + BATCH], title, first + at)

    def _batch(self, passages: Sequence[Placed], title: str, first: int) -> list[NewChunk]:
        vectors = self.embedded([(title, p.anchor.heading, p.text) for p in passages])
        columns = [self.segmented(title, p.anchor.heading, p.text) for p in passages]
        return [
            NewChunk(
                index=first + number,
                text=passage.text,
                anchor=passage.anchor,
                title_terms=columns[number][0],
                heading_terms=columns[number][1],
                body_terms=columns[number][2],
                vector=vectors[number],
            )
            for number, passage in enumerate(passages)
        ]

    def embedded(self, passages: Sequence[tuple[str, str | None, str]]) -> Vector:
        """The vectors of passages, each given as title, heading and text."""
        return self._embedder.embed(
            [self._in_context(text, shown(title, text), heading) for title, heading, text in passages]
        )

    def segmented(self, title: str, heading: str | None, text: str) -> tuple[list[str], list[str], list[str]]:
        """The full-text terms of a passage: title, heading, body."""
        return terms.index_terms(shown(title, text)), terms.index_terms(heading or ""), terms.index_terms(text)

    def _in_context(self, text: str, title: str, heading: str | None) -> str:
        context = chunk.context(title or None, heading)
        if not context:
            return text
        tokenizer = self._embedder.tokenizer
        room = self._embedder.max_tokens - SPECIAL_TOKENS - tokenizer.count(text)
        fitted = chunk.fit_context(context, tokenizer, room)
        return f"{fitted}\n{text}" if fitted else text


def shown(title: str, text: str) -> str:
    """A passage that opens with the title needs no second copy of it."""
    return "" if text.lstrip("# \t").startswith(title) else title


def anchored(where: Anchor, passage: Passage, offset: int) -> Anchor:
    headings = chunk.SEPARATOR.join(filter(None, (where.heading, passage.heading)))
    return replace(where, heading=headings or None, start=offset + passage.start, end=offset + passage.end)
