"""Bulk embedding: many texts of many callers on all cores, with priority for searches.

Every core runs its own batches (a stream), which is faster than all cores on one batch: no core waits for another.
Callers submit token ids and get a future. They take turns, batch by batch, so that a note does not wait for a whole
book. Short texts of several callers share a batch; a long one is run alone. A single text on an idle machine gets all
cores, as a query does.
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

# Tokens of one batch. A larger one is no faster, and delays a query for longer.
BATCH_TOKENS = 256
# Runtimes keep memory for every input shape, so lengths are rounded up to few shapes.
LENGTH_STEP = 8
LIKE = 0.75  # length of the shortest text of a batch, relative to the longest: little of it is padding


@dataclass(slots=True)
class Submission:
    """The texts of one caller."""

    texts: Sequence[Ids]
    vectors: Vectors
    left: list[int]  # positions of texts that are in no batch yet, ascending by length
    missing: int  # texts that have no vector yet
    done: "Future[Vectors]" = field(default_factory=Future)

    def take(self, most: int) -> int | None:
        """Remove and return the longest text left of at most `most` tokens; None if all are much shorter or longer."""
        at = bisect_right(self.left, most, key=lambda number: len(self.texts[number])) - 1
        if at < 0 or len(self.texts[self.left[at]]) < LIKE * most - LENGTH_STEP:
            return None
        return self.left.pop(at)


class BulkEmbedder:
    """`streams` run in parallel; `whole` uses all cores for one text, and must not delay a query for long."""

    def __init__(self, streams: Sequence[Embed], whole: Embed, dimensions: int, priority: Priority) -> None:
        self._dimensions = dimensions
        self._streams = len(streams)
        self._idle = list(streams)
        self._whole = whole
        self._waiting: deque[Submission] = deque()
        self._priority = priority
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(len(streams), thread_name_prefix="embed")

    def submit(self, texts: Sequence[Ids]) -> "Future[Vectors]":
        """Queue these texts. The future holds their vectors, in order."""
        order = sorted(range(len(texts)), key=lambda number: len(texts[number]))
        work = Submission(texts, np.empty((len(texts), self._dimensions), np.float32), order, len(texts))
        if not texts:
            work.done.set_result(work.vectors)
            return work.done
        with self._lock:
            self._waiting.append(work)
        for _ in range(min(self._streams, len(texts))):
            self._threads.submit(self._work)
        return work.done

    def _work(self) -> None:
        """Run batches until none is left. There are as many threads as streams."""
        with self._lock:
            stream = self._idle.pop()
        try:
            while batch := self._next():
                self._run(self._whole if self._lonely(batch) else stream, batch)
        finally:
            with self._lock:
                self._idle.append(stream)

    def _next(self) -> list[tuple[Submission, int]]:
        """The next caller's longest text, and others of similar length while there is room; empty if none is left."""
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

    def _lonely(self, batch: list[tuple[Submission, int]]) -> bool:
        """Whether this batch is the only work, and no search is expected."""
        with self._lock:
            alone = len(batch) == 1 and not self._waiting and len(self._idle) == self._streams - 1
            return alone and self._priority.is_quiet

    def _run(self, stream: Embed, batch: list[tuple[Submission, int]]) -> None:
        try:
            vectors = stream([work.texts[number] for work, number in batch])
        except Exception as wrong:  # noqa: BLE001 - raised again by the futures
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

    def _fail(self, batch: list[tuple[Submission, int]], wrong: Exception) -> None:
        """Fail every caller with a text in this batch, and drop what is left of their texts."""
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
