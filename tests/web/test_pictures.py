"""The pictures in docs/ can be taken, and those that are there are small."""

import io
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from .pictures import SHOTS, library, take

PICTURES = Path(__file__).parents[2] / "docs/pictures"


@pytest.fixture(scope="module")
def url() -> Any:
    with library() as engine:
        yield engine.url


@pytest.mark.parametrize("name", SHOTS)
def test_a_picture_can_be_taken_again(chromium: Any, url: str, name: str) -> None:
    with Image.open(io.BytesIO(take(chromium, url, name))) as taken, Image.open(PICTURES / f"{name}.png") as kept:
        assert taken.size == kept.size
    assert (PICTURES / f"{name}.png").stat().st_size <= 100 * 1024
