"""What a contestant of the storage race can do."""

import os
from collections.abc import Iterable
from pathlib import Path

from benchmarks.corpus import Batch, Corpus, Vectors

TOP = 10

Hits = list[tuple[int, str]]  # number and text of each chunk, best first


class Store:
    """On a folder of its own: filled by one process, searched by another."""

    def __init__(self, corpus: Corpus, folder: Path) -> None:
        self.corpus = corpus
        self.folder = folder

    def fill(self, batches: Iterable[Batch], count: int) -> None:
        """Keep everything durably, with every index that searching wants."""
        raise NotImplementedError

    def open(self) -> None:
        """Make ready to search what was filled."""
        raise NotImplementedError

    def search(self, question: str, vector: Vectors, tag: str | None) -> Hits:
        raise NotImplementedError

    def processes(self) -> list[int]:
        """Whose memory counts."""
        return [os.getpid()]

    def close(self) -> None:
        """Nothing unless there is something to stop."""
