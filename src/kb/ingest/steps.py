"""The progress of a job, recorded as it goes."""

import time
from dataclasses import dataclass
from typing import Protocol

from kb.ingest.extract.part import Part
from kb.store import jobs
from kb.store.backend import Database

EVERY = 0.2  # seconds at least between two records of progress: each is a write to the disk


class Progress(Protocol):
    """What reading a document tells on its way."""

    def part_done(self, part: Part) -> None: ...
    def embedded(self, passages: int, total: int) -> None: ...
    def member(self, number: int, total: int) -> None: ...


@dataclass
class Steps:
    """Progress by parts if a file has several, else by passages; then by members, if it has any."""

    _database: Database
    _job_id: str
    _recorded: float = 0.0
    _by_parts: bool = False

    def part_done(self, part: Part) -> None:
        """Name the next part as the current step: reading it takes most of the time."""
        self._by_parts = part.total > 1
        if part.number < part.total:
            unit = part.name.split()[0]
            self._record(part.number, part.total, f"Processing {unit} {part.number + 1} of {part.total}")

    def embedded(self, passages: int, total: int) -> None:
        """Record how many of the known passages are embedded."""
        if not self._by_parts and passages < total:
            self._record(passages, total, "Generating embeddings")

    def member(self, number: int, total: int) -> None:
        """Name the member of an archive that is read now."""
        self._record(number - 1, total, f"Processing member {number} of {total}")

    def _record(self, completed: int, total: int, step: str) -> None:
        if time.monotonic() - self._recorded < EVERY:
            return
        with self._database.write(durable=False, publishes=False) as tx:
            jobs.progress(tx, self._job_id, completed, total, step)
        self._recorded = time.monotonic()


class Unrecorded:
    """The progress of a document whose job counts something larger: the members of an archive."""

    def part_done(self, part: Part) -> None: ...
    def embedded(self, passages: int, total: int) -> None: ...
    def member(self, number: int, total: int) -> None: ...


UNRECORDED = Unrecorded()
