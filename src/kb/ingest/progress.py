"""The progress of a job, recorded as it goes: by parts if a file has several, else by passages."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from kb.ingest.extract.part import Part
from kb.store import jobs
from kb.store.backend import Database

EVERY = 0.2  # seconds at least between two records: each is a write to the disk


@dataclass
class Steps:
    """`changed` is called after each record, to wake the watchers of the job."""

    _database: Database
    _job_id: str
    _changed: Callable[[], None]
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

    def _record(self, completed: int, total: int, step: str) -> None:
        if time.monotonic() - self._recorded < EVERY:
            return
        with self._database.write(durable=False) as tx:
            jobs.progress(tx, self._job_id, completed, total, step)
            tx.after_commit(self._changed)
        self._recorded = time.monotonic()
