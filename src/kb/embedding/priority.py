"""Who goes first: an answer that somebody waits for, before work that may take a little longer.

A search takes milliseconds, while an import keeps all cores and the interpreter busy for as long as there is any. So
whoever imports asks between its steps whether something urgent is going on, and waits until it is done.
"""

import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

LONGEST = 0.05  # seconds that a step is put off: however much is asked, other work goes on
QUIET = 1.0  # seconds without anything urgent, after which nothing is expected at any moment


class Precedence:
    def __init__(self) -> None:
        self._done = threading.Condition()
        self._urgent = 0
        self._last = -math.inf  # when the last of it began

    @contextmanager
    def first(self) -> Iterator[None]:
        """Inside, something urgent is going on."""
        with self._done:
            self._urgent += 1
            self._last = time.monotonic()
        try:
            yield
        finally:
            with self._done:
                self._urgent -= 1
                if not self._urgent:
                    self._done.notify_all()

    def give_way(self) -> bool:
        """Wait while something urgent is going on, and say whether it is done; without a lock that it might need."""
        if not self._urgent:
            return True
        with self._done:
            return self._done.wait_for(lambda: not self._urgent, LONGEST)

    @property
    def is_quiet(self) -> bool:
        return not self._urgent and time.monotonic() - self._last > QUIET
