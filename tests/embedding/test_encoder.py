"""kb's own encoder: the vectors of any other runtime, sooner; and nothing where it does not fit."""

import json
import platform
import shutil
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from kb.core.errors import Unavailable
from kb.core.settings import bundled_model_dir
from kb.embedding.minilm import encoder
from kb.embedding.minilm.encoder import Encoder, Floats, Ids, Precision, runs_here
from kb.embedding.model import WEIGHTS, describe, header_of
from kb.embedding.runtimes import open_runtime
from support import ticks

GRAPH = describe(bundled_model_dir()).graph
VOCABULARY = 30522
# Every way that tokens are put into tiles of six and of twelve, and both sides of where attention takes another block.
LENGTHS = [*range(1, 34), 47, 48, 49, 63, 64, 65, 255, 256, 511, 512]

# Not when it was not compiled: that would be a mistake, and not the machine's.
X86 = platform.machine() == "x86_64"
HERE: list[Precision] = [precision for precision in get_args(Precision) if X86 and runs_here(precision)]
pytestmark = pytest.mark.skipif(not HERE, reason="embedding/minilm/encoder.c is for x86-64 with AVX2")
# How far a vector may be from the exact one: as near as weights of 16 bits allow, or bfloat16 throughout.
NEAR = {"f32": 3e-4, "bf16": 1.5e-2}


@pytest.fixture(params=HERE)
def precision(request: pytest.FixtureRequest) -> Precision:
    found: Precision = request.param
    return found


linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows threads as files")


def texts(*lengths: int) -> list[Ids]:
    random = np.random.default_rng(7)
    return [random.integers(0, VOCABULARY, length) for length in lengths]


def other(graph: Path) -> Callable[[Ids], Floats]:
    """Another runtime."""
    query = open_runtime(graph, "onnxruntime").query
    return lambda ids: query(ids[None], np.ones((1, len(ids)), np.int64))


def test_vectors_are_those_of_another_runtime_at_any_length(precision: Precision) -> None:
    own, reference = Encoder(GRAPH, 2, precision), other(GRAPH)
    for ids in texts(*LENGTHS):
        found, expected = own.begin(ids)(), reference(ids)
        assert found.shape == expected.shape
        assert np.linalg.norm(found) == pytest.approx(1, abs=1e-6)
        assert np.linalg.norm(found.astype(float) - expected) < NEAR[precision]


def test_a_text_that_was_never_finished_is_in_no_others_way(precision: Precision) -> None:
    own = Encoder(GRAPH, 2, precision)
    first, second = texts(200, 20)
    expected = own.begin(second)()
    for _ in range(20):
        own.begin(first)
        assert (own.begin(second)() == expected).all()


def test_a_text_has_the_same_vector_on_any_number_of_threads_beside_any_load(precision: Precision) -> None:
    crowd = texts(*range(1, 41)) * 5
    one, several = Encoder(GRAPH, 1, precision), [Encoder(GRAPH, threads, precision) for threads in (2, 3, 8)]
    expected = [one.begin(ids)() for ids in crowd]
    wrong: list[int] = []

    def ask(own: Encoder) -> None:
        wrong.extend(ids.size for ids, right in zip(crowd, expected, strict=True) if (own.begin(ids)() != right).any())

    asking = [threading.Thread(target=ask, args=[own]) for own in several]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join()
    assert not wrong


@linux
def test_every_thread_has_its_share_of_a_text(precision: Precision) -> None:
    before = ticks()
    own = Encoder(GRAPH, 2, precision)
    (ids,) = texts(512)
    for _ in range(8):
        own.begin(ids)()
    spent = {thread: now - before.get(thread, (0, 0))[0] for thread, (now, _) in ticks().items()}
    assert max(now for thread, now in spent.items() if thread not in before) > 0.2 * sum(spent.values())


@linux
def test_threads_end_with_their_encoder(precision: Precision) -> None:
    before = set(ticks())
    own = Encoder(GRAPH, 4, precision)
    assert len(set(ticks()) - before) == 3
    del own
    end = time.monotonic() + 5
    while set(ticks()) - before and time.monotonic() < end:  # the system shows a thread a moment longer than it runs
        time.sleep(0.01)
    assert not set(ticks()) - before


@pytest.mark.parametrize("ids", [[VOCABULARY], [-1], [5] * 513, []], ids=["unknown", "negative", "too long", "empty"])
def test_what_is_no_text_is_refused_before_anything_is_read(precision: Precision, ids: list[int]) -> None:
    own = Encoder(GRAPH, 2, precision)
    with pytest.raises(Unavailable, match="no text of these tokens"):
        own.begin(np.array(ids, np.int64))


def test_another_graph_is_left_to_others(tmp_path: Path) -> None:
    folder = shutil.copytree(bundled_model_dir(), tmp_path / "model")
    (folder / "model.onnx").write_bytes(GRAPH.read_bytes() + b"\0")
    with pytest.raises(Unavailable, match="not the graph that comes with kb"):
        Encoder(folder / "model.onnx", 2, "f32")


def cut(at: int) -> Callable[[bytes], bytes]:
    return lambda content: content[:at]


def with_header(change: Callable[[dict[str, dict[str, object]]], object]) -> Callable[[bytes], bytes]:
    def changed(content: bytes) -> bytes:
        size = int.from_bytes(content[:8], "little")
        header = json.loads(content[8 : 8 + size])
        change(header)
        text = json.dumps(header, separators=(",", ":")).encode().ljust(size)
        return len(text).to_bytes(8, "little") + text + content[8 + size :]

    return changed


@pytest.mark.parametrize(
    "spoil",
    [
        cut(0),
        cut(4),
        cut(40_000_000),
        lambda content: b"\xff" * 8 + content[8:],
        lambda content: content[:8] + b"?" + content[9:],
        with_header(lambda header: header.pop("encoder.layer.3.output.dense.bias")),
        with_header(lambda header: header["embeddings.word_embeddings.weight"].update(shape=[100, 384])),
        with_header(lambda header: header["embeddings.word_embeddings.weight"].update(dtype="F16")),
    ],
    ids=["empty", "no header", "half", "endless header", "no JSON", "one missing", "too few words", "other numbers"],
)
def test_weights_that_are_not_as_expected_are_left_to_others(tmp_path: Path, spoil: Callable[[bytes], bytes]) -> None:
    shutil.copy(GRAPH, tmp_path)
    (tmp_path / WEIGHTS).write_bytes(spoil(GRAPH.with_name(WEIGHTS).read_bytes()))
    with pytest.raises(Unavailable, match=WEIGHTS):
        Encoder(tmp_path / GRAPH.name, 1, "f32")


def test_other_weights_in_the_same_places_are_taken(tmp_path: Path, precision: Precision) -> None:
    shutil.copy(GRAPH, tmp_path)
    content = bytearray(GRAPH.with_name(WEIGHTS).read_bytes())
    begin = len(header_of(GRAPH.with_name(WEIGHTS)))
    start, _ = json.loads(content[8:begin])["encoder.layer.5.output.dense.weight"]["data_offsets"]
    content[begin + start : begin + start + 4 * 1536] = bytes(4 * 1536)  # nothing but noughts for one output
    (tmp_path / WEIGHTS).write_bytes(content)
    (ids,) = texts(12)
    found = Encoder(tmp_path / GRAPH.name, 2, precision).begin(ids)()
    assert np.linalg.norm(found - other(tmp_path / GRAPH.name)(ids)) < NEAR[precision]
    assert np.linalg.norm(found - Encoder(GRAPH, 2, precision).begin(ids)()) > 1e-3


def test_where_it_was_not_compiled_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoder, "LIBRARIES", tmp_path)
    with pytest.raises(Unavailable, match="not compiled for this machine"):
        Encoder(GRAPH, 2, "f32")


def test_a_library_of_another_version_is_not_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoder, "Weights", encoder.Layer)  # not as large
    with pytest.raises(Unavailable, match="from another"):
        Encoder(GRAPH, 2, "f32")
