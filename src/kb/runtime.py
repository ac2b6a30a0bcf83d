"""What runs the embedding model's graph: OpenVINO, or ONNX Runtime where OpenVINO is not installed.

Both run the same graph on all usable cores and let other threads work meanwhile. Only the one that is asked for
is imported. A runtime serves one caller at a time.
"""

import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from kb.errors import Unavailable

Vectors = NDArray[np.float32]
Ids = NDArray[np.int64]
RuntimeName = Literal["auto", "openvino", "onnxruntime"]

# What a graph may ask for, and what it may answer, the best first.
INPUTS = ("input_ids", "attention_mask", "token_type_ids")
OUTPUTS = ("sentence_embedding", "last_hidden_state", "token_embeddings")


class Runtime(Protocol):
    """Runs the model's graph."""

    device: str

    def run(self, input_ids: Ids, attention_mask: Ids) -> Vectors:
        """Vectors of the texts (batch, dimensions), or of their tokens (batch, length, dimensions)."""


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
    """The runtime for machines that have no OpenVINO."""

    def __init__(self, graph: Path) -> None:
        import onnxruntime  # type: ignore[import-untyped]  # noqa: PLC0415

        self._graph = graph
        with _translated(graph):
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = usable_cores()
            options.log_severity_level = 4  # what goes wrong is raised; nothing else needs saying
            providers = ["CPUExecutionProvider"]
            self._session = onnxruntime.InferenceSession(graph, options, providers=providers)
        self._inputs = _inputs(graph, [port.name for port in self._session.get_inputs()])
        self._output = _output(graph, [port.name for port in self._session.get_outputs()])
        self.device = "cpu (ONNX Runtime, f32)"

    def run(self, input_ids: Ids, attention_mask: Ids) -> Vectors:
        with _translated(self._graph):
            feed = _feed(self._inputs, input_ids, attention_mask)
            return np.asarray(self._session.run([self._output], feed)[0])


@contextmanager
def _translated(graph: Path) -> Iterator[None]:
    try:
        yield
    except Exception as wrong:  # each runtime has its own, without a common base
        raise Unavailable(
            f"The embedding model {graph} cannot be run: {wrong}. Run `make setup` again, or check KB_MODEL_DIR."
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
