"""What a storage backend owns, and nothing more.

Shared SQL uses `:name` parameters and only what SQLite and PostgreSQL both know (ON CONFLICT, RETURNING, window
functions; no booleans in columns of numbers, no JSON). What truly differs sits behind `FullText`, `Vectors` and the
methods of `Transaction` that name no SQL.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kb.core.changes import Change
from kb.core.status import EngineInfo, EngineState

Row = dict[str, Any]
Listener = Callable[[Sequence[Change]], None]
Vector = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Postings:
    """Where one term occurs: chunk ids, ascending, and how often in each."""

    chunk_ids: NDArray[np.int64]
    counts: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Salvage:
    """What cannot be read in a damaged database: the ids of its rows, as text, by table."""

    lost: dict[str, str]  # only a backup brings these back
    left_out: dict[str, str]  # can be made again, or done without


class Mender(Protocol):
    """Makes a damaged database whole again from what can be read of it."""

    def survey(self) -> Salvage:
        """Read everything, and change nothing."""

    def mend(self, room: Path) -> Salvage:
        """Replace the damaged database by all that can be read of it, using the file `room`.

        Nothing is changed when anything would be lost. Full text, vectors and chunks may be incomplete afterwards.
        """


class FullText(Protocol):
    """The durable inverted index. It holds pre-segmented terms: see `kb.index.terms`."""

    def add(self, chunk_id: int, title: str, heading: str, body: str) -> None: ...
    def remove(self, chunk_ids: Iterable[int]) -> None: ...
    def clear(self) -> None: ...
    def ids(self) -> NDArray[np.int64]:
        """Every chunk that has a row."""

    def unsound(self) -> list[int]:
        """Chunks whose row is not as it was written."""

    def rebuild(self) -> None:
        """Rebuild the index from its own rows."""

    def postings(self, terms: Sequence[str]) -> list[Postings]:
        """The postings of each term."""

    def vocabulary(self) -> Iterator[tuple[str, int]]:
        """Every term, and the number of chunks with it; read while the transaction lasts."""

    def terms_of(self, chunk_ids: Sequence[int]) -> list[tuple[int, list[str]]]:
        """All terms of each of these chunks, as far as they are there."""


class Vectors(Protocol):
    """The durable vectors, one per chunk."""

    def add(self, chunk_id: int, vector: Vector) -> None: ...
    def remove(self, chunk_ids: Iterable[int]) -> None: ...
    def clear(self, dimensions: int | None = None) -> None:
        """Remove every vector; from now on they have this many dimensions, if given."""

    def ids(self) -> NDArray[np.int64]:
        """Every chunk that has a vector."""

    def unsound(self) -> list[int]:
        """Chunks whose vector is not as it was written, or not finite."""

    def get(self, chunk_id: int) -> Vector | None:
        """The vector of one chunk; None if it has no sound one."""

    def dimensions(self) -> int | None:
        """Of the stored vectors; None where that is not known, as there are none."""

    def load(self, chunk_ids: NDArray[np.int64], into: Vector) -> int:
        """Write the vector of each chunk into its row. Return how many have no sound vector; their rows stay."""


class Transaction(Protocol):
    """One unit of work. A read sees one moment; a write happens whole or not at all."""

    @property
    def fulltext(self) -> FullText: ...
    @property
    def vectors(self) -> Vectors: ...
    def run(self, sql: str, params: Mapping[str, Any] | None = None) -> None: ...
    def run_many(self, sql: str, params: Sequence[Mapping[str, Any]]) -> None: ...
    def values(self, sql: str, params: Sequence[Mapping[str, Any]]) -> list[Any]:
        """Run a statement with each of these parameters; return the value that each gives."""

    def rows(self, sql: str, params: Mapping[str, Any] | None = None) -> list[Row]: ...
    def tuples(self, sql: str, params: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        """Rows without column names, for searches: a tenth of a millisecond faster."""

    def row(self, sql: str, params: Mapping[str, Any] | None = None) -> Row | None: ...
    def column(self, sql: str, params: Mapping[str, Any] | None = None) -> list[Any]: ...
    def value(self, sql: str, params: Mapping[str, Any] | None = None) -> Any: ...
    def integers(self, columns: Sequence[str], rest: str, params: Mapping[str, Any] | None = None) -> NDArray[np.int64]:
        """Many rows of whole numbers, in any order: `SELECT columns FROM rest`, ten times as fast as row by row."""

    def ids_given(self, table: str) -> int:
        """The highest id that any row of this table (documents, chunks, jobs) ever had, also if it is deleted."""

    def raise_ids(self, table: str, highest: int) -> None:
        """Give no id up to this one any more."""

    def next_job_seq(self) -> int:
        """A `seq` behind those of all jobs."""

    def claim_job(self, lane: str, now: str) -> Row | None:
        """Claim the oldest waiting job of this lane; no two workers get the same job."""

    def hold(self, job: Row) -> None:
        """Raise JobLost unless this claim of the job is the one that counts; it then does until the commit."""

    def abandoned_jobs(self) -> list[str]:
        """Running jobs that no living engine runs."""

    def begin_draft(self, document_id: int, revision: int) -> None:
        """Record that this engine writes a revision; 0 reserves the row of a document."""

    def end_draft(self, document_id: int, revision: int) -> None:
        """Record that a revision is published or removed."""

    def abandoned_drafts(self) -> tuple[list[int], list[int]]:
        """Unpublished chunks, and documents that never had any content, that no living engine writes."""

    def forget_abandoned_drafts(self) -> None:
        """Drop what was recorded of them."""

    def copy_to(self, path: Path) -> None:
        """Copy the whole database, as this transaction sees it, into an empty file."""

    def changed_rows(self) -> dict[str, list[int]]:
        """Rows that the disk or another program changed, by table.

        Full text and vectors are not among them: `unsound` reports those.
        """

    def lost_rows(self) -> dict[str, list[int]]:
        """Rows that are gone although they were never deleted, by table."""

    def forget_lost_rows(self) -> None:
        """Stop reporting the rows that are lost now."""

    def broken_references(self) -> list[str]:
        """The table of each row that refers to a missing row."""

    def publishes(self, document_ids: Sequence[int] | None, follow: Callable[[], None]) -> None:
        """Say which documents this write changes for searches; None: it may be all.

        After the commit, and before it is acknowledged, `follow` brings the index in memory in step. Other engines
        read what became of these documents.
        """

    def after_commit(self, action: Callable[[], None]) -> None:
        """Run an action of this engine's own after the commit."""

    def tell(self, change: Change) -> None:
        """Have all listeners told of this change, once it is committed and the index in memory has followed."""


class IndexFollower(Protocol):
    """Brings the index in memory in step with what other engines wrote."""

    def adopt(self, document_ids: Sequence[int]) -> None:
        """Take over these documents as they are in the database."""

    def reload(self) -> None:
        """Load everything anew."""


@dataclass(frozen=True, slots=True)
class Beat:
    """What an engine learns when it says that it lives."""

    leads: bool = True  # it is the one that tidies up
    alone: bool = True  # no other engine lives
    left: bool = False  # there is something that an engine left behind which died
    lost: frozenset[str] = frozenset()  # jobs that it runs in vain: others have them by now
    cancelling: frozenset[str] = frozenset()  # jobs that it runs and that are to stop


class Database(Protocol):
    """Connections to one database: many readers, one writer at a time, in however many engines."""

    @property
    def name(self) -> str: ...
    def read(self) -> AbstractContextManager[Transaction]: ...
    def select(self, sql: str, params: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """Run one SELECT without a transaction: a single statement sees one moment by itself."""

    def write(self, *, durable: bool = True, publishes: bool = True) -> AbstractContextManager[Transaction]:
        """A write that is not `durable` is visible at once and survives this process, but perhaps not a power cut.

        Every durable write makes the writes before it durable too. A write that `publishes` is alone: no other one, of
        any engine, comes between what it reads and what it writes. One that does not may run at the same time as
        others. It changes nothing that searches or decisions depend on: drafts, progress, claims.
        """

    def follow(self, index: IndexFollower, *, load: bool = True) -> None:
        """From now on, keep the index in step with what other engines write; with `load`, load it first."""

    def catch_up(self) -> str | None:
        """Wait until the index shows every write that any engine had acknowledged before this call.

        If the database cannot be asked, return the moment that the index is from.
        """

    def listen(self, listener: Listener) -> None:
        """Call `listener` after each write that told of changes, before the next write: it must be quick."""

    @property
    def engine_id(self) -> str:
        """What tells this run of the engine from others; empty if there are no others."""

    def reading_anywhere(self) -> AbstractContextManager[None]:
        """Inside, this thread reads from any server that has the data, perhaps not the latest: the primary is away."""

    def beat(self, running: Sequence[str], state: EngineState) -> Beat:
        """Say that this engine lives and runs these jobs."""

    def engines(self) -> list[EngineInfo]:
        """The engines that live; none if there can only be one."""

    def gauges(self) -> Iterator[tuple[str, str, float]]:
        """Yield the name, help text and value of each gauge of this store. It does not ask the database."""

    @property
    def changes(self) -> int:
        """The number of committed writes. While it is the same, reads see the same data."""

    @property
    def replacements(self) -> int:
        """How often the whole database was replaced, as mending does."""

    def settle(self) -> None:
        """Wait until the index in memory has followed every commit that a reader can see."""

    def damage(self) -> list[str]:
        """Damage of the database without its full text, in the words of the backend."""

    def fulltext_damage(self) -> list[str]:
        """Damage of the full-text index, in the words of the backend."""

    def size_bytes(self) -> int: ...
    def truncate_wal(self) -> None:
        """Empty the write-ahead log, so that no deleted data remains in it."""

    @property
    def is_idle(self) -> bool:
        """Whether nothing has been written for a while."""

    def tidy(self) -> None:
        """Truncate the write-ahead log if the database is idle."""

    @property
    def wasted_bytes(self) -> int:
        """Free bytes in the file; 0 if they are too few to be worth a vacuum."""

    def vacuum_into(self, room: Path) -> bool:
        """Vacuum by way of the empty file `room`. Return False if a writer interrupted it."""

    def vacuum(self) -> None:
        """Return free space to the disk, and truncate the write-ahead log."""

    def close(self) -> None: ...
