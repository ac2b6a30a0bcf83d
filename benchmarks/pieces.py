"""A long run in pieces: the figures of each are kept as JSON, so that a later run does only what is missing."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.corpus import Corpus

Piece = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Run:
    """What is to be measured."""

    corpus: Corpus
    quick: bool
    sizes: tuple[int, ...]  # chunks
    again: bool  # also what was measured before
    without: frozenset[str]  # stores that do not take part

    def piece(self, name: str, measure: Callable[[], Piece]) -> None:
        """Measure, unless an earlier run kept the figures."""
        print(f"{name}:", flush=True)
        kept(_folder(self.corpus) / f"{name}.json", measure, again=self.again)


def kept(path: Path, make: Callable[[], Piece], *, again: bool = False) -> Piece:
    """The figures in the file, which is made if it is missing."""
    if again or not path.exists():
        path.unlink(missing_ok=True)
        made = make()
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(made, indent=1), encoding="utf-8")
    figures: Piece = json.loads(path.read_text(encoding="utf-8"))
    return figures


def pieces(corpus: Corpus, kind: str) -> Iterator[Piece]:
    """The figures that are there, named `kind-<size>`, by size."""
    found = _folder(corpus).glob(f"{kind}-*.json")
    for path in sorted(found, key=_size):
        yield json.loads(path.read_text(encoding="utf-8"))


def _size(path: Path) -> int:
    return int(path.stem.rpartition("-")[2])


def _folder(corpus: Corpus) -> Path:
    return corpus.folder / "figures"
