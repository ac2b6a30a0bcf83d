"""Near-duplicate notes: exactly what comparing every pair by hand gives, whatever the size of a block."""

from itertools import combinations

import numpy as np
import pytest

from kb.index.chunk_index import ChunkIndex
from kb.search import duplicates
from kb.search.duplicates import note_vectors, similar
from kb.store.backend import Vector
from support import Http, StartEngine

RANDOM = np.random.default_rng(11)


def unit(rows: Vector) -> Vector:
    scaled: Vector = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return scaled


def by_hand(vectors: Vector, contents: list[int], least: float) -> list[tuple[int, int]]:
    scores = {
        (a, b): 1.0 if contents[a] == contents[b] else float(vectors[a].astype(float) @ vectors[b].astype(float))
        for a, b in combinations(range(len(vectors)), 2)
    }
    return sorted((pair for pair in scores if scores[pair] >= least), key=lambda pair: (-scores[pair], pair))


@pytest.mark.parametrize("block", [1, 7, 64, 1000])
@pytest.mark.parametrize("limit", [1, 10, 100_000])
def test_every_pair_is_compared(monkeypatch: pytest.MonkeyPatch, block: int, limit: int) -> None:
    monkeypatch.setattr(duplicates, "BLOCK", block)
    vectors = unit(RANDOM.normal(size=(60, 5)).astype(np.float32))
    contents = [0, 1, 2, 0, 0, *range(5, 60)]
    found = similar(vectors, np.array(contents), 0.5, limit)
    expected = by_hand(vectors, contents, 0.5)[:limit]
    assert list(zip(found.a.tolist(), found.b.tolist(), strict=True)) == expected
    assert found.similarity[: min(limit, 3)].tolist() == [1.0] * min(limit, 3)


def test_many_copies_of_one_note_give_as_many_pairs_as_asked_for() -> None:
    found = similar(unit(np.ones((500, 4), np.float32)), np.zeros(500, np.int64), 0.9, 10)
    assert list(zip(found.a.tolist(), found.b.tolist(), strict=True)) == [(0, b) for b in range(1, 11)]


def test_a_note_is_the_mean_of_its_passages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duplicates, "BLOCK", 2)
    live = ChunkIndex(2)
    live._loaded.set()
    east, north = np.array([1, 0], np.float32), np.array([0, 1], np.float32)
    live.replace(5, [1, 2], [1, 1], np.stack([east, north]))
    live.replace(3, [3], [1], np.stack([north]))
    live.replace(9, [4], [1], np.stack([east]))  # not a note
    live.replace(7, [5, 6, 7], [1, 1, 1], np.stack([east, east, north]))
    live.replace(3, [8], [1], np.stack([east]))  # rewritten
    ids, vectors, there = note_vectors(live.snapshot(), np.array([3, 4, 5, 7]))
    assert (ids.tolist(), there.tolist()) == ([3, 5, 7], [True, False, True, True])
    assert vectors == pytest.approx(unit(np.array([[1, 0], [1, 1], [2, 1]], np.float32)))


def test_nothing_has_no_duplicates() -> None:
    live = ChunkIndex(2)
    live._loaded.set()
    _, vectors, _ = note_vectors(live.snapshot(), np.array([], np.int64))
    assert len(similar(vectors, np.array([], np.int64), 0.0, 10).a) == 0


def test_notes_that_say_the_same_are_found(start_engine: StartEngine) -> None:
    own = Http(start_engine().url)
    assert own("GET", "/api/v1/duplicates").json == {"duplicates": []}
    first = own.add_note("The boiler was serviced in March by Anna.", tags=["one"])
    near = own.add_note("In March, Anna serviced the boiler.")
    same = own.add_note("The boiler was serviced in March by Anna.", tags=["two"], title="Heating")
    own.add_note("Pensions follow inflation with a delay of one year.")
    own.add_file("boiler.txt", b"The boiler was serviced in March by Anna.")
    found = own("GET", "/api/v1/duplicates?min_similarity=0.8").json["duplicates"]
    assert found[0] == {
        "a": {"id": first, "title": "The boiler was serviced in March by Anna."},
        "b": {"id": same, "title": "Heating"},
        "similarity": 1.0,
    }
    assert {(pair["a"]["id"], pair["b"]["id"]) for pair in found[1:]} == {(first, near), (near, same)}
    assert all(0.8 <= pair["similarity"] < 1 for pair in found[1:])
    assert own("GET", "/api/v1/duplicates?min_similarity=0.8&limit=1").json["duplicates"] == found[:1]
    everything = own("GET", "/api/v1/duplicates?min_similarity=0").json["duplicates"]
    assert len(everything) <= 6
    for query in ("min_similarity=1.5", "limit=0", "tags=x"):
        assert own("GET", f"/api/v1/duplicates?{query}").status == 422
