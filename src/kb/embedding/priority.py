"""Priority of searches over bulk work.

A search takes milliseconds, while an import keeps all cores and the interpreter busy for as long as it lasts. So an
import asks between its steps whether a search runs, and waits until it has ended. Figures: docs/decisions/013.
"""

import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

LONGEST = 0.05  # seconds that a step waits at most: bulk work goes on under any load of searches
QUIET = 1.0  # seconds without a search after which the next one is not expected at any moment


class Priority:
    def __init__(self) -> None:
        self._ended = threading.Condition()
        self._running = 0  # searches
        self._last = -math.inf  # start of the latest search

    @contextmanager
    def search(self) -> Iterator[None]:
        """Mark a search as running."""
        with self._ended:
            self._running += 1
            self._last = time.monotonic()
        try:
            yield
        finally:
            with self._ended:
                self._running -= 1
                if not self._running:
                    self._ended.notify_all()

    def give_way(self) -> bool:
        """Wait while a search runs, and return whether all have ended. The caller must hold no lock that one needs."""
        if not self._running:
            return True
        with self._ended:
            return self._ended.wait_for(lambda: not self._running, LONGEST)

    @property
    def is_quiet(self) -> bool:
        return not self._running and time.monotonic() - self._last > QUIET
