"""From text to chunks that are ready to be written: cut, put in context, embedded, segmented."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from itertools import islice

from kb.core.invisible import tag_characters
from kb.core.types import Interrupt, Json
from kb.core.values import Anchor
from kb.embedding.embedder import Embedder
from kb.embedding.priority import Priority
from kb.embedding.static import StaticEmbedder
from kb.index import terms
from kb.ingest.chunking import chunker
from kb.ingest.chunking.chunker import Kind, Slice, Slices
from kb.ingest.extract.part import Part
from kb.ingest.metadata import metadata_text
from kb.store.backend import Vector
from kb.store.chunks import NewChunk
from kb.store.meta import IndexVersions
from kb.store.static_vectors import encoded

SPECIAL_TOKENS = 2  # what a BERT tokenizer adds to every text
BATCH = 16  # chunks that are embedded and written at a time: half a second, so that a job stops soon
AHEAD = 1  # batches of a document that are being embedded while another is written

Finish = Callable[[], list[NewChunk]]  # waits until a batch is embedded


@dataclass(frozen=True, slots=True)
class Placed:
    """A passage and where in its document it stands."""

    text: str
    anchor: Anchor
    title: str  # indexed with the text
    hidden: bool = False  # some of it cannot be seen in the original


@dataclass(frozen=True, slots=True)
class PlacedPassages:
    """The passages of a part. Each is made when its turn comes: a large part has hundreds of thousands."""

    _part: Part
    _passages: Slices
    _title: str
    _offset: int

    def __len__(self) -> int:
        return len(self._passages)

    def __iter__(self) -> Iterator[Placed]:
        for passage in self._passages:
            text = self._part.text[passage.start : passage.end]
            hidden = self._part.hidden or tag_characters(text) > 0
            yield Placed(text, anchored(self._part.anchor, passage, self._offset), self._title, hidden)


class Preparer:
    def __init__(
        self, embedder: Embedder, chunk_tokens: int, priority: Priority, static: StaticEmbedder | None = None
    ) -> None:
        self._embedder = embedder
        self._static = static
        self._priority = priority
        self._chunk_tokens = chunk_tokens

    @property
    def budget(self) -> int:
        """Tokens of a passage at most."""
        return min(self._chunk_tokens, self._window)

    @property
    def _window(self) -> int:
        """What a passage and its context may have: special tokens belong to the model's window, and so does a prefix,
        which has at most a token a character.
        """
        embedder = self._embedder
        return embedder.max_tokens - SPECIAL_TOKENS - len(embedder.description.passage_prefix)

    @property
    def dimensions(self) -> int:
        return self._embedder.dimensions

    @property
    def versions(self) -> IndexVersions:
        return IndexVersions(
            model=f"{self._embedder.name} {self._embedder.fingerprint}",
            chunker=f"{chunker.VERSION}, {self.budget} tokens",
            context=chunker.CONTEXT_VERSION,
            terms=terms.VERSION,
        )

    def passages(
        self, part: Part, kind: Kind, title: str, offset: int = 0, interrupt: Interrupt = lambda: None
    ) -> PlacedPassages:
        """Cut a part, which starts at `offset` in the document's text.

        `interrupt` raises when the work should stop: cutting a large part takes minutes.
        """
        if part.anchor.picture is not None:
            kind = "text"  # what OCR reads is no Markdown
        tokenizer = self._embedder.tokenizer
        cut = chunker.chunk(part.text, kind, tokenizer, self.budget, interrupt, part.encoded, part.symbols)
        return PlacedPassages(part, cut, title, offset)

    def metadata_passages(self, metadata: Json, title: str) -> list[Placed]:
        """The passages of a document's metadata, usually one. They follow those of the text.

        No title is indexed with them: they would win every search for the title.
        """
        text = metadata_text(metadata, title)
        cut = chunker.chunk(text, "text", self._embedder.tokenizer, self.budget)
        pieces = (text[passage.start : passage.end] for passage in cut)
        return [Placed(piece, Anchor(metadata=True), "", tag_characters(piece) > 0) for piece in pieces]

    def batches(self, passages: Iterable[Placed]) -> Iterator[list[NewChunk]]:
        """Embed all passages of a document; yield its chunks.

        Embedding begins with this call, and goes on with the next batch while the caller writes one.
        """
        begins = self._begins(iter(passages))
        begun = deque(islice(begins, 1 + AHEAD))

        def finished() -> Iterator[list[NewChunk]]:
            while begun:
                yield begun.popleft()()
                begun.extend(islice(begins, 1))

        return finished()

    def _begins(self, passages: Iterator[Placed]) -> Iterator[Finish]:
        first = 0
        while some := list(islice(passages, BATCH)):
            yield self.begin(some, first)
            first += len(some)

    def begin(self, passages: Sequence[Placed], first: int) -> Finish:
        """Start to embed a batch in the background; return a function that waits for its chunks."""
        model = self._embedder.fingerprint  # before: if another takes over now, these chunks are refused and made again
        inputs = [(p.title, p.anchor.heading, p.text) for p in passages]
        vectors = self._begun(inputs)

        def finish() -> list[NewChunk]:
            columns, patient = [], True
            for passage in passages:  # while they are embedded
                patient = patient and self._priority.give_way()
                columns.append(self.segmented(passage.title, passage.anchor.heading, passage.text))
            static = self.static_vectors(inputs)
            return [
                NewChunk(
                    index=first + number,
                    text=passage.text,
                    anchor=passage.anchor,
                    hidden=passage.hidden,
                    title_terms=columns[number][0],
                    heading_terms=columns[number][1],
                    body_terms=columns[number][2],
                    vector=vector,
                    model=model,
                    static_vector=static[number],
                )
                for (number, passage), vector in zip(enumerate(passages), vectors.result(), strict=True)
            ]

        return finish

    def static_vectors(self, passages: Sequence[tuple[str, str | None, str]]) -> list[str | None]:
        """The static vectors of passages, each given as title, heading and text; None where they are not installed."""
        if self._static is None or not self._static.is_installed:
            return [None] * len(passages)
        texts = ["\n".join(filter(None, (shown(title, text), heading, text))) for title, heading, text in passages]
        return [encoded(vector) for vector in self._static.embed(texts)]

    def embedded(self, passages: Sequence[tuple[str, str | None, str]]) -> Vector:
        """The vectors of passages, each given as title, heading and text."""
        return self._begun(passages).result()

    def _begun(self, passages: Sequence[tuple[str, str | None, str]]) -> "Future[Vector]":
        self._priority.give_way()
        return self._embedder.begin(
            [self._in_context(text, shown(title, text), heading) for title, heading, text in passages]
        )

    def segmented(self, title: str, heading: str | None, text: str) -> tuple[list[str], list[str], list[str]]:
        """The full-text terms of a passage: title, heading, body."""
        return terms.index_terms(shown(title, text)), terms.index_terms(heading or ""), terms.index_terms(text)

    def _in_context(self, text: str, title: str, heading: str | None) -> str:
        context = chunker.context(title or None, heading)
        if not context:
            return text
        tokenizer = self._embedder.tokenizer
        room = self._window - tokenizer.count(text)
        fitted = chunker.fit_context(context, tokenizer, room)
        return f"{fitted}\n{text}" if fitted else text


def shown(title: str, text: str) -> str:
    """A passage that opens with the title needs no second copy of it."""
    return "" if text.lstrip("# \t").startswith(title) else title


def anchored(where: Anchor, passage: Slice, offset: int) -> Anchor:
    headings = chunker.SEPARATOR.join(filter(None, (where.heading, passage.heading)))
    start, end = offset + passage.start, offset + passage.end
    return replace(where, heading=headings or None, symbol=passage.symbol, start=start, end=end)
