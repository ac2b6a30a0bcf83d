"""Sign bits: distances are counted right, and bounds hold for vectors of any kind."""

import numpy as np
import pytest

from kb.index import sign_bits
from kb.index.kernels import kernels
from kb.store.backend import Vector

RANDOM = np.random.default_rng(5)


def unit(rows: np.ndarray) -> Vector:
    scaled: Vector = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return scaled


@pytest.mark.parametrize("dimensions", [3, 64, 100, 384])
@pytest.mark.parametrize("count", [0, 1, 50])
@pytest.mark.parametrize("least_share", [7, 10**9])
def test_distances_are_the_bits_that_differ(
    dimensions: int, count: int, least_share: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sign_bits, "BLOCK", 16)
    monkeypatch.setattr(sign_bits, "LEAST_SHARE", least_share)
    rows = RANDOM.normal(size=(count, dimensions)).astype(np.float32)
    question = RANDOM.normal(size=dimensions).astype(np.float32)
    packed, asked = sign_bits.pack(rows), sign_bits.pack(question[None])[0]
    scan = sign_bits.ParallelScan()
    found = scan.distances(packed, asked)
    assert found.tolist() == np.count_nonzero((rows > 0) != (question > 0), axis=1).tolist()
    some = np.arange(0, count, 3)[::-1].copy()
    assert scan.distances(packed, asked, some).tolist() == found[some].tolist()


def test_a_bound_falls_with_the_distance_and_says_how_far_a_cosine_reaches() -> None:
    bound = sign_bits.Bound(384)
    cosines = bound.cosines
    assert len(cosines) == 385
    assert np.all(np.diff(cosines) <= 0)
    assert cosines[0] == 1
    for cosine in (0.9, 0.5, 0.0, -0.5):
        reach = bound.reach(cosine)
        assert cosines[reach] >= cosine > cosines[reach + 1]
    assert bound.reach(1.1) == -1
    assert bound.reach(-1.1) == 384


def in_no_order(count: int) -> Vector:
    return unit(RANDOM.normal(size=(count, 384)))


def in_clusters(count: int) -> Vector:
    return unit(RANDOM.normal(size=(40, 384))[RANDOM.integers(40, size=count)] + 0.6 * RANDOM.normal(size=(count, 384)))


def in_unequal_dimensions(count: int) -> Vector:
    """A few dimensions decide about the angle, but have no more of a say in the signs than the others."""
    return unit(RANDOM.normal(size=(count, 384)) * np.exp(2 * RANDOM.normal(size=384)))


@pytest.mark.parametrize("made", [in_no_order, in_clusters, in_unequal_dimensions])
def test_hardly_a_cosine_is_above_its_bound(made: object) -> None:
    rows = made(4000)  # type: ignore[operator]
    bound = sign_bits.Bound(384, sign_bits.spread(rows))
    packed = sign_bits.pack(rows)
    above = 0
    for at in range(100):
        distances = kernels.distances(packed, packed[at])
        above += int(np.count_nonzero(rows @ rows[at] > bound.cosines[distances] + 1e-4))
    assert above <= 0.015 * 100 * len(rows)


def test_signs_that_say_less_make_wider_bounds() -> None:
    assert sign_bits.spread(in_no_order(4000)) == pytest.approx(1, abs=0.05)
    assert sign_bits.spread(in_unequal_dimensions(4000)) > 2


def test_too_few_vectors_to_tell_are_taken_for_ordinary_ones() -> None:
    assert sign_bits.spread(np.zeros((500, 384), np.float32)) == 1
    assert sign_bits.spread(np.empty((0, 384), np.float32)) == 1
