"""Whether everything that belongs together is together, and mending what is not.

Nothing is assumed: each check looks, and one that cannot look says why. Mending drops what nothing can reach and
makes again what can be made from the text; a document is never deleted.
"""

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from kb.core.errors import KBError, NotFound, Unavailable
from kb.core.values import Check, Diagnosis
from kb.embedding import model
from kb.index.chunk_index import ChunkIndex
from kb.ingest.metadata import metadata_text
from kb.ingest.prepare import BATCH, Preparer
from kb.ingest.reindex import Reindexer
from kb.ingest.sandbox import confine
from kb.search.keyword import KeywordIndex
from kb.store import chunks, health, jobs
from kb.store.backend import Database, Mender, Row, Salvage, Transaction
from kb.store.health import Coverage
from kb.store.originals import Originals, in_use
from kb.store.stored import checked_id

log = logging.getLogger(__name__)

NAMED = 5  # things of one kind that a message lists
PATIENCE = 30.0  # seconds to wait for another examination
RESTORE_OR_REPLACE = "Restore a backup, or delete those documents and add them again."
SECOND_LOOK = 1.0  # seconds until what is being cleared away has become less


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found; `message` says what is wrong and what to do."""

    problems: int = 0
    message: str = "All is well."
    fixed: int = 0


class Examination(Protocol):
    def __call__(self, *, fix: bool) -> Finding: ...


class Doctor:
    def __init__(
        self,
        database: Database,
        mender: Mender,
        originals: Originals,
        preparer: Preparer,
        reindexer: Reindexer,
        live: ChunkIndex,
        keywords: KeywordIndex,
        model_dir: Path,
        stopping: threading.Event,
    ) -> None:
        self._database = database
        self._mender = mender
        self._originals = originals
        self._preparer = preparer
        self._reindexer = reindexer
        self._live = live
        self._keywords = keywords
        self._model_dir = model_dir
        self._stopping = stopping
        self._one_at_a_time = threading.Lock()

    def examine(self, *, fix: bool = False) -> Diagnosis:
        if fix and not self._live.failed:
            self._live.snapshot()  # while the index is being made, there is nothing to mend
        if not self._one_at_a_time.acquire(timeout=PATIENCE):
            raise Unavailable("The database is being mended or looked at already. Try again when that is done.")
        try:
            checks = [tried(name, examination, fix=fix) for name, examination in self._examinations()]
        finally:
            self._one_at_a_time.release()
        return Diagnosis(all(check.ok for check in checks), checks)

    def _examinations(self) -> Iterator[tuple[str, Examination]]:
        """In the order in which mending helps: what is dropped first need not be made again."""
        yield "database file", self._file
        yield "references", self._references
        yield "unpublished chunks", self._unpublished
        yield "stored rows", self._rows
        yield "passages", self._passages
        yield "ids", self._ids
        yield "full-text index", self._fulltext
        yield "full-text rows missing", self._fulltext_missing
        yield "full-text rows of no chunk", self._fulltext_stray
        yield "vectors missing", self._vectors_missing
        yield "vectors of no chunk", self._vectors_stray
        yield "chunk counts", self._chunk_counts
        yield "metadata", self._metadata
        yield "metadata limits", self._metadata_limits
        yield "originals missing", self._originals_missing
        yield "originals damaged", self._originals_damaged
        yield "originals of no document", self._originals_stray
        yield "disk space", self._disk_space
        yield "model files", self._model_files
        yield "sandbox", self._sandbox
        yield "index in memory", self._memory

    # The database

    def _file(self, *, fix: bool) -> Finding:
        damage = self._database.damage()
        if not damage:
            return Finding()
        salvage = self._mend() if fix else self._mender.survey()
        message = f"The database file is damaged: {one_line(damage[0])}. {said(salvage)}"
        return Finding(len(damage), message, len(damage) if fix and not salvage.lost else 0)

    def _mend(self) -> Salvage:
        """Make the file whole, unless that would lose anything; the checks that follow complete it."""
        with self._originals.scratch(self._database.size_bytes()) as room:
            salvage = self._mender.mend(room)
        if not salvage.lost:
            with self._database.write() as tx:
                self._reload(tx)
        return salvage

    def _references(self, *, fix: bool) -> Finding:
        with self._database.read() as tx:
            broken = tx.broken_references()
        if not broken:
            return Finding()
        if fix:
            with self._database.write() as tx:
                health.drop_of_no_document(tx)
        message = f"{len(broken)} rows belong to documents that are not there; the first is in {broken[0]}."
        return Finding(len(broken), message, len(broken) if fix else 0)

    def _unpublished(self, *, fix: bool) -> Finding:
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
        """Unpublished chunks that no job is writing and nobody is clearing away."""
        first = self._unwatched()
        if first:
            time.sleep(SECOND_LOOK)
        return first if first and self._unwatched() == first else 0

    def _unwatched(self) -> int:
        with self._database.read() as tx:
            return 0 if jobs.counts(tx).running else len(chunks.left_behind(tx))

    def _rows(self, *, fix: bool) -> Finding:
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

    def _passages(self, *, fix: bool) -> Finding:
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

    def _ids(self, *, fix: bool) -> Finding:  # noqa: ARG002 (an id that was given stays given)
        with self._database.read() as tx:
            checked_id(tx.chunk_ids_given() + 1)
        return Finding()

    # What is made from the chunks

    def _fulltext(self, *, fix: bool) -> Finding:
        damage = self._database.fulltext_damage()
        if not damage:
            return Finding()
        if fix:
            with self._database.write() as tx:
                tx.fulltext.rebuild()
                tx.after_commit(self._keywords.clear)
        return Finding(len(damage), f"The full-text index is damaged: {damage[0]}.", len(damage) if fix else 0)

    def _fulltext_missing(self, *, fix: bool) -> Finding:
        missing = self._look(health.fulltext_coverage).missing
        fixed = self._again(missing, self._index_again) if fix else 0
        return found(missing, "{n} passages cannot be found by their words: they have no sound full-text row.", fixed)

    def _fulltext_stray(self, *, fix: bool) -> Finding:
        stray = self._look(health.fulltext_coverage).stray
        if fix and stray:
            with self._database.write() as tx:
                tx.fulltext.remove(stray)
                tx.after_commit(self._keywords.clear)
        return found(stray, "{n} full-text rows belong to no passage.", len(stray) if fix else 0)

    def _vectors_missing(self, *, fix: bool) -> Finding:
        missing = self._look(health.vector_coverage).missing
        fixed = self._again(missing, self._embed_again) if fix else 0
        return found(missing, "{n} passages cannot be found by their meaning: they have no sound vector.", fixed)

    def _vectors_stray(self, *, fix: bool) -> Finding:
        stray = self._look(health.vector_coverage).stray
        if fix and stray:
            with self._database.write() as tx:
                tx.vectors.remove(stray)
        return found(stray, "{n} vectors belong to no passage.", len(stray) if fix else 0)

    def _look(self, at: Callable[[Transaction], Coverage]) -> Coverage:
        with self._database.read() as tx:
            return at(tx)

    def _again(self, chunk_ids: Sequence[int], mend: Callable[[list[Row]], None]) -> int:
        """Mend passages in batches, so that no writer waits long; how many are mended before the engine stops."""
        mended = 0
        for at in range(0, len(chunk_ids), BATCH):
            if self._stopping.is_set():
                break
            some = chunk_ids[at : at + BATCH]
            with self._database.read() as tx:
                rows = health.passages(tx, some)
            mend(rows)
            mended += len(some)
        if mended:
            with self._database.write() as tx:
                self._reload(tx)
        return mended

    def _index_again(self, rows: list[Row]) -> None:
        with self._database.write() as tx:
            still = {row["id"] for row in health.passages(tx, [row["id"] for row in rows])}
            for row in rows:
                if row["id"] in still:
                    columns = self._preparer.segmented(row["title"], row["heading"], row["text"])
                    health.set_fulltext(tx, row["id"], columns)

    def _embed_again(self, rows: list[Row]) -> None:
        vectors = self._preparer.embedded([(row["title"], row["heading"], row["text"]) for row in rows])
        with self._database.write() as tx:
            still = {row["id"] for row in health.passages(tx, [row["id"] for row in rows])}
            for row, vector in zip(rows, vectors, strict=True):
                if row["id"] in still:
                    tx.vectors.remove([row["id"]])
                    tx.vectors.add(row["id"], vector)

    # Documents and their files

    def _chunk_counts(self, *, fix: bool) -> Finding:
        with self._database.read() as tx:
            wrong = health.miscounted(tx)
        fixed = self._recut(wrong) if fix else 0
        return found(wrong, "{n} documents have other passages than they should; the first is document {first}.", fixed)

    def _metadata(self, *, fix: bool) -> Finding:
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

    def _metadata_limits(self, *, fix: bool) -> Finding:  # noqa: ARG002 (only its owner can say what is to go)
        with self._database.read() as tx:
            beyond = health.metadata_beyond_limits(tx)
        if not beyond:
            return Finding()
        some = ", ".join(map(str, beyond[:10])) + (" and others" if len(beyond) > 10 else "")
        return Finding(message=f"Documents with more metadata than is shown: {some}. Add them again with less.")

    def _recut(self, document_ids: Sequence[int]) -> int:
        """Make the chunks of documents anew from their texts; return how many are mended before the engine stops."""
        return sum(self._reindexer.document(id_) for id_ in document_ids if not self._stopping.is_set())

    def _originals_missing(self, *, fix: bool) -> Finding:  # noqa: ARG002 (only its owner can bring a file back)
        with self._database.read() as tx:
            files = health.files(tx)
        gone = [row for row in files if not self._originals.has(row["content_hash"])]
        lost = [row["id"] for row in gone if row["ours"]]
        if lost:
            return found(lost, "The originals of {n} documents are gone: add those files again; first {first}.", 0)
        if gone:
            return Finding(
                message=f"{len(gone)} documents came from v2 without their originals; only their text is kept."
            )
        return Finding()

    def _originals_damaged(self, *, fix: bool) -> Finding:  # noqa: ARG002
        with self._database.read() as tx:
            files = health.files(tx)
        damaged = [row["id"] for row in files if self._is_damaged(row["content_hash"])]
        message = "The originals of {n} documents changed on the disk: add those files again; first {first}."
        return found(damaged, message, 0)

    def _is_damaged(self, sha256: str) -> bool:
        try:
            return not self._originals.is_sound(sha256)
        except NotFound:
            return False

    def _originals_stray(self, *, fix: bool) -> Finding:
        with self._database.write() as tx:
            stray = self._originals.orphans(set(in_use(tx)))
            for file in stray if fix else ():
                file.unlink(missing_ok=True)
        return found(stray, "{n} originals belong to no document.", len(stray) if fix else 0)

    # Around it

    def _disk_space(self, *, fix: bool) -> Finding:  # noqa: ARG002
        self._originals.check()
        return Finding()

    def _model_files(self, *, fix: bool) -> Finding:  # noqa: ARG002
        if model.describe(self._model_dir).fingerprint != model.FINGERPRINT:
            return Finding(message="A model of your own: there is no pinned hash to compare it with.")
        if model.is_installed(self._model_dir):
            return Finding()
        return Finding(1, f"The files in {self._model_dir} are not those of {model.NAME}. Run `make setup`.")

    def _sandbox(self, *, fix: bool) -> Finding:  # noqa: ARG002
        """What this system lacks is said; nothing is broken."""
        return Finding(message=confine.shortfall() or Finding().message)

    def _memory(self, *, fix: bool) -> Finding:
        """Compared while nobody writes, so that both sides are at the same moment."""
        if not self._live.loaded:
            return Finding(1, "The search index is not loaded yet. Try again in a moment.")
        with self._database.write() as tx:
            differing = self._differing(tx)
            if differing and fix:
                self._reload(tx)
        return found(
            differing, "{n} passages are otherwise in memory than in the database.", len(differing) if fix else 0
        )

    def _reload(self, tx: Transaction) -> None:
        """After the commit and before the next write, so that no change is lost in between."""
        tx.after_commit(self._keywords.clear)
        tx.after_commit(lambda: self._live.load(self._database))

    def _differing(self, tx: Transaction) -> list[int]:
        snapshot, stored = self._live.snapshot(), chunks.live(tx)
        alive = np.flatnonzero(snapshot.alive)
        alive = alive[np.argsort(snapshot.chunk_ids[alive])]
        there, wanted = snapshot.chunk_ids[alive], stored.chunk_ids
        if not np.array_equal(there, wanted):
            return list(map(int, np.setxor1d(there, wanted)))
        owners = snapshot.document_ids[snapshot.doc_ords[alive]]
        same = (owners == stored.document_ids) & (snapshot.chunk_lengths[alive] == stored.terms)
        return list(map(int, wanted[~same]))


def tried(name: str, examination: Examination, *, fix: bool) -> Check:
    """A check that cannot be made is a problem too."""
    try:
        finding = examination(fix=fix)
    except KBError as error:
        finding = Finding(1, error.message)
    except Exception as error:  # what is damaged may break anything that looks at it
        log.exception("the check of %s broke", name)
        finding = Finding(1, f"This cannot be checked, so something is damaged ({type(error).__name__}: {error}).")
    ok = finding.fixed >= finding.problems
    return Check(name, ok, finding.problems, finding.message, finding.fixed)


def said(salvage: Salvage) -> str:
    """What becomes of a damaged database file."""
    left_out = " ".join(f"Rows of {table} that cannot be read: {rows}." for table, rows in salvage.left_out.items())
    if not salvage.lost:
        return f"{left_out} Documents, texts, notes and tags are whole, the rest is made from them.".lstrip()
    lost = "; ".join(f"{table} {rows}" for table, rows in salvage.lost.items())
    return f"Rows that cannot be read: {lost}. Restore a backup. Without one, `kb export` saves what can be read."


def one_line(text: str) -> str:
    return " ".join(text.split()).removesuffix(".")


def found(things: Sequence[object], message: str, fixed: int) -> Finding:
    """A finding about each of these things, if there are any."""
    if not things:
        return Finding()
    return Finding(len(things), message.format(n=len(things), first=things[0]), fixed)


def listed(things: dict[str, list[int]]) -> str:
    """The first of each kind, by name."""
    return ", ".join(f"{kind} {id_}" for kind, ids in things.items() for id_ in ids[:NAMED])
