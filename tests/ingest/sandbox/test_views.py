"""What a process says that shows originals is checked before the engine believes any of it."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kb.core.errors import JobFailure
from kb.ingest.sandbox.process import ProcessLimits
from kb.ingest.sandbox.views import Viewer

HOSTILE = Path(__file__).parent / "hostile_views.py"
NOWHERE = (0, 0, 1, 1)


@pytest.fixture(scope="module")
def viewer() -> Iterator[Viewer]:
    made = Viewer(
        ProcessLimits(memory_mb=256, seconds=10, output_mb=1, idle_seconds=60), (sys.executable, str(HOSTILE))
    )
    yield made
    made.close()


@pytest.mark.parametrize(
    ("said", "payload"),
    [
        ({}, ""),
        ({"kind": "part"}, ""),
        ({"kind": "drawing"}, "no picture"),
        ({"kind": "beyond", "pages": -1}, ""),
        ({"kind": "beyond", "pages": 3}, ""),  # not what was asked for
        ({"kind": "places", "width": 1, "height": 1, "boxes": [[0, 0, 1]], "exact": True}, ""),
        ({"kind": "places", "width": 1, "height": 1, "boxes": [[0, 0, 1, -1]], "exact": True}, ""),
        ({"kind": "places", "width": float("inf"), "height": 1, "boxes": [], "exact": True}, ""),
        ({"kind": "cells"}, "no JSON"),
        ({"kind": "cells"}, '[["text", 7]]'),
        ({"kind": "failure", "code": "no such code", "message": ""}, ""),
    ],
)
def test_an_answer_that_is_not_one_is_a_crash(viewer: Viewer, said: dict[str, object], payload: str) -> None:
    with pytest.raises(JobFailure, match="makes no sense") as failure:
        viewer.cells(HOSTILE, json.dumps([said, payload]), NOWHERE)
    assert failure.value.code == "crashed"
    assert viewer.cells(HOSTILE, json.dumps([{"kind": "cells"}, '[["fine"]]']), NOWHERE) == [["fine"]]


def test_an_answer_that_is_too_large_is_not_read(viewer: Viewer) -> None:
    with pytest.raises(JobFailure, match="more than 1 MB"):
        viewer.cells(HOSTILE, json.dumps([{"kind": "cells"}, "x" * 2**21]), NOWHERE)
