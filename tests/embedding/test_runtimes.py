"""What runs the model's graph: the fastest of what is there, and an error of ours when nothing is."""

import platform
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from kb.core.errors import Unavailable
from kb.core.settings import bundled_model_dir
from kb.embedding.embedder import load
from kb.embedding.minilm import encoder
from kb.embedding.minilm.encoder import Precision
from kb.embedding.model import describe
from kb.embedding.runtimes import GIVING_WAY, SHORTEST, RuntimeName, open_runtime
from support import ticks

BUNDLED = bundled_model_dir()
GRAPH = describe(BUNDLED).graph


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has priorities of threads")
@pytest.mark.parametrize("runtime", ["auto", "openvino"])
def test_what_computes_bulk_work_gives_way_and_what_computes_a_query_does_not(runtime: RuntimeName) -> None:
    embedder = load(BUNDLED, runtime)

    def busy(work: Callable[[], object]) -> set[int]:
        """Priorities of the threads that computed the work: whoever was at least a third as busy as the busiest."""
        before = ticks()
        work()
        spent = {thread: (now - before.get(thread, (0, 0))[0], nice) for thread, (now, nice) in ticks().items()}
        most = max(own for own, _ in spent.values())
        return {nice for own, nice in spent.values() if own > most / 3}

    assert busy(lambda: embedder.embed(["word " * 240] * 24)) == {GIVING_WAY}
    assert busy(lambda: [embedder.embed_query(f"query {number}") for number in range(300)]) == {0}


def computes_in_bfloat16() -> bool:
    openvino = pytest.importorskip("openvino")
    return "BF16" in openvino.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")


def looking_up(folder: Path, *, tokens: int = 100, opset: int = 20) -> Path:
    """A graph that knows so many tokens."""
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["found"]),
        helper.make_node("Unsqueeze", ["attention_mask", "last"], ["column"]),
        helper.make_node("Cast", ["column"], ["weights"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["found", "weights"], ["last_hidden_state"]),
    ]
    constants = [
        onnx.numpy_helper.from_array(np.ones((tokens, 3), np.float32), "table"),
        onnx.numpy_helper.from_array(np.array([2]), "last"),
    ]
    given = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "length"])
        for name in ("input_ids", "attention_mask")
    ]
    answered = [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["batch", "length", 3])]
    graph = helper.make_graph(nodes, "looking up", given, answered, constants)
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9), folder / "model.onnx"
    )
    return folder / "model.onnx"


def test_bfloat16_is_used_only_where_the_processor_computes_in_it() -> None:
    precision = "bf16" if computes_in_bfloat16() else "f32"
    assert open_runtime(GRAPH, "openvino").device == f"cpu (OpenVINO, {precision})"


def test_queries_run_on_what_is_fastest_for_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    precision: Precision = "bf16" if computes_in_bfloat16() else "f32"
    if platform.machine() == "x86_64" and encoder.runs_here(precision):
        assert open_runtime(GRAPH).device == f"cpu (OpenVINO; own encoder for queries, {precision})"
    monkeypatch.setattr(encoder, "LIBRARIES", tmp_path)
    if precision == "f32":
        assert open_runtime(GRAPH).device == "cpu (OpenVINO; ONNX Runtime for queries, f32)"
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert open_runtime(GRAPH).device == f"cpu (OpenVINO, {precision})"


@pytest.mark.parametrize("trouble", [{"opset": 99}, {"tokens": 1}], ids=["is not read", "is read but not run"])
def test_a_graph_that_one_runtime_refuses_is_run_by_the_other(tmp_path: Path, trouble: dict[str, int]) -> None:
    graph = looking_up(tmp_path, **trouble)
    with pytest.raises(Unavailable, match="cannot be run"):
        open_runtime(graph, "onnxruntime").query(SHORTEST, SHORTEST)
    runtime = open_runtime(graph)
    assert runtime.device.startswith("cpu (OpenVINO, ")
    assert runtime.query(SHORTEST, SHORTEST).shape == (1, 2, 3)


def test_without_openvino_onnx_runtime_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openvino", None)
    assert open_runtime(GRAPH).device == "cpu (ONNX Runtime, f32)"
    with pytest.raises(Unavailable, match="openvino"):
        open_runtime(GRAPH, "openvino")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(Unavailable, match=r"no runtime.*make setup"):
        open_runtime(GRAPH)
