"""Limits on what clients do: uploads and streams at a time, and the size of a body."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from kb.core.errors import Unavailable

MAX_BODY = 8 * 2**20  # a note of 1 MB with every character escaped fits; files have their own limit


@dataclass
class Slots:
    """A number of things at a time: one more is refused at once. Used from the event loop only, without a lock."""

    _most: int
    _refusal: str
    taken: int = 0

    @contextmanager
    def held(self) -> Iterator[None]:
        if self.taken >= self._most:
            raise Unavailable(self._refusal)
        self.taken += 1
        try:
            yield
        finally:
            self.taken -= 1
