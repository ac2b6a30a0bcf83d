"""Text in, unit vectors out: the reference's vectors, in any batch, on either runtime, queries first."""

import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from kb.core.errors import InvalidRequest, Unavailable
from kb.core.lru import LruCache
from kb.core.settings import bundled_model_dir
from kb.embedding.description import MINILM
from kb.embedding.embedder import QUERY_CACHE, SentenceEmbedder, load
from kb.embedding.model import describe
from kb.embedding.priority import Priority
from kb.embedding.runtimes import Ids, Run, RuntimeName, Vectors, elsewhere

BUNDLED = bundled_model_dir()
REFERENCE = json.loads((Path(__file__).parent / "data" / "minilm-reference.json").read_text(encoding="utf-8"))
RUNTIMES: list[RuntimeName] = ["auto", "openvino", "onnxruntime"]

# Lengths from nothing to the whole window, in no order.
MIXED = [
    "",
    "one",
    "word " * 254,
    "  \n ",
    "a few words more",
    "word " * 100,
    "東京タワー",
    "middle " * 40,
    "half \ud83d",
]
MIXED += [f"sentence number {number} " * (number % 23 + 1) for number in range(16)]


@pytest.fixture(scope="module", params=RUNTIMES)
def minilm(request: pytest.FixtureRequest) -> SentenceEmbedder:
    """The real model, on each runtime."""
    return load(BUNDLED, request.param)


class Recorder:
    """A runtime that answers at once, notes what it was asked for, and can be held: its bulk work or its queries."""

    device = "recorder"

    def __init__(self) -> None:
        self.runs: list[tuple[int, ...]] = []
        self.held_query, self.held_bulk = Held(), Held()
        self.query: Run = partial(self._run, self.held_query)
        self.whole = self.query
        self.begin = elsewhere(self.query)
        self.streams: Sequence[Run] = [partial(self._run, self.held_bulk)]

    def _run(self, held: "Held", input_ids: Ids, attention_mask: Ids) -> Vectors:
        self.runs.append(input_ids.shape)
        held.running.set()
        assert held.go.wait(10)
        return np.tile(input_ids.sum(axis=1, keepdims=True).astype(np.float32), 384)


class Held:
    def __init__(self) -> None:
        self.running = threading.Event()
        self.go = threading.Event()
        self.go.set()


def cosines(a: Vectors, b: Vectors) -> Vectors:
    found: Vectors = (a * b).sum(axis=-1)
    return found


def test_vectors_are_those_of_the_reference(minilm: SentenceEmbedder) -> None:
    vectors = minilm.embed(REFERENCE["texts"])
    # bfloat16, where the processor has it, keeps three digits.
    tolerance = 2e-3 if "bf16" in minilm.device else 2e-6
    assert vectors.dtype == np.float32
    assert np.allclose(vectors[:, :8], REFERENCE["first"], atol=tolerance)
    assert np.allclose(vectors @ vectors.T, REFERENCE["cosines"], atol=max(tolerance, 1e-5))
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


def test_the_runtimes_agree() -> None:
    first, *others = (load(BUNDLED, runtime).embed(MIXED) for runtime in RUNTIMES)
    for other in others:
        assert cosines(first, other).min() >= 0.9999


def test_a_text_has_the_same_vector_in_any_batch_and_as_a_query(minilm: SentenceEmbedder) -> None:
    together = minilm.embed(MIXED)
    reversed_order = minilm.embed(MIXED[::-1])[::-1]
    alone = np.concatenate([minilm.embed([text]) for text in MIXED])
    queries = np.stack([minilm.embed_query(text) for text in MIXED])
    for others in (reversed_order, alone, queries):
        assert cosines(together, others).min() >= 0.9999
    if "bf16" not in minilm.device:  # what is kept is the same however it came in, or scores would change with an index
        assert np.abs(together - alone).max() < 2e-6


def test_nothing_gives_nothing(minilm: SentenceEmbedder) -> None:
    assert minilm.embed([]).shape == (0, 384)


def test_the_model_says_what_it_is(minilm: SentenceEmbedder) -> None:
    assert (minilm.name, minilm.dimensions, minilm.max_tokens) == ("all-MiniLM-L6-v2", 384, 256)
    assert minilm.fingerprint == MINILM.fingerprint


def test_a_text_over_the_window_is_refused_with_its_length(minilm: SentenceEmbedder) -> None:
    assert minilm.embed(["word " * 254]).shape == (1, 384)
    with pytest.raises(InvalidRequest, match=r"Text 2 of 2 has 257 tokens.*at most 256") as refusal:
        minilm.embed(["fits", "word " * 255])
    assert refusal.value.details == {"tokens": 257, "max_tokens": 256}


@pytest.mark.parametrize("query", ["word " * 400, "각" * 1000, "😀 " * 1000, "x" * 2000])
def test_a_query_of_2000_characters_is_read_to_its_end(minilm: SentenceEmbedder, query: str) -> None:
    vector = minilm.embed_query(query)
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-6)
    assert np.isfinite(vector).all()


def test_a_long_query_is_the_mean_of_its_windows(minilm: SentenceEmbedder) -> None:
    halves = minilm.embed(["apple " * 254, "justice " * 127])
    expected = 256 * halves[0] + 129 * halves[1]
    vector = minilm.embed_query("apple " * 254 + "justice " * 127)
    assert cosines(vector, expected / np.linalg.norm(expected)) >= 0.9999


def test_texts_go_in_small_batches_of_like_length() -> None:
    runtime = Recorder()
    SentenceEmbedder(describe(BUNDLED), runtime, Priority()).embed(["word " * 198, "one", "word " * 190] * 4)
    assert runtime.runs == [(1, 200)] * 4 + [(1, 192)] * 4 + [(4, 8)]


def test_a_query_asked_again_is_not_run_again() -> None:
    runtime = Recorder()
    embedder = SentenceEmbedder(describe(BUNDLED), runtime, Priority())
    first = embedder.embed_query("the same")
    assert embedder.embed_query("the same") is first
    assert len(runtime.runs) == 1
    with pytest.raises(ValueError, match="read-only"):
        first[0] = 1


def test_a_query_is_worked_on_before_it_is_waited_for() -> None:
    runtime = Recorder()
    finish = SentenceEmbedder(describe(BUNDLED), runtime, Priority()).begin_query("begun")
    assert runtime.held_query.running.wait(10)
    assert finish().shape == (384,)
    assert len(runtime.runs) == 1


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 1, 0], [1]], ids=["as begun", "the other way round", "one of them"])
def test_a_query_that_was_begun_is_in_nobodys_way(minilm: SentenceEmbedder, order: list[int]) -> None:
    expected = [minilm.embed_query(f"text {number}") for number in range(3)]
    minilm.query_cache = LruCache(QUERY_CACHE)
    begun = [minilm.begin_query(f"text {number}") for number in range(3)]
    assert cosines(minilm.embed(["text 1"])[0], expected[1]) >= 0.9999
    for number in order * 2:  # a second time, too
        assert cosines(begun[number](), expected[number]) >= 0.9999


@pytest.mark.parametrize("when", ["begun", "ended"])
def test_a_query_that_fails_is_in_nobodys_way(when: str, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = Recorder()
    embedder = SentenceEmbedder(describe(BUNDLED), runtime, Priority())

    def fail(*_: object) -> Vectors:
        raise ZeroDivisionError

    with monkeypatch.context() as failing:
        failing.setattr(runtime, "begin", fail if when == "begun" else lambda *_: fail)
        with pytest.raises(ZeroDivisionError):
            embedder.embed_query("fails")
    assert embedder.embed_query("fails").shape == (384,)


def test_the_query_cache_is_bounded_and_a_known_query_runs_no_model() -> None:
    runtime = Recorder()
    embedder = SentenceEmbedder(describe(BUNDLED), runtime, Priority())
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(embedder.embed_query, [f"query {number}" for number in range(QUERY_CACHE + 50)]))
    embedder.embed_query(f"query {QUERY_CACHE + 49}")
    assert len(embedder.query_cache) == embedder.query_cache.capacity == QUERY_CACHE
    assert len(runtime.runs) == QUERY_CACHE + 50


def test_a_query_does_not_wait_for_the_bulk_work_that_runs() -> None:
    runtime = Recorder()
    embedder = SentenceEmbedder(describe(BUNDLED), runtime, Priority())
    runtime.held_bulk.go.clear()
    bulk = embedder.begin(["word " * 198] * 3)
    assert runtime.held_bulk.running.wait(10)
    embedder.embed_query("urgent")
    assert not bulk.done()
    runtime.held_bulk.go.set()
    assert bulk.result(10).shape == (3, 384)
    assert runtime.runs == [(1, 200), (1, 3), (1, 200), (1, 200)]


def test_no_bulk_work_begins_while_a_search_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kb.embedding.priority.LONGEST", 10)
    runtime, priority = Recorder(), Priority()
    embedder = SentenceEmbedder(describe(BUNDLED), runtime, priority)
    with priority.search():
        bulk = embedder.begin(["word " * 198] * 2)
        assert not runtime.held_bulk.running.wait(0.1)
        embedder.embed_query("urgent")
    assert bulk.result(10).shape == (2, 384)
    assert runtime.runs == [(1, 3), (1, 200), (1, 200)]


def test_queries_and_bulk_work_of_many_threads_get_their_own_vectors(minilm: SentenceEmbedder) -> None:
    expected = minilm.embed(MIXED)
    minilm.query_cache = LruCache(QUERY_CACHE)
    with ThreadPoolExecutor(8) as pool:
        queries = pool.map(minilm.embed_query, MIXED)
        batches = pool.map(minilm.embed, [MIXED[start : start + 7] for start in range(0, len(MIXED), 7)])
        assert cosines(np.stack(list(queries)), expected).min() >= 0.9999
        assert cosines(np.concatenate(list(batches)), expected).min() >= 0.9999


def test_embedding_imports_no_torch_and_opens_no_socket() -> None:
    program = """
import os, sys
def forbid(event, arguments):
    if event.startswith("socket."):
        os._exit(3)
sys.addaudithook(forbid)
from kb.embedding.embedder import load
from kb.core.settings import bundled_model_dir
for runtime in ("auto", "openvino", "onnxruntime"):
    embedder = load(bundled_model_dir(), runtime)
    embedder.embed(["some text", "more text"])
    embedder.embed_query("a query")
assert not {"torch", "transformers", "sentence_transformers"} & set(sys.modules)
links = []
if sys.platform == "linux":
    for number in os.listdir("/proc/self/fd"):
        try:
            links.append(os.readlink(f"/proc/self/fd/{number}"))
        except FileNotFoundError:
            pass  # the folder's own descriptor
assert not [link for link in links if link.startswith("socket:")], links
"""
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True, stdin=subprocess.DEVNULL)


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """Another model: it looks up (3 dimensions) each token, and says nothing about pooling or length."""
    folder = tmp_path / "other-model"
    (folder / "1_Pooling").mkdir(parents=True)
    (folder / "onnx").mkdir()
    for name in ("tokenizer.json", "sentence_bert_config.json"):
        shutil.copy(BUNDLED / name, folder / name)
    write_pooling(folder, "mean")
    write_graph(folder, ["input_ids", "attention_mask", "token_type_ids"], "last_hidden_state")
    return folder


def write_pooling(folder: Path, mode: str, dimensions: int = 3) -> None:
    config = {"word_embedding_dimension": dimensions, "pooling_mode": mode}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(config))


def table() -> Vectors:
    return np.random.default_rng(7).normal(size=(30522, 3)).astype(np.float32)


def write_graph(folder: Path, inputs: list[str], output: str) -> None:
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["found"]),
        helper.make_node("Add", [inputs[1], inputs[-1]], ["given"]),
        helper.make_node("Cast", ["given"], ["numbers"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["numbers", "nought"], ["noughts"]),
        helper.make_node("Unsqueeze", ["noughts", "last"], ["column"]),
        helper.make_node("Add", ["found", "column"], [output]),
    ]
    constants = [
        onnx.numpy_helper.from_array(table(), "table"),
        onnx.numpy_helper.from_array(np.zeros((), np.float32), "nought"),
        onnx.numpy_helper.from_array(np.array([2]), "last"),
    ]
    graph = helper.make_graph(
        nodes,
        "other",
        [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "length"]) for name in inputs],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, ["batch", "length", 3])],
        constants,
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    onnx.save(made, folder / "onnx" / "model.onnx")


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_another_model_is_pooled_as_it_says(other: Path, pooling: str, runtime: RuntimeName) -> None:
    write_pooling(other, pooling)
    embedder = load(other, runtime)
    texts = ["one", "a longer text of some words"]
    vectors = embedder.embed(texts)
    for vector, ids in zip(vectors, embedder.tokenizer.ids(texts), strict=True):
        expected = table()[ids].mean(axis=0) if pooling == "mean" else table()[ids[0]]
        assert np.allclose(
            vector, expected / np.linalg.norm(expected), atol=1e-2 if "bf16" in embedder.device else 1e-6
        )
    assert embedder.name == "other-model"
    assert embedder.fingerprint != MINILM.fingerprint


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_model_that_does_not_fit_is_refused(other: Path, runtime: RuntimeName) -> None:
    write_pooling(other, "mean", dimensions=5)
    with pytest.raises(Unavailable, match=r"3 dimensions.*says 5"):
        load(other, runtime)
    write_pooling(other, "mean")
    write_graph(other, ["input_ids", "attention_mask", "pixel_values"], "last_hidden_state")
    with pytest.raises(Unavailable, match="asks for pixel_values"):
        load(other, runtime)
    (other / "onnx" / "model.onnx").write_bytes(b"not a graph")
    with pytest.raises(Unavailable, match=r"cannot be run.*make setup"):
        load(other, runtime)


def test_what_a_model_expects_in_front_of_texts_is_put_there(minilm: SentenceEmbedder) -> None:
    prefixed = copy(minilm)
    prefixed.description = replace(MINILM, query_prefix="query: ", passage_prefix="passage: ")
    prefixed.query_cache = LruCache(8)
    near = partial(pytest.approx, abs=1e-3)
    assert prefixed.embed(["a heron"])[0] == near(minilm.embed(["passage: a heron"])[0])
    tokens = minilm.tokenizer.encode("a heron")
    assert prefixed.begin_query("a heron", tokens)() == near(minilm.embed_query("query: a heron"))
