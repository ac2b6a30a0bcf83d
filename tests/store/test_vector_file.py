"""Vectors that wait in a file: what was written is there again, and what is torn or damaged is made again."""

from pathlib import Path

import numpy as np
import pytest

from kb.core.errors import StorageFull
from kb.store.vector_file import HEADER, VectorFile

IDS = np.array([3, 1, 7], np.int64)
VECTORS = np.arange(12, dtype=np.float32).reshape(3, 4)
ROW = 8 + 4 * 4 + 8


def loaded(file: VectorFile, ids: np.ndarray = IDS) -> tuple[int, list[list[float]]]:
    into = np.full((len(ids), 4), -1, np.float32)
    return file.load(ids, into), into.tolist()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = VectorFile(tmp_path / "vectors", "model", 4)
    file.append(IDS.tolist(), VECTORS)
    return tmp_path / "vectors"


def test_vectors_are_there_again(path: Path) -> None:
    again = VectorFile(path, "model", 4)
    assert (len(again), loaded(again)) == (3, (0, VECTORS.tolist()))
    assert again.missing(np.array([1, 2, 3, 4])).tolist() == [2, 4]
    assert loaded(again, np.array([7, 8])) == (1, [VECTORS[2].tolist(), [-1] * 4])


@pytest.mark.parametrize(("model", "dimensions"), [("other", 4), ("model", 3)])
def test_those_of_another_model_are_forgotten(path: Path, model: str, dimensions: int) -> None:
    assert len(VectorFile(path, model, dimensions)) == 0


@pytest.mark.parametrize("cut", [1, ROW - 1, ROW, ROW + 1])
def test_a_row_that_was_being_written_is_made_again(path: Path, cut: int) -> None:
    with path.open("r+b") as file:
        file.truncate(HEADER + 3 * ROW - cut)
    again = VectorFile(path, "model", 4)
    missing = again.missing(IDS)
    assert missing.tolist() == ([1, 7] if cut > ROW else [7])
    again.append([7, 1], VECTORS[[2, 1]])
    assert loaded(VectorFile(path, "model", 4)) == (0, VECTORS.tolist())


@pytest.mark.parametrize("at", [HEADER, HEADER + 8, HEADER + 20, HEADER + ROW - 1])
def test_a_damaged_row_is_made_again(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)
    assert VectorFile(path, "model", 4).missing(IDS).tolist() == [3]


def test_a_disk_without_room_is_a_clear_error() -> None:
    with pytest.raises(StorageFull, match="cannot be written"):
        VectorFile(Path("/dev/full"), "model", 4)
