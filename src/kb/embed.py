"""Text in, unit vectors out.

The same text gives the same vector in any batch and on either runtime (to a cosine of .9999), and no text is
cut silently. One inference runs at a time, on all usable cores; a query that waits goes before the next batch
of bulk work. Nothing here opens a socket.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from threading import Condition
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from kb.errors import InvalidRequest, KBError, Unavailable
from kb.model import ModelFiles, Pooling, describe
from kb.tokens import Tokenizer

Vectors = NDArray[np.float32]
Ids = NDArray[np.int64]
RuntimeName = Literal["auto", "openvino", "onnxruntime"]

# What a query may have to wait for: 8 passages of 200 tokens, padding included.
BATCH_TOKENS = 1600
QUERY_CACHE = 1024


class Embedder(Protocol):
    """What the rest of kb knows about embedding."""

    @property
    def name(self) -> str: ...
    @property
    def fingerprint(self) -> str: ...
    @property
    def dimensions(self) -> int: ...
    @property
    def max_tokens(self) -> int: ...
    @property
    def tokenizer(self) -> Tokenizer: ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One unit vector for each text, in order; a text over the window is refused."""

    def embed_query(self, text: str) -> Vectors:
        """The unit vector of a text of any length, before any bulk work that waits."""


class Runtime(Protocol):
    """Runs the model's graph."""

    device: str

    def run(self, input_ids: Ids, attention_mask: Ids) -> Vectors:
        """Vectors of the texts (batch, dimensions), or of their tokens (batch, length, dimensions)."""


class SentenceEmbedder:
    """The one embedder: tokenizer, runtime, pooling, and the order in which work is done."""

    def __init__(self, files: ModelFiles, tokenizer: Tokenizer, runtime: Runtime) -> None:
        self.name = files.name
        self.fingerprint = files.fingerprint
        self.dimensions = files.dimensions
        self.max_tokens = files.max_tokens
        self.tokenizer = tokenizer
        self.device = runtime.device
        self._pooling = files.pooling
        self._runtime = runtime
        self._gate = Gate()
        self._query = lru_cache(maxsize=QUERY_CACHE)(self._embed_query)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One unit vector for each text, in order; a text over the window is refused."""
        ids = self.tokenizer.ids(texts)
        for number, tokens in enumerate(ids):
            if len(tokens) > self.max_tokens:
                raise InvalidRequest(
                    f"Text {number + 1} of {len(ids)} has {len(tokens)} tokens, and {self.name} reads at most "
                    f"{self.max_tokens}. Split it.",
                    tokens=len(tokens),
                    max_tokens=self.max_tokens,
                )
        vectors = np.empty((len(ids), self.dimensions), np.float32)
        for batch in _batches([len(tokens) for tokens in ids]):
            with self._gate.bulk():
                vectors[batch] = self._run([ids[number] for number in batch])
        return vectors

    def embed_query(self, text: str) -> Vectors:
        """The unit vector of a text of any length, before any bulk work that waits.

        What is longer than the window is embedded in windows; the answer points to their mean, each
        weighted by its tokens. Answers are cached and cannot be written to.
        """
        return self._query(text)

    def _embed_query(self, text: str) -> Vectors:
        windows = self.tokenizer.windows(text, self.max_tokens)
        total = np.zeros(self.dimensions, np.float32)
        for window in windows:
            with self._gate.query():
                total += len(window) * self._run([window])[0]
        vector = _unit(total)
        vector.setflags(write=False)
        return vector

    def _run(self, batch: Sequence[Sequence[int]]) -> Vectors:
        """Unit vectors of one batch of token ids."""
        input_ids = np.zeros((len(batch), max(map(len, batch))), np.int64)
        mask = np.zeros_like(input_ids)
        for row, tokens in enumerate(batch):
            input_ids[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
        output = self._runtime.run(input_ids, mask)
        if output.ndim == 3:
            output = _pool(output, mask, self._pooling)
        return _unit(output)


def _pool(tokens: Vectors, mask: Ids, pooling: Pooling) -> Vectors:
    if pooling == "cls":
        return tokens[:, 0]
    weights = mask[:, :, None].astype(np.float32)
    return (tokens * weights).sum(axis=1) / weights.sum(axis=1)


def _unit(vectors: Vectors) -> Vectors:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True).clip(1e-12)


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Numbers of texts that go together: of like length, so that little is padding."""
    batch: list[int] = []
    for number in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and (len(batch) + 1) * lengths[number] > BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(number)
    if batch:
        yield batch


class Gate:
    """Lets one through at a time; queries go first."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._busy = False
        self._queries = 0  # waiting

    @contextmanager
    def query(self) -> Iterator[None]:
        with self._changed:
            self._queries += 1
            self._changed.wait_for(lambda: not self._busy)
            self._queries -= 1
            self._busy = True
        try:
            yield
        finally:
            self._leave()

    @contextmanager
    def bulk(self) -> Iterator[None]:
        with self._changed:
            self._changed.wait_for(lambda: not self._busy and not self._queries)
            self._busy = True
        try:
            yield
        finally:
            self._leave()

    def _leave(self) -> None:
        with self._changed:
            self._busy = False
            self._changed.notify_all()


class OpenVino:
    """The faster runtime wherever it was measured."""

    def __init__(self, graph: Path) -> None:
        import openvino

        core = openvino.Core()
        capabilities = core.get_property("CPU", "OPTIMIZATION_CAPABILITIES")
        precision = "bf16" if "BF16" in capabilities else "f32"
        options = {
            "INFERENCE_NUM_THREADS": usable_cores(),
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_PRECISION_HINT": precision,
        }
        compiled = core.compile_model(str(graph), "CPU", options)
        self._request = compiled.create_infer_request()
        self.device = f"CPU (OpenVINO, {precision})"

    def run(self, input_ids: Ids, attention_mask: Ids) -> Vectors:
        return np.array(self._request.infer([input_ids, attention_mask])[0])


def usable_cores() -> int:
    return len(os.sched_getaffinity(0))


def load(model_dir: Path, runtime: RuntimeName = "auto") -> SentenceEmbedder:
    """Open the model in this folder."""
    files = describe(model_dir)
    return SentenceEmbedder(files, Tokenizer(files.tokenizer), OpenVino(files.graph))
