"""A bounded number of things at a time: one more is refused at once, instead of making everything slow."""

from collections.abc import Iterator
from contextlib import contextmanager

from kb.core.errors import Unavailable


class Slots:
    """Used from the event loop only, so counting needs no lock."""

    def __init__(self, most: int, refusal: str) -> None:
        self._most = most
        self._refusal = refusal
        self.taken = 0

    @contextmanager
    def held(self) -> Iterator[None]:
        if self.taken >= self._most:
            raise Unavailable(self._refusal)
        self.taken += 1
        try:
            yield
        finally:
            self.taken -= 1
