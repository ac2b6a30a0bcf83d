"""Move a whole knowledge base into another store in one transaction, and then compare every row of both."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kb.core.errors import Conflict, KBError, NotFound
from kb.store import copying
from kb.store.backend import Transaction, Vector
from kb.store.open import Store
from kb.store.originals import Originals, in_use
from kb.store.staging import storage_errors

log = logging.getLogger(__name__)

BLOCK = 2**20


@dataclass(frozen=True, slots=True)
class Moved:
    """How much of everything was copied and compared."""

    rows: dict[str, int]  # by table
    originals: int
    missing: list[str]  # originals that the source does not have, or has damaged


def move(source: Store, target: Store, *, force: bool = False) -> Moved:
    """Copy everything and compare all rows, in one transaction: an error or an end in the middle changes nothing there.

    A target that holds something else is replaced only with `force`. One that has the same rows was filled by a run
    that was interrupted afterwards, and is compared as if it had just been filled.
    """
    with source.database.read() as old, target.database.write() as new:
        hashes = in_use(old)
        there = not force and not is_empty(new)
        if there:
            with_same_rows(old, new, target.location)
            missing = [sha256 for sha256 in hashes if not target.originals.has(sha256)]
        else:
            copying.clear(new)
            target.originals.clear(new)
            for step in copying.steps(old):
                step(new)
            missing = [sha256 for sha256 in hashes if not copied(source.originals, target.originals, new, sha256)]
            new.publishes(None, lambda: None)  # an engine that serves the target, if any, loads it again
        rows = {table: compared(old, new, table) for table in copying.TABLES}
    try:
        with source.database.read() as old, target.database.read() as new:
            compare_derived(old, new)
    except BaseException:
        if not there:
            with target.database.write() as new:
                copying.clear(new)
                target.originals.clear(new)
        raise
    return Moved(rows, len(hashes) - len(missing), missing)


def with_same_rows(old: Transaction, new: Transaction, location: str) -> None:
    """Refuse a target that holds something else than the source."""
    try:
        for table in copying.TABLES:
            compared(old, new, table)
    except KBError as differing:
        raise Conflict(
            f"{location} is not empty. Name another with KB_NAME, or replace what is there with --force."
        ) from differing


def is_empty(tx: Transaction) -> bool:
    return not any(tx.value(f"SELECT 1 FROM {table} LIMIT 1") for table in copying.TABLES)


def copied(source: Originals, target: Originals, tx: Transaction, sha256: str) -> bool:
    """Copy an original, unless it is missing or damaged. Return whether it was copied."""
    try:
        path = source.verified(sha256)
    except (NotFound, Conflict) as error:
        log.warning("the original %s is left out: %s", sha256, error.message)
        return False
    with target.stage() as staged:
        feed(path, staged.write)
        if staged.sha256 != sha256:
            raise KBError(f"The original {sha256} changed while it was copied. Nothing was changed.")
        staged.sync()
        target.keep(tx, staged)
    return True


def feed(path: Path, write: Callable[[bytes], None]) -> None:
    with storage_errors(), path.open("rb") as file:
        while block := file.read(BLOCK):
            write(block)


def compared(old: Transaction, new: Transaction, table: str) -> int:
    """The number of rows; raises an error if any differs."""
    count = 0
    for before, after in zip_longest(copying.batches(old, table), copying.batches(new, table)):
        if before != after:
            raise differs(f"the rows of {table}")
        count += len(before)
    return count


def compare_derived(old: Transaction, new: Transaction) -> None:
    ids = np.array(old.column("SELECT id FROM chunks ORDER BY id"), np.int64)
    for start in range(0, len(ids), copying.LOADED):
        some = ids[start : start + copying.LOADED]
        if not np.array_equal(vectors_of(old, some), vectors_of(new, some)):
            raise differs("the vectors")
        for at in range(0, len(some), copying.MANY):
            part = some[at : at + copying.MANY].tolist()
            before, after = ({id_: sorted(terms) for id_, terms in tx.fulltext.terms_of(part)} for tx in (old, new))
            if before != after:
                raise differs("the full text")


def vectors_of(tx: Transaction, chunk_ids: NDArray[np.int64]) -> Vector:
    rows = np.zeros((len(chunk_ids), tx.vectors.dimensions() or 1), np.float32)
    tx.vectors.load(chunk_ids, rows)
    return rows


def differs(what: str) -> KBError:
    return KBError(
        f"After copying, {what} differ between both stores. Do not use the new one; the old one is as it was."
    )
