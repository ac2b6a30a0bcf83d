"""What runs the embedding model's graph: OpenVINO, ONNX Runtime, or each for what it does best.

Figures and what else was tried: docs/decisions/002.
"""

import math
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from threading import get_native_id
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from kb.errors import Unavailable

Vectors = NDArray[np.float32]
Ids = NDArray[np.int64]
RuntimeName = Literal["auto", "openvino", "onnxruntime"]
# Token ids and attention mask of some texts to vectors of the texts (batch, dimensions), or of their tokens (batch,
# length, dimensions). For one thread at a time.
Run = Callable[[Ids, Ids], Vectors]

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


class Runtime(Protocol):
    """Runs the model's graph."""

    @property
    def device(self) -> str: ...
    @property
    def query(self) -> Run:
        """As soon as possible."""

    @property
    def streams(self) -> Sequence[Run]:
        """All at the same time, beside each other and beside `query`."""


def open_runtime(graph: Path, name: RuntimeName = "auto") -> Runtime:
    """The runtime of this name with the graph loaded; `auto` is the fastest of those that are installed."""
    try:
        if name == "auto":
            return _fastest(graph)
        return OnnxRuntime(graph) if name == "onnxruntime" else OpenVino(graph)
    except ImportError as wrong:
        raise Unavailable(
            f"There is no runtime for the embedding model: {wrong}. Run `make setup`, or install kb-server "
            "with the extra `engine` (OpenVINO and ONNX Runtime) or `onnx` (ONNX Runtime)."
        ) from wrong


def _fastest(graph: Path) -> Runtime:
    try:
        bulk = OpenVino(graph)
    except ImportError:
        return OnnxRuntime(graph)
    if bulk.precision == "bf16":
        return bulk
    try:
        return Both(bulk, OnnxRuntime(graph))
    except (ImportError, Unavailable):  # it is not there, or does not know what the graph asks for
        return bulk


class OpenVino:
    """In bfloat16, where the processor computes in it, twice as fast as any other.

    The graph is compiled twice over the same weights: a query has all cores for itself, bulk work one core for each
    stream. One stream on all cores would be slower in bulk, and a query would have to wait for it. What computes the
    streams gives way to everything else.
    """

    def __init__(self, graph: Path) -> None:
        import openvino  # type: ignore[import-untyped]  # noqa: PLC0415

        self._graph = graph
        cores = usable_cores()
        with _translated(graph):
            self._core = openvino.Core()
            self.precision = "bf16" if "BF16" in self._core.get_property("CPU", "OPTIMIZATION_CAPABILITIES") else "f32"
            self._options = {"INFERENCE_NUM_THREADS": cores, "INFERENCE_PRECISION_HINT": self.precision}
            self._model = self._core.read_model(graph)
            beside = _giving_way(lambda: self._compiled(cores))
        self._inputs = _inputs(graph, [port.any_name for port in self._model.inputs])
        self._output = _output(graph, [port.any_name for port in self._model.outputs])
        self.streams: Sequence[Run] = [self._runner(beside) for _ in range(cores)]
        self.device = f"cpu (OpenVINO, {self.precision})"

    @cached_property
    def query(self) -> Run:
        """Compiled when it is asked for, which somebody else may be instead (`Both`)."""
        with _translated(self._graph):
            return self._runner(self._compiled(1))

    def _compiled(self, streams: int) -> Any:
        return self._core.compile_model(self._model, "CPU", self._options | {"NUM_STREAMS": streams})

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
    """For machines without OpenVINO, for queries, and for graphics cards: it takes what its wheel was built for."""

    def __init__(self, graph: Path) -> None:
        import onnxruntime  # type: ignore[import-untyped]  # noqa: PLC0415

        self._graph = graph
        with _translated(graph):
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = usable_cores()
            options.log_severity_level = 4  # what goes wrong is raised; nothing else needs saying
            # Its threads wait for each other in a loop, which is quick. When a run is over the cores are for others.
            options.add_session_config_entry("session.force_spinning_stop", "1")
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


class Both:
    """OpenVINO for bulk work, ONNX Runtime for queries.

    A question is seldom as long as the one before it, and OpenVINO prepares anew for every other length. In float32 a
    query takes it a quarter longer. Its streams are as fast as any, and only they can be told to give way.
    """

    def __init__(self, bulk: OpenVino, queries: OnnxRuntime) -> None:
        self.query = queries.query
        self.streams = bulk.streams
        self.device = "cpu (OpenVINO; ONNX Runtime for queries, f32)"


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
