"""What runs the embedding model's graph: OpenVINO, ONNX Runtime, kb's own encoder, or each for what it does best.

Figures and what else was tried: docs/decisions/002 and 011.
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
# Token ids and attention mask of some texts to vectors of the texts (batch, dimensions), or of their tokens (batch,
# length, dimensions). For one thread at a time.
Run = Callable[[Ids, Ids], Vectors]
Finish = Callable[[], Vectors]
Begin = Callable[[Ids, Ids], Finish]

GIVING_WAY = 10  # how much: others get ten times as much of a core, but it is never starved
SPINNING = 15  # microseconds that threads of ONNX Runtime wait for each other in a loop, before they sleep
QUERY_THREADS = 4  # at most: of more, each would have less to do than it takes to wake it up (an estimate)
LONG_QUERY = 64  # tokens, from which on a general runtime is as fast as kb's own encoder
# What a graph may ask for, and what it may answer, the best first.
INPUTS = ("input_ids", "attention_mask", "token_type_ids")
OUTPUTS = ("sentence_embedding", "last_hidden_state", "token_embeddings")
# What ONNX Runtime may be built for, the fastest first, and what to call it.
CPU = "CPUExecutionProvider"
PROVIDERS = {"CUDAExecutionProvider": "cuda", "MIGraphXExecutionProvider": "rocm", CPU: "cpu"}
SHORTEST: Ids = np.ones((1, 2), np.int64)  # text that there is


class Runtime(Protocol):
    """Runs the model's graph."""

    @property
    def device(self) -> str: ...
    @property
    def query(self) -> Run:
        """One text as soon as possible."""

    @property
    def begin(self) -> Begin:
        """The same, begun in other threads: what is returned ends it, and is called before the next text."""

    @property
    def whole(self) -> Run:
        """One text as soon as possible, but with the vector that `streams` would give it. Not beside `query`."""

    @property
    def streams(self) -> Sequence[Run]:
        """All at the same time, beside each other and beside `query`."""


def open_runtime(graph: Path, name: RuntimeName = "auto") -> Runtime:
    """The runtime of this name with the graph loaded; `auto` is the fastest of those that are installed."""
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
    except Unavailable:  # it is for one graph only, and not for every processor
        pass
    if model.precision == "bf16":
        return OpenVino(model)
    try:
        return WithOnnxRuntime(model, OnnxRuntime(graph, [CPU], threads))
    except (ImportError, Unavailable):  # ONNX Runtime is not there, or does not know what the graph asks for
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
        """All cores for one text."""
        return self._runner(self._compiled(1))

    def beside(self) -> list[Run]:
        """One core for each stream: on all cores together, one would be slower. They give way to everything else."""
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
        graph, inputs, output = self._graph, self._inputs, self._output  # and nothing else is held
        with _translated(graph):
            request = compiled.create_infer_request()

        def run(input_ids: Ids, attention_mask: Ids) -> Vectors:
            with _translated(graph):
                request.infer(_feed(inputs, input_ids, attention_mask), share_inputs=True, share_outputs=True)
                return np.array(request.get_tensor(output).data)

        return run


class OpenVino:
    """In bfloat16, where the processor computes in it, twice as fast as any other that knows every graph.

    The graph is compiled twice over the same weights, so that a query does not have to wait for bulk work.
    """

    def __init__(self, model: OpenVinoModel) -> None:
        self.query = self.whole = model.alone()
        self.begin = elsewhere(self.query)
        self.streams = model.beside()
        self.device = f"cpu (OpenVINO, {model.precision})"


class OnnxRuntime:
    """For machines without OpenVINO, for queries, and for graphics cards: it takes what its wheel was built for."""

    def __init__(self, graph: Path, providers: Sequence[str] = tuple(PROVIDERS), threads: int | None = None) -> None:
        import onnxruntime  # type: ignore[import-untyped]  # noqa: PLC0415

        self._graph = graph
        with _translated(graph):
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = threads or usable_cores()
            options.log_severity_level = 4  # what goes wrong is raised; nothing else needs saying
            # Its threads wait for each other in a loop, which is quick, but not for longer than a step takes: what the
            # loop keeps off a core may be what it waits for.
            options.add_session_config_entry("session.intra_op.spin_duration_us", str(SPINNING))
            options.add_session_config_entry("session.force_spinning_stop", "1")
            built_for = onnxruntime.get_available_providers()
            possible = [name for name in providers if name in built_for]
            self._session = onnxruntime.InferenceSession(graph, options, providers=possible)
        self._inputs = _inputs(graph, [port.name for port in self._session.get_inputs()])
        self._output = _output(graph, [port.name for port in self._session.get_outputs()])
        self.query = self.whole = self._run  # a session takes several at once
        self.begin = elsewhere(self.query)
        self.streams: Sequence[Run] = [self._run]
        self.device = f"{PROVIDERS[self._session.get_providers()[0]]} (ONNX Runtime, f32)"

    def _run(self, input_ids: Ids, attention_mask: Ids) -> Vectors:
        with _translated(self._graph):
            feed = _feed(self._inputs, input_ids, attention_mask)
            return np.asarray(self._session.run([self._output], feed)[0])


class WithEncoder:
    """OpenVINO for what is kept, and kb's own encoder for questions.

    A question is seldom as long as the one before it, and OpenVINO prepares anew for every other length. Its streams
    are as fast as any, only they can be told to give way, and all that is kept has vectors of the same making.
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
    """ONNX Runtime for questions, which in float32 are faster there, and for a single text that is kept."""

    def __init__(self, model: OpenVinoModel, other: OnnxRuntime) -> None:
        self.query, self.whole, self.begin = other.query, other.whole, other.begin
        self.query(SHORTEST, SHORTEST)  # what it has read, it may still not be able to run
        self.streams = model.beside()
        self.device = f"cpu (OpenVINO; ONNX Runtime for queries, {model.precision})"


def elsewhere(run: Run) -> Begin:
    """Have it done by a thread of its own."""
    thread = ThreadPoolExecutor(1, "query")
    return lambda input_ids, attention_mask: thread.submit(run, input_ids, attention_mask).result


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
