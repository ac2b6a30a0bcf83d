"""Build src/kb/embedding/minilm/minilm.onnx: the computation of all-MiniLM-L6-v2, without its weights.

    python -m tools.build_graph MODEL_DIR [TARGET]

The weights stay where they are: every initialiser points into `model.safetensors` by byte offset (ONNX
external data), so what is committed is small and what is downloaded keeps its published hash. The same input
gives the same bytes.
"""

import json
import sys
from itertools import count
from pathlib import Path
from typing import Any

from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper

from kb.embedding.model import WEIGHTS, header_of

GRAPH = Path(__file__).parent.parent / "src" / "kb" / "embedding/minilm/minilm.onnx"
OPSET = 20  # the first with Gelu
IR_VERSION = 9  # the oldest that goes with the opset


class Graph:
    """Nodes and initialisers in the making; a value is known by its name."""

    def __init__(self, weights: Path) -> None:
        self.nodes: list[NodeProto] = []
        self.initialisers: dict[str, TensorProto] = {}
        header = header_of(weights)
        self._base, self._tensors = len(header), json.loads(header[8:])
        self._numbers = count(1)

    def op(self, kind: str, *inputs: str, name: str | None = None, **attributes: Any) -> str:
        output = name or f"{kind}_{next(self._numbers)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [output], **attributes))
        return output

    def weight(self, name: str) -> str:
        tensor = self._tensors[name]
        if tensor["dtype"] != "F32":
            raise ValueError(f"{name} is {tensor['dtype']}, expected F32")
        start, end = tensor["data_offsets"]
        proto = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=tensor["shape"])
        proto.data_location = TensorProto.EXTERNAL
        for key, value in (("location", WEIGHTS), ("offset", self._base + start), ("length", end - start)):
            proto.external_data.add(key=key, value=str(value))
        self.initialisers[name] = proto
        return name

    def integers(self, name: str, *values: int) -> str:
        self.initialisers[name] = helper.make_tensor(name, TensorProto.INT64, [len(values)], values)
        return name

    def number(self, name: str, value: float) -> str:
        self.initialisers[name] = helper.make_tensor(name, TensorProto.FLOAT, [], [value])
        return name

    def linear(self, x: str, layer: str) -> str:
        weight = self.op("Transpose", self.weight(f"{layer}.weight"), perm=[1, 0])
        return self.op("Add", self.op("MatMul", x, weight), self.weight(f"{layer}.bias"))

    def normalise(self, x: str, layer: str, epsilon: float) -> str:
        return self.op(
            "LayerNormalization",
            x,
            self.weight(f"{layer}.weight"),
            self.weight(f"{layer}.bias"),
            epsilon=epsilon,
        )


def embed(graph: Graph, epsilon: float) -> str:
    """Add the embeddings of word, position and segment (always the first), and normalise the sum."""
    words = graph.op("Gather", graph.weight("embeddings.word_embeddings.weight"), "input_ids")
    length = graph.op("Shape", "input_ids", start=1, end=2)
    positions = graph.op(
        "Slice", graph.weight("embeddings.position_embeddings.weight"), graph.integers("zero", 0), length
    )
    segment = graph.op("Gather", graph.weight("embeddings.token_type_embeddings.weight"), "zero")
    x = graph.op("Add", graph.op("Add", words, segment), positions, name="embedded")
    return graph.normalise(x, "embeddings.LayerNorm", epsilon)


def attend(graph: Graph, x: str, mask: str, layer: str) -> str:
    """Self-attention of one layer, heads joined again."""

    def heads(part: str, *perm: int) -> str:
        projected = graph.linear(x, f"{layer}.attention.self.{part}")
        return graph.op("Transpose", graph.op("Reshape", projected, "split"), perm=list(perm))

    scores = graph.op("MatMul", heads("query", 0, 2, 1, 3), heads("key", 0, 2, 3, 1))
    weights = graph.op("Softmax", graph.op("Add", graph.op("Mul", scores, "scale"), mask), axis=-1)
    context = graph.op("MatMul", weights, heads("value", 0, 2, 1, 3))
    return graph.op("Reshape", graph.op("Transpose", context, perm=[0, 2, 1, 3]), "merge")


def pool(graph: Graph, x: str, mask: str) -> None:
    """The mean over real tokens, at unit length."""
    column = graph.op("Unsqueeze", mask, graph.integers("last", 2))
    total = graph.op("ReduceSum", graph.op("Mul", x, column), "tokens", keepdims=0)
    mean = graph.op("Div", total, graph.op("ReduceSum", column, "tokens", keepdims=0))
    length = graph.op("Clip", graph.op("ReduceL2", mean, "tokens", keepdims=1), graph.number("tiny", 1e-12))
    graph.op("Div", mean, length, name="sentence_embedding")


def build(model_dir: Path) -> ModelProto:
    """The graph of the BERT encoder in this folder: token ids and mask in, unit vectors out."""
    config = json.loads((model_dir / "config.json").read_text())
    hidden, heads, epsilon = config["hidden_size"], config["num_attention_heads"], config["layer_norm_eps"]
    graph = Graph(model_dir / WEIGHTS)
    graph.integers("tokens", 1)
    graph.integers("split", 0, 0, heads, hidden // heads)
    graph.integers("merge", 0, 0, hidden)
    graph.number("scale", (hidden // heads) ** -0.5)

    x = embed(graph, epsilon)
    real = graph.op("Cast", "attention_mask", to=TensorProto.FLOAT)
    padding = graph.op("Sub", graph.number("one", 1.0), real)
    # The lowest float32, nearly: what is padding weighs nothing after the softmax.
    unseen = graph.op("Mul", padding, graph.number("lowest", -3.4e38))
    mask = graph.op("Unsqueeze", unseen, graph.integers("middle", 1, 2))

    for number in range(config["num_hidden_layers"]):
        layer = f"encoder.layer.{number}"
        attended = graph.linear(attend(graph, x, mask, layer), f"{layer}.attention.output.dense")
        x = graph.normalise(graph.op("Add", attended, x), f"{layer}.attention.output.LayerNorm", epsilon)
        inner = graph.op("Gelu", graph.linear(x, f"{layer}.intermediate.dense"))
        outer = graph.linear(inner, f"{layer}.output.dense")
        x = graph.normalise(graph.op("Add", outer, x), f"{layer}.output.LayerNorm", epsilon)
    pool(graph, x, real)

    def value(name: str, kind: int, *shape: str | int) -> ValueInfoProto:
        return helper.make_tensor_value_info(name, kind, shape)

    return helper.make_model(
        helper.make_graph(
            graph.nodes,
            "all-MiniLM-L6-v2",
            [value(name, TensorProto.INT64, "batch", "length") for name in ("input_ids", "attention_mask")],
            [value("sentence_embedding", TensorProto.FLOAT, "batch", hidden)],
            list(graph.initialisers.values()),
            # That positions are as many as tokens cannot be inferred. ONNX Runtime joins operations of known shapes.
            value_info=[value("embedded", TensorProto.FLOAT, "batch", "length", hidden)],
        ),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
    )


def graph_bytes(model_dir: Path) -> bytes:
    """The file, as it is committed."""
    content: bytes = build(model_dir).SerializeToString(deterministic=True)
    return content


if __name__ == "__main__":
    source, target = Path(sys.argv[1]), Path(sys.argv[2]) if sys.argv[2:] else GRAPH
    target.write_bytes(graph_bytes(source))
    print(f"{target}: {target.stat().st_size} bytes")
