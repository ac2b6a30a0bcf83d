"""The log of changes: one row for each numbered write, in the order of their commits."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from kb.core.changes import Change
from kb.store.postgres.runner import Connection, executed

# Locks the one row until the commit: numbered writes happen one after another, whichever engine they come from.
NEXT = "UPDATE head SET seq = seq + 1 RETURNING seq"
HEAD = "SELECT seq FROM head"
# What comes after the commit of this statement wakes the other engines.
APPEND = """
WITH entry AS (
    INSERT INTO changes (seq, write_id, kind, document_ids, told, engine)
    VALUES (:seq, :write_id::uuid, :kind, :document_ids, :told, :engine) RETURNING seq)
SELECT pg_notify(:channel, :engine || ' ' || seq) FROM entry
"""
AFTER = """
SELECT seq, write_id::text, kind, document_ids, told FROM changes WHERE seq > :seq ORDER BY seq LIMIT :limit
"""
WRITE_ID = "SELECT write_id::text FROM changes WHERE seq = :seq"
# What no engine needs any longer; the last ones stay, to be asked about a commit in doubt.
PRUNE = """
DELETE FROM changes WHERE seq < (SELECT min(applied_seq) FROM engines) - :kept AND at < now() - interval '1 day'
"""
KEPT = 100_000
AT_ONCE = 1000

Kind = Literal["documents", "index", "other"]


@dataclass(frozen=True, slots=True)
class Entry:
    seq: int
    write_id: str
    kind: Kind
    document_ids: Sequence[int] = ()
    told: Sequence[Change] = field(default_factory=tuple)


def append(connection: Connection, entry: Entry, channel: str, engine: str) -> None:
    told = json.dumps(entry.told, separators=(",", ":"))
    params = {"seq": entry.seq, "write_id": entry.write_id, "kind": entry.kind, "told": told}
    executed(
        connection, APPEND, params | {"document_ids": list(entry.document_ids), "channel": channel, "engine": engine}
    )


def after(connection: Connection, seq: int) -> Iterator[Entry]:
    """What follows this number, or the first of it."""
    for row in executed(connection, AFTER, {"seq": seq, "limit": AT_ONCE}).fetchall():
        number, write_id, kind, document_ids, told = row
        yield Entry(number, write_id, kind, document_ids, parsed(told))


def parsed(told: str) -> tuple[Change, ...]:
    return tuple(Change(*one) for one in json.loads(told))


def number(connection: Connection, sql: str, params: dict[str, Any] | None = None) -> int:
    found = executed(connection, sql, params).fetchone()
    assert found is not None
    return int(found[0])
