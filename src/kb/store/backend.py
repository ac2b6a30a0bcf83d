"""What a storage backend owns, and nothing more.

Shared SQL uses `:name` parameters and only what SQLite and PostgreSQL both know (ON CONFLICT, RETURNING,
window functions; `originals.py` looks into JSON). What truly differs sits behind `FullText`,
`Vectors`, `chunk_ids_given` and `claim_job`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kb.core.changes import Change

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

    def postings(self, term: str) -> Postings: ...
    def vocabulary(self) -> Iterator[tuple[str, int]]:
        """Every term, and the number of chunks with it; read while the transaction lasts."""

    def terms_after(self, chunk_id: int, limit: int) -> list[tuple[int, list[str]]]:
        """The first chunks with a higher id, ascending, and all terms of each."""


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
    def rows(self, sql: str, params: Mapping[str, Any] | None = None) -> list[Row]: ...
    def tuples(self, sql: str, params: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        """Rows without column names, for searches: a tenth of a millisecond faster."""

    def row(self, sql: str, params: Mapping[str, Any] | None = None) -> Row | None: ...
    def column(self, sql: str, params: Mapping[str, Any] | None = None) -> list[Any]: ...
    def value(self, sql: str, params: Mapping[str, Any] | None = None) -> Any: ...
    def integers(self, columns: Sequence[str], rest: str, params: Mapping[str, Any] | None = None) -> NDArray[np.int64]:
        """Many rows of whole numbers, in any order: `SELECT columns FROM rest`, ten times as fast as row by row."""

    def chunk_ids_given(self) -> int:
        """The highest id that any chunk ever had, also if that chunk is deleted."""

    def claim_job(self, lane: str, now: str) -> Row | None:
        """Claim the oldest waiting job of this lane; no two workers get the same job."""

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

    def after_commit(self, action: Callable[[], None]) -> None:
        """Run an action after the commit and before the next write."""

    def tell(self, change: Change) -> None:
        """Have all listeners told of this change, once it is committed and the index in memory has followed."""


class Database(Protocol):
    """Connections to one database: many readers, one writer at a time."""

    @property
    def name(self) -> str: ...
    def read(self) -> AbstractContextManager[Transaction]: ...
    def select(self, sql: str, params: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """Run one SELECT without a transaction: a single statement sees one moment by itself."""

    def write(self, *, durable: bool = True) -> AbstractContextManager[Transaction]:
        """A write that is not `durable` is visible at once and survives this process, but perhaps not a power cut.

        Every durable write makes the writes before it durable too.
        """

    def listen(self, listener: Listener) -> None:
        """Call `listener` after each write that told of changes, before the next write: it must be quick."""

    @property
    def changes(self) -> int:
        """The number of committed writes. While it is the same, reads see the same data."""

    @property
    def replacements(self) -> int:
        """How often the whole database was replaced, as mending does."""

    def settle(self) -> None:
        """Wait until no write, and no action after its commit, is running."""

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
