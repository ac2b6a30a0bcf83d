"""Checks of what the database holds: its file, rows, passages and documents."""

import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kb.engine.doctor.finding import Finding, found
from kb.ingest.metadata import metadata_text
from kb.ingest.reindex import Reindexer
from kb.store import chunks, health, jobs, links
from kb.store.backend import Database, Mender, Salvage, Transaction
from kb.store.originals import Originals
from kb.store.rows import checked_id

NAMED = 5  # things of one kind that a message lists
RESTORE_OR_REPLACE = "Restore a backup, or delete those documents and add them again."
SECOND_LOOK = 1.0  # seconds until a job that clears chunks away has made them fewer


@dataclass(frozen=True)
class StoreChecks:
    """`reload` makes the index in memory follow after the commit of a transaction."""

    _database: Database
    _mender: Mender
    _originals: Originals
    _reindexer: Reindexer
    _reload: Callable[[Transaction], None]
    _stopping: threading.Event

    def file(self, fix: bool) -> Finding:
        damage = self._database.damage()
        if not damage:
            return Finding()
        salvage = self._mend() if fix else self._mender.survey()
        reason = " ".join(damage[0].split()).removesuffix(".")
        message = f"The database file is damaged: {reason}. {prospect(salvage)}"
        return Finding(len(damage), message, len(damage) if fix and not salvage.lost else 0)

    def _mend(self) -> Salvage:
        """Make the file whole, unless that would lose anything; the checks that follow complete it."""
        with self._originals.scratch(self._database.size_bytes()) as room:
            salvage = self._mender.mend(room)
        if not salvage.lost:
            with self._database.write() as tx:
                self._reload(tx)
        return salvage

    def references(self, fix: bool) -> Finding:
        with self._database.read() as tx:
            broken = tx.broken_references()
        if fix and broken:
            with self._database.write() as tx:
                health.drop_of_no_document(tx)
        message = "{n} rows belong to documents that are not there; the first is in {first}."
        return found(broken, message, len(broken) if fix else 0)

    def unpublished(self, fix: bool) -> Finding:
        left = self._left_behind()
        if not left:
            return Finding()
        if fix:
            with self._database.write() as tx:
                if not jobs.counts(tx).running:
                    chunks.sweep(tx)
        fixed = left if fix and not self._left_behind() else 0
        return Finding(left, f"{left} chunks were left behind unpublished, and nothing is writing them.", fixed)

    def _left_behind(self) -> int:
        """The number of unpublished chunks, unless it changes: then they are being written or cleared away."""
        first = self._unwatched()
        if first:
            time.sleep(SECOND_LOOK)
        return first if first and self._unwatched() == first else 0

    def _unwatched(self) -> int:
        with self._database.read() as tx:
            return 0 if jobs.counts(tx).running else len(tx.abandoned_drafts()[0])

    def rows(self, fix: bool) -> Finding:
        """Rows that are not as they were written, or gone. What they were is in no other place."""
        if fix:
            with self._database.write() as tx:
                health.drop_ended_jobs(tx, tx.changed_rows().get("jobs", ()))
        with self._database.read() as tx:
            changed, lost = tx.changed_rows(), tx.lost_rows()
            about = health.with_damage(tx, changed)
        if fix and lost:
            with self._database.write() as tx:
                tx.forget_lost_rows()
        changed.pop("chunks", None)  # other checks look after passages
        lost.pop("chunks", None)
        gone = {f"row of {table}": ids for table, ids in lost.items()}
        count = sum(map(len, (*changed.values(), *gone.values())))
        message = f"{count} rows are not as kb wrote them; the disk changed them, or another program. "
        message += f"Changed: {listed(about)}. " if about else ""
        message += f"Gone: {listed(gone)}. " if gone else ""
        return Finding(count, message + RESTORE_OR_REPLACE) if count else Finding()

    def passages(self, fix: bool) -> Finding:
        """Passages that are not as they were cut; they are cut again from the text of their document."""
        with self._database.read() as tx:
            changed = tx.changed_rows()
            about = health.with_damage(tx, changed)
            wrong = sorted({*changed.get("chunks", ()), *chunks.wild(tx)})
            unsound = {*about.get("text of document", ()), *about.get("version of note", ())}
            owners = set(health.documents_of(tx, wrong)) - unsound
        fixed = 0
        if fix and wrong:
            self._recut(sorted(owners))
            with self._database.read() as tx:
                fixed = len(wrong) - len({*tx.changed_rows().get("chunks", ()), *chunks.wild(tx)})
        message = "{n} passages are not as they were cut from their document's text; the first is passage {first}."
        return found(wrong, message, fixed)

    def ids(self) -> Finding:
        with self._database.read() as tx:
            checked_id(tx.ids_given("chunks") + 1)
        return Finding()

    def chunk_counts(self, fix: bool) -> Finding:
        with self._database.read() as tx:
            wrong = health.miscounted(tx)
        fixed = self._recut(wrong) if fix else 0
        return found(wrong, "{n} documents have other passages than they should; the first is document {first}.", fixed)

    def links(self, fix: bool) -> Finding:
        """Links and names of documents are made from their texts, paths and titles."""
        with self._database.read() as tx:
            wrong = list(links.outdated(tx))
        for id_ in wrong if fix else ():
            with self._database.write() as tx:
                links.refresh(tx, id_)
        message = "The links of {n} documents are not those of their texts; the first is document {first}."
        return found(wrong, message, len(wrong) if fix else 0)

    def metadata(self, fix: bool) -> Finding:
        """Documents from before metadata was indexed have no passage of it: worth making, but nothing is wrong."""
        with self._database.read() as tx:
            rows = health.without_metadata_passage(tx)
        missing = [row["id"] for row in rows if metadata_text(json.loads(row["metadata"]), row["title"])]
        fixed = self._recut(missing) if fix else 0
        if not missing:
            return Finding()
        message = (
            f"{len(missing)} documents were added before metadata was searched; the first is document {missing[0]}. "
            "`kb doctor --fix` or `kb reindex` makes theirs findable."
        )
        return Finding(message=message, fixed=fixed)

    def metadata_limits(self) -> Finding:
        with self._database.read() as tx:
            beyond = health.metadata_beyond_limits(tx)
        if not beyond:
            return Finding()
        some = ", ".join(map(str, beyond[:10])) + (" and others" if len(beyond) > 10 else "")
        return Finding(message=f"Documents with more metadata than is shown: {some}. Add them again with less.")

    def _recut(self, document_ids: Sequence[int]) -> int:
        """Make the chunks of documents anew from their texts; return how many are mended before the engine stops."""
        return sum(self._reindexer.document(id_) for id_ in document_ids if not self._stopping.is_set())


def prospect(salvage: Salvage) -> str:
    """What mending a damaged database file brings back."""
    left_out = " ".join(f"Rows of {table} that cannot be read: {rows}." for table, rows in salvage.left_out.items())
    if not salvage.lost:
        return f"{left_out} Documents, texts, notes and tags are whole, the rest is made from them.".lstrip()
    lost = "; ".join(f"{table} {rows}" for table, rows in salvage.lost.items())
    return f"Rows that cannot be read: {lost}. Restore a backup. Without one, `kb export` saves what can be read."


def listed(things: dict[str, list[int]]) -> str:
    """The first of each kind, by name."""
    return ", ".join(f"{kind} {id_}" for kind, ids in things.items() for id_ in ids[:NAMED])
