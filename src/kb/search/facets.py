"""How many of the documents that hold a word of a question are of each type, tag and month.

Types, months and tags of all documents are held as arrays: reading those of some thousand documents from the database
would take longer than the search. Documents that changed since are read from the database, and when they have become
many, the arrays are made anew.
"""

import threading
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kb.core.arrays import nonzero
from kb.core.changes import Change
from kb.core.searches import Facets
from kb.store import facets
from kb.store.backend import Database

MOST_CHANGED = 1000  # documents that are read one by one
MOST_TAGS = 1000  # in an answer

Ids = NDArray[np.int64]
Codes = NDArray[np.int32]


class Column(NamedTuple):
    """A value for each entry: its place among the names."""

    codes: Codes
    names: list[str]

    @staticmethod
    def of(values: Sequence[str]) -> "Column":
        places = {name: place for place, name in enumerate(dict.fromkeys(values))}
        return Column(np.fromiter((places[value] for value in values), np.int32, len(values)), list(places))

    def counted(self, at: NDArray[np.int64]) -> Counter[str]:
        """How often each name occurs among the entries at these places."""
        counts = np.bincount(self.codes.take(at), minlength=len(self.names)).tolist()
        return Counter({name: count for name, count in zip(self.names, counts, strict=True) if count})


class Table(NamedTuple):
    """All documents, ascending by id."""

    ids: Ids
    types: Column
    months: Column
    tags: Column  # an entry for each tag of each document
    tagged: NDArray[np.int64]  # which document that is

    @staticmethod
    def read(database: Database) -> "Table":
        with database.read() as tx:
            documents, pairs = sorted(facets.kinds(tx)), facets.tags(tx)
        ids = np.fromiter((id_ for id_, _, _ in documents), np.int64, len(documents))
        owners = np.fromiter((id_ for id_, _ in pairs), np.int64, len(pairs))
        return Table(
            ids,
            Column.of([kind for _, kind, _ in documents]),
            Column.of([month for _, _, month in documents]),
            Column.of([tag for _, tag in pairs]),
            np.searchsorted(ids, owners),
        )


class Counts(NamedTuple):
    types: Counter[str]
    tags: Counter[str]
    months: Counter[str]


class FacetIndex:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._building = threading.Lock()
        self._table: Table | None = None
        self._changed: set[int] = set()  # since the table was read
        self._meanwhile: set[int] | None = None  # while a new table is being read: since that began
        self._resets = 0
        database.listen(self._hear)

    def of(self, document_ids: Ids) -> Facets:
        """Count these documents."""
        table, changed = self._current()
        at = np.searchsorted(table.ids, document_ids).clip(max=max(len(table.ids) - 1, 0))
        known = table.ids.take(at) == document_ids if len(table.ids) else np.zeros(len(document_ids), np.bool_)
        if changed:
            known &= ~np.isin(document_ids, np.fromiter(changed, np.int64, len(changed)))
        counts = within(table, at.take(nonzero(known)))
        if not known.all():
            for mine, others in zip(counts, self._read(document_ids[~known].tolist()), strict=True):
                mine.update(others)
        return Facets(
            type=dict(counts.types.most_common()),
            tag=dict(sorted(counts.tags.items(), key=lambda one: (-one[1], one[0]))[:MOST_TAGS]),
            month=dict(sorted(counts.months.items(), reverse=True)),
        )

    def _hear(self, changes: Sequence[Change]) -> None:
        with self._lock:
            for change in changes:
                if change.kind == "reset":
                    self._table = None
                    self._resets += 1
                elif change.kind == "document" and isinstance(change.id, int):
                    if self._table is not None:
                        self._changed.add(change.id)
                    if self._meanwhile is not None:
                        self._meanwhile.add(change.id)
            if len(self._changed) > MOST_CHANGED:
                self._table, self._changed = None, set()

    def _current(self) -> tuple[Table, set[int]]:
        """The table, and the documents that changed since."""
        if (held := self._held()) is not None:
            return held
        with self._building:
            while (held := self._held()) is None:
                with self._lock:
                    self._meanwhile, resets = set(), self._resets
                table = Table.read(self._database)
                with self._lock:
                    if resets == self._resets:
                        self._table, self._changed = table, self._meanwhile
                    self._meanwhile = None
            return held

    def _held(self) -> tuple[Table, set[int]] | None:
        with self._lock:
            return None if self._table is None else (self._table, self._changed.copy())

    def _read(self, ids: list[int]) -> Counts:
        """Count documents that are not in the table as they are now."""
        types, tags, months = Counter[str](), Counter[str](), Counter[str]()
        for start in range(0, len(ids), MOST_CHANGED):
            some = ids[start : start + MOST_CHANGED]
            with self._database.read() as tx:
                documents, pairs = facets.kinds(tx, some), facets.tags(tx, some)
            types.update(kind for _, kind, _ in documents)
            months.update(month for _, _, month in documents)
            tags.update(tag for _, tag in pairs)
        return Counts(types, tags, months)


def within(table: Table, at: NDArray[np.int64]) -> Counts:
    mask = np.zeros(len(table.ids), np.bool_)
    mask[at] = True
    tags = table.tags.counted(nonzero(mask.take(table.tagged))) if len(at) else Counter[str]()
    return Counts(table.types.counted(at), tags, table.months.counted(at))
