"""As many chunks as wanted, the same in every run and in every process: text, vector, document, tags.

The first chunks are real passages with their real vectors (`benchmarks.base`). Each further one is made of sentences
of a real passage and of one of its neighbours by meaning, and its vector is that of the passage, moved as far as the
neighbour lies from another one: words are as frequent as in real text, and meanings as crowded or a little more, which
is harder to search. A chunk depends on its number alone, so a small corpus is the beginning of a larger one. Only the
standard library and numpy are imported: rivals read the corpus in environments of their own.
"""

import json
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
Numbers = NDArray[np.int64]

TAGS = {"tenth": 10, "hundredth": 100, "thousandth": 1000}  # every how many documents carry it
BLOCK = 10_000  # chunks that are drawn together
NEIGHBOURS = 16  # a passage itself is the first of them
LONGEST_DOCUMENT = 12  # chunks
MOST = 1_000_000  # made documents
STEP = (0.4, 1.0)  # how far of the way between two neighbours a vector is moved
KEPT = 0.7  # of a passage's sentences
SEED = 11

_SENTENCE_END = re.compile(r"(?<=[.?!])\s+|\n+")


@dataclass(frozen=True, slots=True)
class Batch:
    """Consecutive chunks, as columns."""

    first: int  # the number of the first of them
    documents: Numbers
    titles: list[str]
    texts: list[str]
    vectors: Vectors

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def numbers(self) -> range:
        return range(self.first, self.first + len(self))

    @property
    def tags(self) -> list[tuple[str, ...]]:
        return [tags_of(int(document)) for document in self.documents]


class Delivery:
    """Batches, each with the time that making it took; the consumer's time is not counted."""

    def __init__(self, batches: Iterator[Batch]) -> None:
        self._batches = batches
        self.seconds = 0.0

    def __iter__(self) -> Iterator[Batch]:
        return self

    def __next__(self) -> Batch:
        started = time.perf_counter()
        try:
            return next(self._batches)
        finally:
            self.seconds += time.perf_counter() - started


class Corpus:
    """Opened from the folder that `benchmarks.base` made."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with (folder / "passages.jsonl").open(encoding="utf-8") as lines:
            rows = [json.loads(line) for line in lines]
        self._texts = [str(row["text"]) for row in rows]
        self._titles = [str(row["title"]) for row in rows]
        self._owners = np.array([row["document"] for row in rows], np.int64)
        self._vectors: Vectors = np.load(folder / "passages.npy")
        self._sentences = [[part for part in _SENTENCE_END.split(text) if part.strip()] for text in self._texts]

    @property
    def real(self) -> int:
        """How many of the first chunks are real passages."""
        return len(self._texts)

    def batches(self, count: int) -> Iterator[Batch]:
        """The first `count` chunks, batch by batch."""
        for block in self._blocks(count):
            if block.start < self.real:
                yield self._passages(block)
            else:
                yield self._made(block, with_texts=True)

    def vectors(self, count: int) -> Iterator[tuple[Numbers, Vectors]]:
        """The documents and vectors of the first `count` chunks, batch by batch."""
        for block in self._blocks(count):
            batch = self._passages(block) if block.start < self.real else self._made(block, with_texts=False)
            yield batch.documents, batch.vectors

    def questions(self) -> tuple[list[str], Vectors]:
        """Questions of 8 words, and their vectors."""
        texts: list[str] = json.loads((self.folder / "questions.json").read_text(encoding="utf-8"))
        return texts, np.load(self.folder / "questions.npy")

    def _blocks(self, count: int) -> Iterator[range]:
        """No block holds both real and made chunks."""
        for first in range(0, min(count, self.real), BLOCK):
            yield range(first, min(first + BLOCK, count, self.real))
        for first in range(self.real, count, BLOCK):
            yield range(first, min(first + BLOCK, count))

    def _passages(self, block: range) -> Batch:
        own = slice(block.start, block.stop)
        return Batch(block.start, self._owners[own], self._titles[own], self._texts[own], self._vectors[own])

    def _made(self, block: range, *, with_texts: bool) -> Batch:
        chance = np.random.default_rng((SEED, block.start))
        places = np.arange(block.start - self.real, block.start - self.real + BLOCK)
        documents = np.searchsorted(self._ends, places, side="right")
        topics = self._topics[documents]
        one = self._near[topics, chance.integers(NEIGHBOURS, size=BLOCK)]
        first, further = chance.integers(NEIGHBOURS - 1, size=BLOCK), chance.integers(1, NEIGHBOURS - 1, size=BLOCK)
        towards = self._near[one, 1 + first]
        away = self._near[one, 1 + (first + further) % (NEIGHBOURS - 1)]
        steps = chance.uniform(*STEP, BLOCK).astype(np.float32)
        starts = chance.integers(2**31, size=(BLOCK, 2))
        vectors = self._vectors[one] + steps[:, None] * (self._vectors[towards] - self._vectors[away])
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        own = slice(0, len(block))
        texts = [""] * len(block)
        if with_texts:
            kept = (
                f"{self._run(int(a), KEPT, int(chances[0]))} {self._run(int(b), float(step) / 2, int(chances[1]))}"
                for a, b, step, chances in zip(one[own], towards[own], steps[own], starts[own], strict=True)
            )
            texts = list(kept)
        titles = [self._titles[topic] for topic in topics[own]]
        return Batch(block.start, documents[own] + self._owners[-1] + 1, titles, texts, vectors[own])

    def _run(self, passage: int, share: float, chance: int) -> str:
        """A share of a passage's sentences, one at least, as they follow each other."""
        sentences = self._sentences[passage]
        length = max(1, round(share * len(sentences)))
        start = chance % (len(sentences) - length + 1)
        return " ".join(sentences[start : start + length])

    @cached_property
    def _near(self) -> Numbers:
        """The nearest passages of each, itself first."""
        found = []
        for first in range(0, self.real, 1000):
            cosines = self._vectors[first : first + 1000] @ self._vectors.T
            cosines[np.arange(len(cosines)), np.arange(first, first + len(cosines))] = 2  # itself, whatever its twins
            found.append(best(cosines, NEIGHBOURS))
        return np.concatenate(found)

    @cached_property
    def _topics(self) -> Numbers:
        """The passage that each made document is about."""
        return np.random.default_rng((SEED, 1)).integers(self.real, size=MOST)

    @cached_property
    def _ends(self) -> Numbers:
        """Where each made document ends, in made chunks: every other is a single chunk."""
        chance = np.random.default_rng((SEED, 0))
        sizes = np.where(chance.random(MOST) < 0.5, 1, chance.integers(2, LONGEST_DOCUMENT + 1, MOST))
        return np.cumsum(sizes)


def tags_of(document: int) -> tuple[str, ...]:
    return tuple(tag for tag, every in TAGS.items() if document % every == 0)


def best(scores: NDArray[np.float32], count: int) -> Numbers:
    """The places of the highest scores of each row, best first."""
    some = np.argpartition(scores, -count, axis=1)[:, -count:] if count < scores.shape[1] else _all_places(scores)
    order = np.argsort(-np.take_along_axis(scores, some, axis=1), axis=1, kind="stable")
    return np.take_along_axis(some, order, axis=1)


def nearest(corpus: Corpus, count: int, questions: Vectors, tag: str | None, top: int = 10) -> list[list[int]]:
    """What exact search finds: for each question the numbers of the chunks with the highest cosine.

    What is at a right angle to the question or beyond answers nothing, in whatever order it comes, and is left out.
    """
    held_scores = np.empty((len(questions), 0), np.float32)
    held_numbers = np.empty((len(questions), 0), np.int64)
    first = 0
    for documents, vectors in corpus.vectors(count):
        numbers = np.arange(first, first + len(vectors))
        first += len(vectors)
        within = documents % TAGS[tag] == 0 if tag else np.ones(len(documents), np.bool_)
        scores = np.hstack((held_scores, questions @ vectors[within].T))
        candidates = np.hstack((held_numbers, np.broadcast_to(numbers[within], (len(questions), within.sum()))))
        keep = best(scores, top)
        held_scores = np.take_along_axis(scores, keep, axis=1)
        held_numbers = np.take_along_axis(candidates, keep, axis=1)
    return [
        [int(number) for number, score in zip(*row, strict=True) if score > 0]
        for row in zip(held_numbers, held_scores, strict=True)
    ]


def recall(found: Sequence[Sequence[int]], wanted: Sequence[Sequence[int]]) -> float:
    """The share of what should be found that was, over all questions."""
    shares = [len(set(mine) & set(theirs)) / len(theirs) for mine, theirs in zip(found, wanted, strict=True) if theirs]
    return sum(shares) / len(shares) if shares else 1.0


def _all_places(scores: NDArray[np.float32]) -> Numbers:
    return np.broadcast_to(np.arange(scores.shape[1]), scores.shape)
