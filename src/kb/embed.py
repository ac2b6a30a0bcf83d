"""Text in, unit vectors out.

The same text gives the same vector in any batch and on either runtime (to a cosine of .9999), and no text is
cut silently. One inference runs at a time, on all usable cores; a query that waits goes before the next batch
of bulk work. Nothing here opens a socket.
"""

import math
import os
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from threading import Event, Lock
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from kb.errors import InvalidRequest, KBError, Unavailable
from kb.model import ModelFiles, Pooling, describe
from kb.tokens import Tokenizer

Vectors = NDArray[np.float32]
Ids = NDArray[np.int64]
RuntimeName = Literal["auto", "openvino", "onnxruntime"]

# What a query may have to wait for: 4 passages of 200 tokens. Larger batches are no faster on few cores.
BATCH_TOKENS = 800
# OpenVINO keeps 0.3 to 0.5 MB for every shape it has seen, so the shapes of batches are made to repeat.
LENGTH_STEP = 8
QUERY_CACHE = 1024

# What a graph may be called upon to take and to give; the first that it has is taken.
INPUTS = ("input_ids", "attention_mask", "token_type_ids")
OUTPUTS = ("sentence_embedding", "last_hidden_state", "token_embeddings")


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


class Runtime(Protocol):
    """Runs the model's graph."""

    device: str

    def run(self, input_ids: Ids, attention_mask: Ids) -> Vectors:
        """Vectors of the texts (batch, dimensions), or of their tokens (batch, length, dimensions)."""


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
        try:
            output = self._runtime.run(input_ids, mask)
        except Exception as wrong:  # each runtime has its own, without a common base
            raise KBError(f"{self.name} failed on {self.device}: {wrong}") from wrong
        if output.ndim == 3:
            output = _pool(output, mask, self._pooling)
        return _unit(output)


def load(model_dir: Path, runtime: RuntimeName = "auto") -> SentenceEmbedder:
    """Open the model in this folder, and prove that it runs.

    `auto` takes OpenVINO, and ONNX Runtime where OpenVINO is not installed.
    """
    files = describe(model_dir)
    try:
        embedder = SentenceEmbedder(files, _open(files.graph, runtime))
        given = embedder.embed_query("warm").shape
    except ImportError as wrong:
        raise Unavailable(
            f"The embedding model needs OpenVINO or ONNX Runtime: {wrong}. Run `make setup`, or install "
            "kb-server with the extra `engine` or `onnx`."
        ) from wrong
    return embedder
