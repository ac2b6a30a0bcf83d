"""Text in, unit vectors out.

The same text gives the same vector in any batch and on either runtime (to a cosine of .9999), and no text is
cut silently. One inference runs at a time, on all usable cores; a query that waits goes before the next batch
of bulk work. Nothing here opens a socket.
"""

import math
import os
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from threading import Event, Lock
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from kb.errors import InvalidRequest, Unavailable
from kb.model import ModelFiles, Pooling, describe
from kb.tokens import Tokenizer

Vectors = NDArray[np.float32]
Ids = NDArray[np.int64]
RuntimeName = Literal["auto", "openvino", "onnxruntime"]

# What a query may have to wait for: 4 passages of 200 tokens. Larger batches are no faster on few cores.
BATCH_TOKENS = 800
# OpenVINO keeps 0.3 to 0.8 MB for every shape it has seen, so shapes are made to repeat; only a short query keeps
# its length, as it would notice the padding.
LENGTH_STEP = 8
SHORT_QUERY = 32
QUERY_CACHE = 1024
# What a graph may ask for, and what it may answer, the best first.
INPUTS = ("input_ids", "attention_mask", "token_type_ids")
OUTPUTS = ("sentence_embedding", "last_hidden_state", "token_embeddings")
# What ONNX Runtime may be built for, the fastest first, and what to call it.
PROVIDERS = {
    "CUDAExecutionProvider": "cuda",
    "MIGraphXExecutionProvider": "rocm",
    "CPUExecutionProvider": "cpu",
}


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
        longest = max(map(len, batch))
        exact = len(batch) == 1 and longest <= SHORT_QUERY
        width = longest if exact else min(_rounded(longest), self.max_tokens)
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
        if batch and (len(batch) + 1) * _rounded(lengths[number]) > BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(number)
    if batch:
        yield batch


def _rounded(length: int) -> int:
    return math.ceil(length / LENGTH_STEP) * LENGTH_STEP


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


def open_runtime(graph: Path, name: RuntimeName = "auto") -> Runtime:
    """The runtime of this name with the graph loaded; `auto` is OpenVINO, or else ONNX Runtime."""
    try:
        return OnnxRuntime(graph) if name == "onnxruntime" else OpenVino(graph)
    except ImportError as wrong:
        if name == "auto":
            return open_runtime(graph, "onnxruntime")
        raise Unavailable(
            f"There is no runtime for the embedding model: {wrong}. Run `make setup`, or install kb-server "
            "with the extra `engine` (OpenVINO) or `onnx` (ONNX Runtime)."
        ) from wrong


class OpenVino:
    """The preferred runtime: in bfloat16, where the processor computes in it, twice as fast as any other."""

    def __init__(self, graph: Path) -> None:
        import openvino  # type: ignore[import-untyped]  # noqa: PLC0415

        self._graph = graph
        with _translated(graph):
            core = openvino.Core()
            precision = "bf16" if "BF16" in core.get_property("CPU", "OPTIMIZATION_CAPABILITIES") else "f32"
            options = {
                "INFERENCE_NUM_THREADS": usable_cores(),
                "INFERENCE_PRECISION_HINT": precision,
                "PERFORMANCE_HINT": "LATENCY",
            }
            model = core.compile_model(graph, "CPU", options)
            self._request = model.create_infer_request()
        self._inputs = _inputs(graph, [port.any_name for port in model.inputs])
        self._output = _output(graph, [port.any_name for port in model.outputs])
        self.device = f"cpu (OpenVINO, {precision})"

    def run(self, input_ids: Ids, attention_mask: Ids) -> Vectors:
        with _translated(self._graph):
            feed = _feed(self._inputs, input_ids, attention_mask)
            self._request.infer(feed, share_inputs=True, share_outputs=True)
            return np.array(self._request.get_tensor(self._output).data)


class OnnxRuntime:
    """The runtime for machines that have no OpenVINO, and for graphics cards: it takes what its wheel was built for."""

    def __init__(self, graph: Path) -> None:
        import onnxruntime  # type: ignore[import-untyped]  # noqa: PLC0415

        self._graph = graph
        with _translated(graph):
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = usable_cores()
            options.log_severity_level = 4  # what goes wrong is raised; nothing else needs saying
            built_for = onnxruntime.get_available_providers()
            providers = [name for name in PROVIDERS if name in built_for]
            self._session = onnxruntime.InferenceSession(graph, options, providers=providers)
        self._inputs = _inputs(graph, [port.name for port in self._session.get_inputs()])
        self._output = _output(graph, [port.name for port in self._session.get_outputs()])
        self.device = f"{PROVIDERS[self._session.get_providers()[0]]} (ONNX Runtime, f32)"

    def run(self, input_ids: Ids, attention_mask: Ids) -> Vectors:
        with _translated(self._graph):
            feed = _feed(self._inputs, input_ids, attention_mask)
            return np.asarray(self._session.run([self._output], feed)[0])


@contextmanager
def _translated(graph: Path) -> Iterator[None]:
    try:
        yield
    except Exception as wrong:  # each runtime has its own, without a common base
        reason = " ".join(str(wrong).split())
        raise Unavailable(
            f"The embedding model {graph} cannot be run: {reason} Run `make setup` again, or check KB_MODEL_DIR."
        ) from wrong


def _inputs(graph: Path, names: Sequence[str]) -> Sequence[str]:
    if foreign := set(names) - set(INPUTS):
        raise Unavailable(f"{graph} asks for {', '.join(sorted(foreign))}, which kb does not know.")
    return names


def _output(graph: Path, names: Sequence[str]) -> str:
    for name in OUTPUTS if len(names) > 1 else names:
        if name in names:
            return name
    raise Unavailable(f"{graph} gives {', '.join(names)}; kb understands {', '.join(OUTPUTS)}.")


def _feed(names: Sequence[str], input_ids: Ids, attention_mask: Ids) -> dict[str, Ids]:
    known = zip(INPUTS, (input_ids, attention_mask, np.zeros_like(input_ids)), strict=True)
    return {name: array for name, array in known if name in names}


def usable_cores() -> int:
    """The cores that this process may use: those it may run on, within a container's quota."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split()
        return max(1, min(cores, math.ceil(int(quota) / int(period))))
    except (OSError, ValueError):  # no such file, or no quota
        return cores
