"""One unit of work on PostgreSQL."""

from collections.abc import Callable, Sequence
from pathlib import Path

from kb.core.changes import Change
from kb.core.errors import JobLost
from kb.store.backend import Row
from kb.store.postgres import copies
from kb.store.postgres.fulltext import PostgresFullText
from kb.store.postgres.log import Kind
from kb.store.postgres.runner import Connection, Runner
from kb.store.postgres.vectors import PostgresVectors

# No two workers get the same job, also if several engines claim.
CLAIM = """
UPDATE jobs SET status = 'running', started_at = :now, attempts = attempts + 1, claimed_by = :engine,
                lease_until = clock_timestamp() + make_interval(secs => :lease)
 WHERE seq = (SELECT seq FROM jobs
               WHERE status = 'queued' AND lane = :lane AND (not_before IS NULL OR not_before <= :now)
               ORDER BY seq LIMIT 1 FOR UPDATE SKIP LOCKED)
RETURNING *
"""
# One run of a job, and no other: it fences a worker whose job was given to another meanwhile.
HOLD = """
SELECT 1 FROM jobs
 WHERE id = :id AND status = 'running'
   AND attempts = :attempts AND started_at = :started_at AND claimed_by = :claimed_by
   FOR UPDATE
"""
ABANDONED_JOBS = """
SELECT id FROM jobs WHERE status = 'running' AND (claimed_by IS NULL OR lease_until < clock_timestamp()
                                                 OR claimed_by NOT IN (SELECT id FROM engines))
"""
BEGIN_DRAFT = "INSERT INTO drafts (document_id, revision, engine) VALUES (:id, :revision, :engine)"
END_DRAFT = "DELETE FROM drafts WHERE document_id = :id AND revision IN (0, :revision)"
ABANDONED_CHUNKS = """
SELECT c.id FROM chunks c JOIN documents d ON d.id = c.document_id
 WHERE d.revision <> c.revision
   AND NOT EXISTS (SELECT 1 FROM drafts f JOIN engines e ON e.id = f.engine
                    WHERE f.document_id = c.document_id AND f.revision = c.revision)
"""
ABANDONED_DOCUMENTS = """
SELECT id FROM documents d
 WHERE revision = 0 AND NOT EXISTS (SELECT 1 FROM drafts f JOIN engines e ON e.id = f.engine WHERE f.document_id = d.id)
"""
FORGET_DRAFTS = "DELETE FROM drafts WHERE engine NOT IN (SELECT id FROM engines)"
LEASE_SECONDS = 10.0
SEQUENCES = {
    "documents": "documents_id_seq",
    "chunks": "chunks_id_seq",
    "jobs": "jobs_seq_seq",
    "folders": "folders_id_seq",
}


class PostgresTransaction(Runner):
    """`engine` is the id of the engine that writes; a read has none."""

    def __init__(self, begin: Callable[[], Connection], engine: str = "") -> None:
        super().__init__(begin)
        self._engine = engine
        self._after: list[Callable[[], None]] = []
        self._following: list[Callable[[], None]] = []
        self.kind: Kind = "other"
        self.document_ids: list[int] = []
        self.told: list[Change] = []
        self.fulltext = PostgresFullText(self)
        self.vectors = PostgresVectors(self)

    def ids_given(self, table: str) -> int:
        return int(self.value("SELECT pg_sequence_last_value(:name::regclass)", {"name": SEQUENCES[table]}) or 0)

    def raise_ids(self, table: str, highest: int) -> None:
        if highest > self.ids_given(table):
            self.run("SELECT setval(:name::regclass, :highest)", {"name": SEQUENCES[table], "highest": highest})

    def next_job_seq(self) -> int:
        return int(self.value("SELECT nextval('jobs_seq_seq')"))

    def claim_job(self, lane: str, now: str) -> Row | None:
        return self.row(CLAIM, {"lane": lane, "now": now, "engine": self._engine, "lease": LEASE_SECONDS})

    def hold(self, job: Row) -> None:
        if self.row(HOLD, {name: job[name] for name in ("id", "attempts", "started_at", "claimed_by")}) is None:
            raise JobLost

    def abandoned_jobs(self) -> list[str]:
        return self.column(ABANDONED_JOBS)

    def begin_draft(self, document_id: int, revision: int) -> None:
        self.run(BEGIN_DRAFT, {"id": document_id, "revision": revision, "engine": self._engine})

    def end_draft(self, document_id: int, revision: int) -> None:
        self.run(END_DRAFT, {"id": document_id, "revision": revision})

    def abandoned_drafts(self) -> tuple[list[int], list[int]]:
        return self.column(ABANDONED_CHUNKS), self.column(ABANDONED_DOCUMENTS)

    def forget_abandoned_drafts(self) -> None:
        self.run(FORGET_DRAFTS)

    def copy_to(self, path: Path) -> None:
        copies.write(self, path)

    def changed_rows(self) -> dict[str, list[int]]:
        """None: PostgreSQL has a checksum for every page, and reports an error in place of a changed row."""
        return {}

    def lost_rows(self) -> dict[str, list[int]]:
        return {}

    def forget_lost_rows(self) -> None:
        """Nothing is recorded."""

    def broken_references(self) -> list[str]:
        """None: PostgreSQL refuses such a row."""
        return []

    def publishes(self, document_ids: Sequence[int] | None, follow: Callable[[], None]) -> None:
        if document_ids is None:
            self.kind = "index"
        else:
            self.kind = "documents" if self.kind == "other" else self.kind
            self.document_ids += document_ids
        self._following.append(follow)

    def after_commit(self, action: Callable[[], None]) -> None:
        self._after.append(action)

    def tell(self, change: Change) -> None:
        self.told.append(change)

    def flush(self) -> None:
        """Send the rows that wait."""
        self.fulltext.flush()
        self.vectors.flush()

    def follow(self) -> None:
        """Have the index in memory follow what was committed."""
        for action in self._following:
            action()

    def committed(self) -> None:
        for action in self._after:
            action()
