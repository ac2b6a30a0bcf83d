"""Text in, unit vectors out.

The same text gives the same vector in any batch and on either runtime (to a cosine of .9999), and no text is
cut silently. One inference runs at a time, on all usable cores; a query that waits goes before the next batch
of bulk work. Nothing here opens a socket.
"""

import math
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from threading import Event, Lock
from typing import Protocol

import numpy as np

from kb.errors import InvalidRequest, Unavailable
from kb.model import ModelFiles, Pooling, describe
from kb.runtime import Ids, Runtime, RuntimeName, Vectors, open_runtime
from kb.tokens import Tokenizer

# What a query may have to wait for: 4 passages of 200 tokens. Larger batches are no faster on few cores.
BATCH_TOKENS = 800
# OpenVINO keeps 0.3 to 0.5 MB for every shape it has seen, so the shapes of batches are made to repeat.
LENGTH_STEP = 8
QUERY_CACHE = 1024


@dataclass(frozen=True, slots=True)
class CacheCounts:
    hits: int
    misses: int
    size: int
    capacity: int


class Embedder(Protocol):
    """What the rest of kb knows about embedding."""

    @property
    def name(self) -> str: ...
    @property
    def fingerprint(self) -> str:
        """The same for the same vectors, another for another model."""

    @property
    def dimensions(self) -> int: ...
    @property
    def max_tokens(self) -> int:
        """The window, special tokens included."""

    @property
    def device(self) -> str: ...
    @property
    def tokenizer(self) -> Tokenizer: ...
    def embed(self, texts: Sequence[str]) -> Vectors:
        """One unit vector for each text, in order; InvalidRequest when one is over the window."""

    def embed_query(self, text: str) -> Vectors:
        """The unit vector of a text of any length, before all bulk work that waits; not writable."""


class SentenceEmbedder:
    """The one embedder: tokenizer, runtime, pooling, and the order in which work is done."""

    def __init__(self, files: ModelFiles, runtime: Runtime) -> None:
        self.name = files.name
        self.fingerprint = files.fingerprint
        self.dimensions = files.dimensions
        self.max_tokens = files.max_tokens
        self.device = runtime.device
        self.tokenizer = Tokenizer(files.tokenizer)
        self.gate = Gate()
        self._pooling = files.pooling
        self._runtime = runtime
        self._query = lru_cache(maxsize=QUERY_CACHE)(self._embed_query)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One unit vector for each text, in order; InvalidRequest when one is over the window."""
        ids = self.tokenizer.ids(texts)
        lengths = [len(tokens) for tokens in ids]
        if lengths and max(lengths) > self.max_tokens:
            number = lengths.index(max(lengths))
            raise InvalidRequest(
                f"Text {number + 1} of {len(texts)} has {lengths[number]} tokens, and {self.name} reads at most "
                f"{self.max_tokens}. Split it.",
                tokens=lengths[number],
                max_tokens=self.max_tokens,
            )
        vectors = np.empty((len(ids), self.dimensions), np.float32)
        for batch in _batches(lengths):
            with self.gate.bulk():
                vectors[batch] = self._run([ids[number] for number in batch])
        return vectors

    def embed_query(self, text: str) -> Vectors:
        """The unit vector of a text of any length, before all bulk work that waits; not writable.

        What is longer than the window is read in windows; the answer is the direction of their mean, in
        which each counts by its tokens.
        """
        return self._query(text)

    @property
    def query_cache(self) -> CacheCounts:
        counts = self._query.cache_info()
        return CacheCounts(counts.hits, counts.misses, counts.currsize, QUERY_CACHE)

    def _embed_query(self, text: str) -> Vectors:
        total = np.zeros(self.dimensions, np.float32)
        for window in self.tokenizer.windows(text, self.max_tokens):
            with self.gate.query():
                total += len(window) * self._run([window])[0]
        vector = _unit(total)
        vector.setflags(write=False)  # every asker gets this one
        return vector

    def _run(self, batch: Sequence[Sequence[int]]) -> Vectors:
        """Unit vectors of one batch of token ids."""
        width = max(map(len, batch))
        if len(batch) > 1:
            width = min(math.ceil(width / LENGTH_STEP) * LENGTH_STEP, self.max_tokens)
        input_ids = np.zeros((len(batch), width), np.int64)
        mask = np.zeros_like(input_ids)
        for row, tokens in enumerate(batch):
            input_ids[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
        output = self._runtime.run(input_ids, mask)
        if output.ndim == 3:
            output = _pool(output, mask, self._pooling)
        return _unit(output)


def load(model_dir: Path, runtime: RuntimeName = "auto") -> SentenceEmbedder:
    """Open the model in this folder and prove that it runs."""
    files = describe(model_dir)
    opened = open_runtime(files.graph, runtime)
    shortest = np.ones((1, 2), np.int64)
    dimensions = opened.run(shortest, shortest).shape[-1]
    if dimensions != files.dimensions:
        raise Unavailable(
            f"{files.graph} gives {dimensions} dimensions, but 1_Pooling/config.json says {files.dimensions}. "
            "Check KB_MODEL_DIR."
        )
    return SentenceEmbedder(files, opened)


class Gate:
    """Lets one through at a time: queries first, otherwise in the order of arrival."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._busy = False
        self._queries: deque[Event] = deque()
        self._bulk: deque[Event] = deque()

    @property
    def waiting(self) -> int:
        return len(self._queries) + len(self._bulk)

    def query(self) -> AbstractContextManager[None]:
        return self._passage(self._queries)

    def bulk(self) -> AbstractContextManager[None]:
        return self._passage(self._bulk)

    @contextmanager
    def _passage(self, line: deque[Event]) -> Iterator[None]:
        turn = Event()
        with self._lock:
            if self._busy:
                line.append(turn)
            else:
                self._busy = True
                turn.set()
        turn.wait()
        try:
            yield
        finally:
            self._leave()

    def _leave(self) -> None:
        """Hand over to the next in person: whoever comes now cannot slip in between."""
        with self._lock:
            if line := self._queries or self._bulk:
                line.popleft().set()
            else:
                self._busy = False


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Numbers of the texts that go together: of like length, so that little is padding."""
    batch: list[int] = []
    for number in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and (len(batch) + 1) * lengths[number] > BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(number)
    if batch:
        yield batch


def _pool(tokens: Vectors, mask: Ids, pooling: Pooling) -> Vectors:
    """One vector for each text from those of its tokens."""
    if pooling == "cls":
        return tokens[:, 0]
    weights = mask[:, :, None].astype(np.float32)
    mean: Vectors = (tokens * weights).sum(axis=1) / weights.sum(axis=1)
    return mean


def _unit(vectors: Vectors) -> Vectors:
    unit: Vectors = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True).clip(1e-12)
    return unit
