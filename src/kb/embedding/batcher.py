"""Embedding that may wait: many texts of many callers, on all cores at once, and searches before it.

Every core runs a batch of its own (a stream), which is faster than all cores on one batch: no core waits for another.
Callers hand in token ids and may go on with something else meanwhile; they take turns, batch by batch, so that a note
does not wait for the whole of a book. Short texts of several callers share a batch; a long one is run alone. A single
text while nothing else is going on gets all cores, as a query does.
"""

import math
import threading
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kb.embedding.priority import Priority

Vectors = NDArray[np.float32]
Ids = Sequence[int]
Embed = Callable[[Sequence[Ids]], Vectors]  # one vector for each of a few texts; for one thread at a time

# What a stream takes at a time. More is no faster, and is longer in the way of a query.
BATCH_TOKENS = 256
# Runtimes keep memory for every shape they have seen, so shapes are made to repeat.
LENGTH_STEP = 8
LIKE = 0.75  # texts share a batch when the shortest has about this much of the longest: little of it is padding


@dataclass(slots=True)
class Work:
    """What one caller handed in."""

    texts: Sequence[Ids]
    vectors: Vectors
    left: list[int]  # numbers of the texts that nobody has taken yet, ascending by length
    missing: int  # texts that have no vector yet
    done: "Future[Vectors]" = field(default_factory=Future)

    def take(self, most: int) -> int | None:
        """The longest of the texts that are left and have at most so many tokens, but not many fewer."""
        at = bisect_right(self.left, most, key=lambda number: len(self.texts[number])) - 1
        if at < 0 or len(self.texts[self.left[at]]) < LIKE * most - LENGTH_STEP:
            return None
        return self.left.pop(at)


class Bulk:
    """`streams` run beside each other; `whole` has all cores, and must not be in the way of a query for long."""

    def __init__(self, streams: Sequence[Embed], whole: Embed, dimensions: int, priority: Priority) -> None:
        self._dimensions = dimensions
        self._streams = len(streams)
        self._idle = list(streams)
        self._whole = whole
        self._waiting: deque[Work] = deque()
        self._priority = priority
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(len(streams), thread_name_prefix="embed")

    def submit(self, texts: Sequence[Ids]) -> "Future[Vectors]":
        """The vectors, in order, as soon as there are cores for them."""
        order = sorted(range(len(texts)), key=lambda number: len(texts[number]))
        work = Work(texts, np.empty((len(texts), self._dimensions), np.float32), order, len(texts))
        if not texts:
            work.done.set_result(work.vectors)
            return work.done
        with self._lock:
            self._waiting.append(work)
        for _ in range(min(self._streams, len(texts))):
            self._threads.submit(self._work)
        return work.done

    def _work(self) -> None:
        """Run batches for as long as there are any. There are as many threads as streams."""
        with self._lock:
            stream = self._idle.pop()
        try:
            while batch := self._next():
                self._run(self._whole if self._lonely(batch) else stream, batch)
        finally:
            with self._lock:
                self._idle.append(stream)

    def _next(self) -> list[tuple[Work, int]]:
        """The next caller's longest text, and others of like length while there is room; empty when all is done."""
        self._priority.give_way()
        with self._lock:
            if not self._waiting:
                return []
            first = self._waiting[0]
            width = rounded(len(first.texts[first.left[-1]]))
            batch = [(first, first.left.pop())]
            for work in self._waiting:
                while (len(batch) + 1) * width <= BATCH_TOKENS and (number := work.take(width)) is not None:
                    batch.append((work, number))
            self._waiting.rotate(-1)
            self._waiting = deque(work for work in self._waiting if work.left)
            return batch

    def _lonely(self, batch: list[tuple[Work, int]]) -> bool:
        """Whether this is all there is to do, and nobody is asking questions."""
        with self._lock:
            alone = len(batch) == 1 and not self._waiting and len(self._idle) == self._streams - 1
            return alone and self._priority.is_quiet

    def _run(self, stream: Embed, batch: list[tuple[Work, int]]) -> None:
        try:
            vectors = stream([work.texts[number] for work, number in batch])
        except Exception as wrong:  # noqa: BLE001 - it belongs to those who wait for it
            self._fail(batch, wrong)
            return
        finished = []
        with self._lock:
            for (work, number), vector in zip(batch, vectors, strict=True):
                work.vectors[number] = vector
                work.missing -= 1
                if work.missing == 0:
                    finished.append(work)
        for work in finished:
            work.done.set_result(work.vectors)

    def _fail(self, batch: list[tuple[Work, int]], wrong: Exception) -> None:
        """Whoever has a text in this batch gets no answer; what is left of theirs is not begun."""
        failed = []
        with self._lock:
            for work, _ in batch:
                if work.missing > 0:
                    work.left.clear()
                    work.missing = -1  # other batches of it may still be running
                    failed.append(work)
            self._waiting = deque(work for work in self._waiting if work.left)
        for work in failed:
            work.done.set_exception(wrong)


def rounded(length: int) -> int:
    return math.ceil(length / LENGTH_STEP) * LENGTH_STEP
