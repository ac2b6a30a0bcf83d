"""Text in, unit vectors out.

The same text gives the same vector in any batch and on either runtime (to a cosine of .9999), and no text is cut
silently. A query runs at once, beside batches that have begun (`kb.embedding.batcher`). Nothing opens a socket.
"""

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Protocol

import numpy as np

from kb.core.errors import InvalidRequest, Unavailable
from kb.core.lru import LruCache
from kb.embedding.batcher import BulkEmbedder, rounded
from kb.embedding.description import ModelDescription, Pooling
from kb.embedding.model import ModelFiles, describe
from kb.embedding.priority import Priority
from kb.embedding.runtimes import SHORTEST, Finish, Ids, Run, Runtime, RuntimeName, Vectors, open_runtime
from kb.embedding.tokenizer import Tokenizer, Tokens

SHORT_QUERY = 32  # tokens; only a longer one is padded to a length that repeats, as padding slows a shorter one down
QUERY_CACHE = 1024


class Embedder(Protocol):
    """What the rest of kb knows about embedding."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> ModelDescription: ...
    @property
    def fingerprint(self) -> str:
        """The same for the same vectors, another for another model."""

    def of(self, fingerprint: str) -> "Embedder | None":
        """The embedder for an index of this model; None when another model has just taken over."""

    @property
    def dimensions(self) -> int: ...
    @property
    def max_tokens(self) -> int:
        """The window, special tokens included."""

    @property
    def device(self) -> str: ...
    @property
    def tokenizer(self) -> Tokenizer: ...
    def begin(self, texts: Sequence[str]) -> "Future[Vectors]":
        """Start to embed: one unit vector for each text, in order. InvalidRequest when one is over the window."""

    def begin_query(self, text: str, tokens: Tokens | None = None) -> Finish:
        """Start to embed a text of any length in other threads. The returned function waits for its unit vector.

        The vector is not writable, since it is cached. A text longer than the window is read in windows; its vector
        is the direction of their mean, weighted by their tokens.
        """


class StartingEmbedder(Embedder, Protocol):
    """One whose model becomes ready while the engine already listens, or is away for a while."""

    @property
    def ready(self) -> bool: ...
    @property
    def problem(self) -> str | None:
        """Why it is not ready, if something is wrong."""

    @property
    def cached_queries(self) -> int: ...
    def start(self) -> None: ...
    def close(self) -> None: ...
    def wait(self) -> None:
        """Return when it is ready. Unavailable if it cannot be."""

    def of(self, fingerprint: str) -> "StartingEmbedder | None": ...


@dataclass(slots=True)
class PendingQuery:
    """A query that the runtime has begun. The next caller that needs the runtime completes it."""

    finish: Finish
    result: "Future[Vectors]" = field(default_factory=Future)

    def complete(self) -> None:
        if self.result.done():
            return
        try:
            self.result.set_result(self.finish())
        except Exception as wrong:  # noqa: BLE001 - raised again by the future
            self.result.set_exception(wrong)


class SentenceEmbedder:
    """Tokenizer, runtime and pooling of one model; queries beside bulk work."""

    def __init__(self, files: ModelFiles, runtime: Runtime, priority: Priority) -> None:
        self.description = files.description
        self.name = files.description.name
        self.fingerprint = files.fingerprint
        self.dimensions = files.description.dimensions
        self.max_tokens = files.description.max_tokens
        self.device = runtime.device
        self.tokenizer = Tokenizer(files.tokenizer)
        self._pooling = files.description.pooling
        self._runtime = runtime
        self._querying = Lock()  # guards `_pending`, and the runtime while it embeds a single text
        self._pending: PendingQuery | None = None
        streams = [partial(self._embedded, run) for run in runtime.streams]
        self._bulk = BulkEmbedder(streams, partial(self._alone, runtime.whole), self.dimensions, priority)
        self.query_cache: LruCache[str, Vectors] = LruCache(QUERY_CACHE)

    def of(self, fingerprint: str) -> "SentenceEmbedder":  # noqa: ARG002 - it is never replaced
        return self

    def embed(self, texts: Sequence[str]) -> Vectors:
        return self.begin(texts).result()

    def begin(self, texts: Sequence[str]) -> "Future[Vectors]":
        prefix = self.description.passage_prefix
        ids = self.tokenizer.ids([prefix + text for text in texts] if prefix else texts)
        lengths = [len(tokens) for tokens in ids]
        if lengths and max(lengths) > self.max_tokens:
            number = lengths.index(max(lengths))
            raise InvalidRequest(
                f"Text {number + 1} of {len(texts)} has {lengths[number]} tokens, and {self.name} reads at most "
                f"{self.max_tokens}. Split it.",
                tokens=lengths[number],
                max_tokens=self.max_tokens,
            )
        return self._bulk.submit(ids)

    def embed_query(self, text: str) -> Vectors:
        return self.begin_query(text)()

    def begin_query(self, text: str, tokens: Tokens | None = None) -> Finish:
        if (known := self.query_cache.get(text)) is not None:
            return lambda: known
        if prefix := self.description.query_prefix:
            windows = self._windows(prefix + text)
        else:
            windows = self._windows(text, tokens)
        pending = self._begin(windows[0]) if len(windows) == 1 else None

        def finish() -> Vectors:
            vector = self._completed(pending) if pending else self._mean(windows)
            vector.setflags(write=False)
            self.query_cache.put(text, vector)
            return vector

        return finish

    def _windows(self, text: str, tokens: Tokens | None = None) -> list[list[int]]:
        return self.tokenizer.windows(text, tokens or self.tokenizer.encode(text), self.max_tokens)

    def _begin(self, window: Sequence[int]) -> PendingQuery | None:
        """Return None if the runtime is busy; the caller then embeds synchronously."""
        if not self._querying.acquire(blocking=False):
            return None
        try:
            if self._pending is not None:
                return None
            input_ids, mask = self._padded([window])
            finish = self._runtime.begin(input_ids, mask)
            self._pending = PendingQuery(lambda: self._vectors(finish(), mask)[0])
            return self._pending
        finally:
            self._querying.release()

    def _completed(self, query: PendingQuery) -> Vectors:
        if not query.result.done():  # another caller may have completed it
            with self._querying:
                if self._pending is query:
                    self._complete_pending()
        return query.result.result()

    def _complete_pending(self) -> None:
        """Complete the pending query, if any: the runtime takes one text at a time."""
        if self._pending is not None:
            self._pending.complete()
            self._pending = None

    def _mean(self, windows: Sequence[Sequence[int]]) -> Vectors:
        vectors = [self._alone(self._runtime.query, [window])[0] for window in windows]
        return vectors[0] if len(windows) == 1 else unit(np.array([*map(len, windows)], np.float32) @ vectors)

    def _alone(self, run: Run, batch: Sequence[Sequence[int]]) -> Vectors:
        with self._querying:
            self._complete_pending()
            return self._embedded(run, batch)

    def _embedded(self, run: Run, batch: Sequence[Sequence[int]]) -> Vectors:
        """Unit vectors of one batch of token ids."""
        input_ids, mask = self._padded(batch)
        return self._vectors(run(input_ids, mask), mask)

    def _padded(self, batch: Sequence[Sequence[int]]) -> tuple[Ids, Ids]:
        """Token ids and attention mask."""
        longest = max(map(len, batch))
        exact = len(batch) == 1 and longest <= SHORT_QUERY
        width = longest if exact else min(rounded(longest), self.max_tokens)
        input_ids = np.zeros((len(batch), width), np.int64)
        mask = np.zeros_like(input_ids)
        for row, tokens in enumerate(batch):
            input_ids[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
        return input_ids, mask

    def _vectors(self, output: Vectors, mask: Ids) -> Vectors:
        """Unit vectors from the output of a runtime."""
        if output.ndim == 3:
            output = _pool(output, mask, self._pooling)
        return unit(output.astype(np.float32, copy=False))


def load(model_dir: Path, runtime: RuntimeName = "auto", priority: Priority | None = None) -> SentenceEmbedder:
    """Open the model in this folder and prove that it runs."""
    files = describe(model_dir)
    opened = open_runtime(files.graph, runtime)
    # One after the other: OpenVINO's binding can lock itself up when two threads use it for the very first time.
    (dimensions,) = {run(SHORTEST, SHORTEST).shape[-1] for run in (opened.query, opened.whole, *opened.streams)}
    if dimensions != files.description.dimensions:
        raise Unavailable(
            f"{files.graph} gives {dimensions} dimensions, but 1_Pooling/config.json says "
            f"{files.description.dimensions}. "
            "Check KB_MODEL_DIR."
        )
    return SentenceEmbedder(files, opened, priority or Priority())


def _pool(tokens: Vectors, mask: Ids, pooling: Pooling) -> Vectors:
    """One vector for each text from those of its tokens."""
    if pooling == "cls":
        return tokens[:, 0]
    weights = mask[:, :, None].astype(np.float32)
    mean: Vectors = (tokens * weights).sum(axis=1) / weights.sum(axis=1)
    return mean


def unit(vectors: Vectors) -> Vectors:
    # Faster for a single vector than `numpy.linalg.norm` and `clip` (`kb.core.arrays`).
    lengths = np.sqrt((vectors * vectors).sum(axis=-1, keepdims=True))
    unit: Vectors = vectors / np.maximum(lengths, np.float32(1e-12))
    return unit
