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


def listed(values: Iterable[Any]) -> tuple[str, dict[str, Any]]:
    """What stands in `IN (...)`, and its parameters. For as many values it is the same text, which is prepared once."""
    params = {f"v{number}": value for number, value in enumerate(values)}
    return ", ".join(f":{name}" for name in params), params


@dataclass(frozen=True, slots=True)
class Postings:
    """Where one term occurs: chunk ids, ascending, and how often in each."""

    chunk_ids: NDArray[np.int64]
    counts: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Salvage:
    """What cannot be read in a damaged database: by table, the ids of its rows in words."""

    lost: dict[str, str]  # what only a backup brings back
    left_out: dict[str, str]  # what can be made again, or done without


class Mender(Protocol):
    """Makes a damaged database whole again from what can be read of it."""

    def survey(self) -> Salvage:
        """Read everything, and change nothing."""
        ...

    def mend(self, room: Path) -> Salvage:
        """Put all that can be read in the place of the damaged database, by way of the file `room`.

        Nothing is changed when anything would be lost. Full text, vectors and chunks may be incomplete afterwards.
        """
        ...


class FullText(Protocol):
    """The durable inverted index. It holds pre-segmented terms: see `kb.index.terms`."""

    def add(self, chunk_id: int, title: str, heading: str, body: str) -> None: ...
    def remove(self, chunk_ids: Iterable[int]) -> None: ...
    def clear(self) -> None: ...
    def ids(self) -> NDArray[np.int64]:
        """Every chunk that has a row."""
        ...

    def unsound(self) -> list[int]:
        """Chunks whose row is not as it was written."""
        ...

    def rebuild(self) -> None:
        """Make the index anew from its own rows."""
        ...

    def postings(self, term: str) -> Postings: ...
    def vocabulary(self) -> Iterator[tuple[str, int]]:
        """Every term, and how many chunks hold it; within the transaction."""
        ...

    def terms_after(self, chunk_id: int, limit: int) -> list[tuple[int, list[str]]]:
        """The first chunks with a higher id, ascending, and all terms of each."""
        ...


class Vectors(Protocol):
    """The durable vectors, one per chunk."""

    def add(self, chunk_id: int, vector: Vector) -> None: ...
    def remove(self, chunk_ids: Iterable[int]) -> None: ...
    def clear(self, dimensions: int | None = None) -> None:
        """Remove every vector; from now on they have this many dimensions, if given."""
        ...

    def ids(self) -> NDArray[np.int64]:
        """Every chunk that has a vector."""
        ...

    def unsound(self) -> list[int]:
        """Chunks whose vector is not as it was written, or not finite."""
        ...

    def load(self, chunk_ids: NDArray[np.int64], into: Vector) -> int:
        """Write the vector of each of these chunks into its row; how many have no sound one, whose rows stay."""
        ...


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
        """Rows without names, for where every tenth of a millisecond counts."""
        ...

    def row(self, sql: str, params: Mapping[str, Any] | None = None) -> Row | None: ...
    def column(self, sql: str, params: Mapping[str, Any] | None = None) -> list[Any]: ...
    def value(self, sql: str, params: Mapping[str, Any] | None = None) -> Any: ...
    def integers(self, columns: Sequence[str], rest: str, params: Mapping[str, Any] | None = None) -> NDArray[np.int64]:
        """Many rows of whole numbers, in any order: `SELECT columns FROM rest`, ten times as fast as row by row."""
        ...

    def chunk_ids_given(self) -> int:
        """The highest id that any chunk ever had, as this transaction sees it: deleting it changes nothing."""
        ...

    def claim_job(self, lane: str, now: str) -> Row | None:
        """Take the oldest job that waits in this lane; no two workers ever get the same one."""
        ...

    def copy_to(self, path: Path) -> None:
        """A copy of the whole database as this transaction sees it, into an empty file."""
        ...

    def changed_rows(self) -> dict[str, list[int]]:
        """Rows that are not as they were written, by table: the disk changed them, or another program.

        Without full text and vectors, which say so themselves.
        """
        ...

    def lost_rows(self) -> dict[str, list[int]]:
        """Rows that were written and never deleted, and are gone."""
        ...

    def forget_lost_rows(self) -> None:
        """Expect them no longer."""
        ...

    def broken_references(self) -> list[str]:
        """For each row that refers to one that is not there, the table it is in."""
        ...

    def after_commit(self, action: Callable[[], None]) -> None:
        """Do this once the write is durable, before anybody else may write."""
        ...

    def tell(self, change: Change) -> None:
        """Have all listeners told of this change, once it is committed and the index in memory has followed."""
        ...


class Database(Protocol):
    """Connections to one database: many readers, one writer at a time."""

    @property
    def name(self) -> str: ...
    def read(self) -> AbstractContextManager[Transaction]: ...
    def select(self, sql: str, params: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """What one SELECT finds: it sees one moment by itself, so nothing has to begin and end around it."""
        ...

    def write(self, *, durable: bool = True) -> AbstractContextManager[Transaction]:
        """What is not durable is seen by everybody at once and survives this process, but maybe not a power cut.

        Every durable write makes those before it durable too.
        """
        ...

    def listen(self, listener: Listener) -> None:
        """Call `listener` after each write that told of changes, before the next write: it must be quick."""
        ...

    @property
    def changes(self) -> int:
        """How many writes were committed; while it stays the same, so does what a read sees."""
        ...

    @property
    def replacements(self) -> int:
        """How often all of it was replaced, as mending does."""
        ...

    def settle(self) -> None:
        """Return once no write, with what follows its commit, is under way."""
        ...

    def damage(self) -> list[str]:
        """What is wrong with the database itself, apart from the full text, as the backend says it."""
        ...

    def fulltext_damage(self) -> list[str]:
        """What is wrong inside the full-text index, as the backend says it."""
        ...

    def size_bytes(self) -> int: ...
    def truncate_wal(self) -> None:
        """Leave nothing of what was deleted in the log of changes."""
        ...

    @property
    def is_idle(self) -> bool:
        """Whether nothing has been written for a while."""
        ...

    def tidy(self) -> None:
        """When nothing has been written for a while: do what would only be in the way of writers."""
        ...

    @property
    def wasted_bytes(self) -> int:
        """Free space in the file that is worth returning to the disk, 0 if it is not that much."""
        ...

    def vacuum_into(self, room: Path) -> bool:
        """Return free space to the disk, by way of the empty file `room`; False when a writer came in between."""
        ...

    def vacuum(self) -> None:
        """Return free space to the disk, and leave nothing of what was deleted in logs."""
        ...

    def close(self) -> None: ...
