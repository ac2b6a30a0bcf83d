"""The runtimes of the embedding model: OpenVINO, ONNX Runtime, kb's own encoder, and combinations of them.

Figures: docs/decisions/002 and 011.
"""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import get_native_id
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from kb.core.cpu import usable_cores
from kb.core.errors import Unavailable
from kb.embedding.minilm.encoder import Encoder, Precision

Vectors = NDArray[np.float32]
Ids = NDArray[np.int64]
RuntimeName = Literal["auto", "openvino", "onnxruntime"]
# Token ids and attention mask in; vectors of texts (batch, dimensions) or of tokens (batch, length, dimensions) out.
# For one thread at a time.
Run = Callable[[Ids, Ids], Vectors]
Finish = Callable[[], Vectors]
Begin = Callable[[Ids, Ids], Finish]

GIVING_WAY = 10  # nice value of bulk work: others get ten times as much of a core, but it is never starved
SPINNING = 15  # microseconds that threads of ONNX Runtime spin before they sleep
QUERY_THREADS = 4  # at most: waking more of them would take longer than their share of the work (an estimate)
LONG_QUERY = 64  # tokens from which a general runtime is as fast as kb's own encoder
# Known inputs and outputs of a graph; of several outputs the first is taken.
INPUTS = ("input_ids", "attention_mask", "token_type_ids")
OUTPUTS = ("sentence_embedding", "last_hidden_state", "token_embeddings")
# Execution providers of ONNX Runtime, the fastest first, and their names in the status.
CPU = "CPUExecutionProvider"
PROVIDERS = {"CUDAExecutionProvider": "cuda", "MIGraphXExecutionProvider": "rocm", CPU: "cpu"}
SHORTEST: Ids = np.ones((1, 2), np.int64)  # possible text


class Runtime(Protocol):
    """Runs the model's graph."""

    @property
    def device(self) -> str: ...
    @property
    def query(self) -> Run:
        """Embed one text, as fast as possible."""

    @property
    def begin(self) -> Begin:
        """Begin the same in other threads. The returned function, to be called before the next text, completes it."""

    @property
    def whole(self) -> Run:
        """Embed one text fast, to the vector that `streams` would give. Not to be called beside `query`."""

    @property
    def streams(self) -> Sequence[Run]:
        """Functions for bulk work, which may run in parallel, and beside `query`."""


def open_runtime(graph: Path, name: RuntimeName = "auto") -> Runtime:
    """Load the graph in the runtime of this name; `auto` takes the fastest one that is installed."""
    try:
        if name == "auto":
            return _fastest(graph)
        return OnnxRuntime(graph) if name == "onnxruntime" else OpenVino(OpenVinoModel(graph))
    except ImportError as wrong:
        raise Unavailable(
            f"There is no runtime for the embedding model: {wrong}. Run `make setup`, or install kb-server "
            "with the extra `engine` (OpenVINO and ONNX Runtime) or `onnx` (ONNX Runtime)."
        ) from wrong


def _fastest(graph: Path) -> Runtime:
    try:
        model = OpenVinoModel(graph)
    except ImportError:
        return OnnxRuntime(graph)
    threads = min(usable_cores(), QUERY_THREADS)
    try:
        return WithEncoder(model, Encoder(graph, threads, model.precision))
    except Unavailable:  # not compiled, another graph, or an unsupported processor
        pass
    if model.precision == "bf16":
        return OpenVino(model)
    try:
        return WithOnnxRuntime(model, OnnxRuntime(graph, [CPU], threads))
    except (ImportError, Unavailable):  # not installed, or without an operator of the graph
        return OpenVino(model)


class OpenVinoModel:
    """The graph, read and ready to be compiled."""

    def __init__(self, graph: Path) -> None:
        import openvino  # type: ignore[import-untyped]  # noqa: PLC0415

        self._graph = graph
        with _translated(graph):
            self._core = openvino.Core()
            self.precision: Precision = (
                "bf16" if "BF16" in self._core.get_property("CPU", "OPTIMIZATION_CAPABILITIES") else "f32"
            )
            self._model = self._core.read_model(graph)
        self._inputs = _inputs(graph, [port.any_name for port in self._model.inputs])
        self._output = _output(graph, [port.any_name for port in self._model.outputs])

    def alone(self) -> Run:
        """A function that embeds one text on all cores."""
        return self._runner(self._compiled(1))

    def beside(self) -> list[Run]:
        """Functions that embed on one core each, which is faster in total, with low priority."""
        streams = usable_cores()
        compiled = _giving_way(lambda: self._compiled(streams))
        return [self._runner(compiled) for _ in range(streams)]

    def _compiled(self, streams: int) -> Any:
        options = {
            "INFERENCE_NUM_THREADS": usable_cores(),
            "INFERENCE_PRECISION_HINT": self.precision,
            "NUM_STREAMS": streams,
        }
        with _translated(self._graph):
            return self._core.compile_model(self._model, "CPU", options)

    def _runner(self, compiled: Any) -> Run:
        graph, inputs, output = self._graph, self._inputs, self._output  # so that `run` does not keep `self` alive
        with _translated(graph):
            request = compiled.create_infer_request()

        def run(input_ids: Ids, attention_mask: Ids) -> Vectors:
            with _translated(graph):
                request.infer(_feed(inputs, input_ids, attention_mask), share_inputs=True, share_outputs=True)
                return np.array(request.get_tensor(output).data)

        return run


class OpenVino:
    """The fastest runtime for any graph where the processor computes in bfloat16.

    The graph is compiled twice over the same weights, so that a query does not wait for bulk work.
    """

    def __init__(self, model: OpenVinoModel) -> None:
        self.query = self.whole = model.alone()
        self.begin = elsewhere(self.query)
        self.streams = model.beside()
        self.device = f"cpu (OpenVINO, {model.precision})"


class OnnxRuntime:
    """For machines without OpenVINO, for queries, and for graphics cards if its wheel was built for them."""

    def __init__(self, graph: Path, providers: Sequence[str] = tuple(PROVIDERS), threads: int | None = None) -> None:
        import onnxruntime  # type: ignore[import-untyped]  # noqa: PLC0415

        self._graph = graph
        with _translated(graph):
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = threads or usable_cores()
            options.log_severity_level = 4  # errors are raised anyway
            # Spin for no longer than a step takes: a spinning thread may keep the one it waits for off its core.
            options.add_session_config_entry("session.intra_op.spin_duration_us", str(SPINNING))
            options.add_session_config_entry("session.force_spinning_stop", "1")
            built_for = onnxruntime.get_available_providers()
            possible = [name for name in providers if name in built_for]
            self._session = onnxruntime.InferenceSession(graph, options, providers=possible)
        self._inputs = _inputs(graph, [port.name for port in self._session.get_inputs()])
        self._output = _output(graph, [port.name for port in self._session.get_outputs()])
        self.query = self.whole = self._run  # a session may be used by several threads
        self.begin = elsewhere(self.query)
        self.streams: Sequence[Run] = [self._run]
        self.device = f"{PROVIDERS[self._session.get_providers()[0]]} (ONNX Runtime, f32)"

    def _run(self, input_ids: Ids, attention_mask: Ids) -> Vectors:
        with _translated(self._graph):
            feed = _feed(self._inputs, input_ids, attention_mask)
            return np.asarray(self._session.run([self._output], feed)[0])


class WithEncoder:
    """OpenVINO for documents, and kb's own encoder for queries.

    Queries differ in length, and OpenVINO prepares anew for every length. For documents it is as fast as any, its
    streams can have a low priority, and all stored vectors come from one runtime.
    """

    def __init__(self, model: OpenVinoModel, encoder: Encoder) -> None:
        self._encoder = encoder
        self.whole = model.alone()
        self._begin_long = elsewhere(self.whole)
        self.streams = model.beside()
        self.device = f"cpu (OpenVINO; own encoder for queries, {model.precision})"

    def query(self, input_ids: Ids, attention_mask: Ids) -> Vectors:
        return self.begin(input_ids, attention_mask)()

    def begin(self, input_ids: Ids, attention_mask: Ids) -> Finish:
        length = np.count_nonzero(attention_mask)
        if length >= LONG_QUERY:
            return self._begin_long(input_ids, attention_mask)
        return self._encoder.begin(input_ids[0, :length])


class WithOnnxRuntime:
    """ONNX Runtime for queries, which it embeds faster in float32, and for single documents; OpenVINO for bulk work."""

    def __init__(self, model: OpenVinoModel, other: OnnxRuntime) -> None:
        self.query, self.whole, self.begin = other.query, other.whole, other.begin
        self.query(SHORTEST, SHORTEST)  # a graph that can be read may still fail to run
        self.streams = model.beside()
        self.device = f"cpu (OpenVINO; ONNX Runtime for queries, {model.precision})"


def elsewhere(run: Run) -> Begin:
    """The same function, run in a thread of its own."""
    thread = ThreadPoolExecutor(1, "query")
    return lambda input_ids, attention_mask: thread.submit(run, input_ids, attention_mask).result


def _giving_way(work: Callable[[], Any]) -> Any:
    """Run `work` in a thread of low priority, which the threads that it starts inherit."""

    def lower() -> None:
        if sys.platform == "linux":  # elsewhere it would apply to the whole process
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
