"""Preparing passages gives way to what is urgent, but is never put off for long."""

import pytest

from kb.embedding.embedder import SentenceEmbedder
from kb.embedding.priority import Priority
from kb.ingest.extract.part import Part
from kb.ingest.prepare import BATCH, Preparer


class Counting(Priority):
    def __init__(self, *, free: bool) -> None:
        super().__init__()
        self.times = 0
        self._free = free

    def give_way(self) -> bool:
        self.times += 1
        return self._free


@pytest.mark.parametrize(("free", "times"), [(True, 1 + BATCH), (False, 1 + 1)], ids=["each", "once a batch"])
def test_every_passage_gives_way_unless_waiting_is_of_no_use(
    embedder: SentenceEmbedder, free: bool, times: int
) -> None:
    priority = Counting(free=free)
    preparer = Preparer(embedder, 200, priority)
    (passage,) = preparer.passages(Part("text", "a passage"), "text", "title")
    assert len(preparer.begin([passage] * BATCH, first=0)()) == BATCH
    assert priority.times == times
