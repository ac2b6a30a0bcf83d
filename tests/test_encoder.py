"""kb's own encoder: the vectors of any other runtime, sooner; and nothing where it does not fit."""

import platform
import shutil
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from kb import encoder
from kb.encoder import Encoder, Ids
from kb.errors import Unavailable
from kb.model import describe
from kb.runtimes import open_runtime
from kb.settings import bundled_model_dir

GRAPH = describe(bundled_model_dir()).graph
VOCABULARY = 30522
# Every way that tokens are put into tiles of six, and both sides of where attention takes another block.
LENGTHS = [*range(1, 34), 47, 48, 49, 63, 64, 65, 255, 256, 511, 512]

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="encoder.c is for x86-64")


def texts(*lengths: int) -> list[Ids]:
    random = np.random.default_rng(7)
    return [random.integers(0, VOCABULARY, (1, length)) for length in lengths]


def test_vectors_are_those_of_another_runtime_at_any_length() -> None:
    own, other = Encoder(GRAPH, 2), open_runtime(GRAPH, "onnxruntime").query
    for ids in texts(*LENGTHS):
        mask = np.ones_like(ids)
        found, expected = own(ids, mask), other(ids, mask)
        assert found.shape == expected.shape
        assert np.linalg.norm(found) == pytest.approx(1, abs=1e-6)
        # As near as weights of 16 bits allow.
        assert np.linalg.norm(found.astype(float) - expected) < 3e-4


def test_padding_changes_nothing() -> None:
    own = Encoder(GRAPH, 2)
    (ids,) = texts(40)
    mask = np.ones_like(ids)
    mask[0, 33:] = 0
    assert (own(ids, mask) == own(ids[:, :33], mask[:, :33])).all()


def test_several_texts_are_answered_one_by_one() -> None:
    own = Encoder(GRAPH, 2)
    pair = np.concatenate(texts(9, 9))
    together = own(pair, np.ones_like(pair))
    alone = [own(row[None], np.ones_like(row)[None])[0] for row in pair]
    assert (together == alone).all()


def test_a_text_has_the_same_vector_on_any_number_of_threads_beside_any_load() -> None:
    crowd = texts(*range(1, 41)) * 5
    one, several = Encoder(GRAPH, 1), [Encoder(GRAPH, threads) for threads in (2, 3, 8)]
    expected = [one(ids, np.ones_like(ids)) for ids in crowd]
    wrong: list[int] = []

    def ask(own: Encoder) -> None:
        wrong.extend(
            ids.size for ids, right in zip(crowd, expected, strict=True) if (own(ids, np.ones_like(ids)) != right).any()
        )

    asking = [threading.Thread(target=ask, args=[own]) for own in several]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join()
    assert not wrong


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows threads as files")
def test_threads_end_with_their_encoder() -> None:
    def threads() -> int:
        return len(list(Path("/proc/self/task").iterdir()))

    before = threads()
    own = Encoder(GRAPH, 4)
    assert threads() == before + 3
    del own
    assert threads() == before


@pytest.mark.parametrize("ids", [[VOCABULARY], [-1], [5] * 513, []], ids=["unknown", "negative", "too long", "empty"])
def test_what_is_no_text_is_refused_before_anything_is_read(ids: list[int]) -> None:
    own = Encoder(GRAPH, 2)
    given = np.array([ids], np.int64)
    with pytest.raises(Unavailable, match="no text of these tokens"):
        own(given, np.ones_like(given))


def test_another_graph_is_left_to_others(tmp_path: Path) -> None:
    folder = shutil.copytree(bundled_model_dir(), tmp_path / "model")
    (folder / "model.onnx").write_bytes(GRAPH.read_bytes() + b"\0")
    with pytest.raises(Unavailable, match="not the graph that comes with kb"):
        Encoder(folder / "model.onnx", 2)


def test_where_it_was_not_compiled_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoder, "LIBRARY", tmp_path / "libencoder.so")
    with pytest.raises(Unavailable, match=r"not compiled for this machine"):
        Encoder(GRAPH, 2)
