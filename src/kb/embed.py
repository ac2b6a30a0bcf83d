"""Text in, unit vectors out.

The same text gives the same vector in any batch and on either runtime (to a cosine of .9999), and no text is
cut silently. A query runs at once, on all usable cores, beside the bulk work that has begun and before all that has
not (`kb.bulk`). Nothing here opens a socket.
"""

import math
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from threading import Lock, get_native_id
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from kb.bulk import Bulk, rounded
from kb.errors import InvalidRequest, Unavailable
from kb.model import ModelFiles, Pooling, describe
from kb.tokens import Tokenizer

Vectors = NDArray[np.float32]
Ids = NDArray[np.int64]
RuntimeName = Literal["auto", "openvino", "onnxruntime"]
# Token ids and attention mask of some texts to vectors of the texts (batch, dimensions), or of their tokens (batch,
# length, dimensions). For one thread at a time.
Run = Callable[[Ids, Ids], Vectors]

SHORT_QUERY = 32  # tokens; a longer one is padded to a length that repeats, a shorter one would notice the padding
QUERY_CACHE = 1024
GIVING_WAY = 10  # how much: others get ten times as much of a core, but it is never starved
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

    def begin(self, texts: Sequence[str]) -> "Future[Vectors]":
        """The same, without waiting for it."""

    def embed_query(self, text: str) -> Vectors:
        """The unit vector of a text of any length, before all bulk work that waits; not writable."""


class Runtime(Protocol):
    """Runs the model's graph."""

    device: str
    query: Run  # as soon as possible
    streams: Sequence[Run]  # all at the same time, beside each other and beside `query`


class SentenceEmbedder:
    """The one embedder: tokenizer, runtime, pooling, and the order in which work is done."""

    def __init__(self, files: ModelFiles, runtime: Runtime) -> None:
        self.name = files.name
        self.fingerprint = files.fingerprint
        self.dimensions = files.dimensions
        self.max_tokens = files.max_tokens
        self.device = runtime.device
        self.tokenizer = Tokenizer(files.tokenizer)
        self._pooling = files.pooling
        self._runtime = runtime
        self._querying = Lock()
        self.bulk = Bulk([partial(self._embedded, run) for run in runtime.streams], self._alone, files.dimensions)
        self._query = lru_cache(maxsize=QUERY_CACHE)(self._embed_query)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One unit vector for each text, in order; InvalidRequest when one is over the window."""
        return self.begin(texts).result()

    def begin(self, texts: Sequence[str]) -> "Future[Vectors]":
        """The same, without waiting for it: only what is wrong with the texts is told at once."""
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
        return self.bulk.submit(ids)

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
            with self.bulk.query():
                total += len(window) * self._alone([window])[0]
        vector = _unit(total)
        vector.setflags(write=False)  # every asker gets this one
        return vector

    def _alone(self, batch: Sequence[Sequence[int]]) -> Vectors:
        with self._querying:
            return self._embedded(self._runtime.query, batch)

    def _embedded(self, run: Run, batch: Sequence[Sequence[int]]) -> Vectors:
        """Unit vectors of one batch of token ids."""
        longest = max(map(len, batch))
        exact = len(batch) == 1 and longest <= SHORT_QUERY
        width = longest if exact else min(rounded(longest), self.max_tokens)
        input_ids = np.zeros((len(batch), width), np.int64)
        mask = np.zeros_like(input_ids)
        for row, tokens in enumerate(batch):
            input_ids[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
        output = run(input_ids, mask)
        if output.ndim == 3:
            output = _pool(output, mask, self._pooling)
        return _unit(output)


def load(model_dir: Path, runtime: RuntimeName = "auto") -> SentenceEmbedder:
    """Open the model in this folder and prove that it runs."""
    files = describe(model_dir)
    opened = open_runtime(files.graph, runtime)
    shortest = np.ones((1, 2), np.int64)
    # One after the other: OpenVINO's binding can lock itself up when two threads use it for the very first time.
    (dimensions,) = {run(shortest, shortest).shape[-1] for run in (opened.query, *opened.streams)}
    if dimensions != files.dimensions:
        raise Unavailable(
            f"{files.graph} gives {dimensions} dimensions, but 1_Pooling/config.json says {files.dimensions}. "
            "Check KB_MODEL_DIR."
        )
    return SentenceEmbedder(files, opened)


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
    """The preferred runtime: in bfloat16, where the processor computes in it, twice as fast as any other.

    The graph is compiled twice over the same weights: a query has all cores for itself, bulk work one core for each
    stream. One stream on all cores would be slower in bulk, and a query would have to wait for it. What computes the
    streams gives way to everything else (docs/decisions/002).
    """

    def __init__(self, graph: Path) -> None:
        import openvino  # type: ignore[import-untyped]  # noqa: PLC0415

        self._graph = graph
        cores = usable_cores()
        with _translated(graph):
            core = openvino.Core()
            precision = "bf16" if "BF16" in core.get_property("CPU", "OPTIMIZATION_CAPABILITIES") else "f32"
            options = {"INFERENCE_NUM_THREADS": cores, "INFERENCE_PRECISION_HINT": precision}
            model = core.read_model(graph)
            alone = core.compile_model(model, "CPU", options | {"NUM_STREAMS": 1})
            beside = _giving_way(lambda: core.compile_model(model, "CPU", options | {"NUM_STREAMS": cores}))
        self._inputs = _inputs(graph, [port.any_name for port in model.inputs])
        self._output = _output(graph, [port.any_name for port in model.outputs])
        self.query = self._runner(alone)
        self.streams: Sequence[Run] = [self._runner(beside) for _ in range(cores)]
        self.device = f"cpu (OpenVINO, {precision})"

    def _runner(self, model: Any) -> Run:
        with _translated(self._graph):
            request = model.create_infer_request()

        def run(input_ids: Ids, attention_mask: Ids) -> Vectors:
            with _translated(self._graph):
                feed = _feed(self._inputs, input_ids, attention_mask)
                request.infer(feed, share_inputs=True, share_outputs=True)
                return np.array(request.get_tensor(self._output).data)

        return run


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
        self.query: Run = self._run  # a session takes several at once
        self.streams: Sequence[Run] = [self._run]
        self.device = f"{PROVIDERS[self._session.get_providers()[0]]} (ONNX Runtime, f32)"

    def _run(self, input_ids: Ids, attention_mask: Ids) -> Vectors:
        with _translated(self._graph):
            feed = _feed(self._inputs, input_ids, attention_mask)
            return np.asarray(self._session.run([self._output], feed)[0])


def _giving_way(work: Callable[[], Any]) -> Any:
    """Do it in a thread of low priority; the threads that it starts inherit that."""

    def lower() -> None:
        if sys.platform == "linux":  # elsewhere the whole process would be meant
            own = os.getpriority(os.PRIO_PROCESS, get_native_id())
            os.setpriority(os.PRIO_PROCESS, get_native_id(), max(own, GIVING_WAY))

    with ThreadPoolExecutor(1, initializer=lower) as thread:
        return thread.submit(work).result()


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
