"""The switch to another embedding model while the engine goes on answering.

The next model embeds every passage, as it stands, in the background; its vectors wait in a file (`store.vector_file`).
Until the last is there, all searches and all new passages use the old model. Then one transaction puts the new vectors
in the place of the old ones, and the index in memory follows. A process that dies on the way goes on where it was.

If questions are given whose answers are known, both models answer them first, and the switch is refused if the new one
answers them worse.
"""

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from kb.core import measures
from kb.core.errors import JobCancelled, JobFailure, Unavailable
from kb.core.searches import Filter, SearchRequest
from kb.core.settings import Settings
from kb.core.types import Interrupt, Json
from kb.embedding.lazy import WarmingEmbedder
from kb.embedding.priority import Priority
from kb.engine.models import Models
from kb.index.chunk_index import ChunkIndex
from kb.ingest.prepare import Preparer
from kb.search.keyword import KeywordIndex
from kb.search.searcher import Searcher
from kb.store import health, jobs, meta
from kb.store.backend import Database, Row, Transaction, Vector
from kb.store.vector_file import VectorFile

log = logging.getLogger(__name__)

FILE = "next-model.vectors"
AT_ONCE = 64  # passages that are embedded and recorded at a time
LAST = 16  # passages, added meanwhile, that are embedded while other writers wait: half a second
TOP = 100
SLACK = 0.005  # of nDCG@10, by which the next model may be worse


@dataclass(frozen=True, slots=True)
class KnownAnswer:
    """A question, and the documents that answer it, with grades above zero."""

    query: str
    relevant: Mapping[str, int]  # a document's id → grade
    tags: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Wanted:
    """The model to switch to; with `force` also if it answers the questions worse."""

    model: str
    force: bool = False
    questions: Sequence[KnownAnswer] = ()

    def payload(self) -> Json:
        return asdict(self)

    @classmethod
    def from_payload(cls, payload: str) -> "Wanted":
        held = json.loads(payload)
        return cls(held["model"], held["force"], [KnownAnswer(**one) for one in held["questions"]])


@dataclass(frozen=True)
class ModelSwitch:
    _settings: Settings
    _database: Database
    _models: Models
    _searcher: Searcher
    _preparer: Preparer
    _priority: Priority

    def check(self, model: str) -> None:
        """Raise an error for a model that cannot be switched to."""
        self._models.check(model)

    def sweep(self) -> None:
        """Remove the vectors of a switch that has ended and could not do it itself."""
        with self._database.read() as tx:
            if jobs.unfinished(tx, "reindex") is None:
                (self._settings.data_dir / FILE).unlink(missing_ok=True)

    def run(self, job: Row, interrupt: Interrupt) -> None:
        wanted = Wanted.from_payload(job["payload"])
        following = self._opened(wanted.model)
        if following.fingerprint == self._models.fingerprint:
            with self._database.write() as tx:
                tx.hold(job)
                jobs.complete(tx, job["id"], None, None, 0)
            return
        preparer = Preparer(following, self._settings.chunk_tokens, self._priority)
        self._check_passages(preparer)
        held = VectorFile(self._settings.data_dir / FILE, following.fingerprint, following.dimensions)
        try:
            self._embed(job, preparer, held, interrupt)
            if wanted.questions and not wanted.force:
                self._compare(wanted.questions, following, held, interrupt)
            while not self._replace(job, preparer, following, held):
                self._embed(job, preparer, held, interrupt)
        except (JobCancelled, JobFailure):
            held.remove()
            raise
        held.remove()

    def _opened(self, model: str) -> WarmingEmbedder:
        following = self._models.opened(model)
        try:
            following.wait()
        except Unavailable as wrong:
            raise JobFailure("internal", following.problem or wrong.message) from wrong
        return following

    def _check_passages(self, preparer: Preparer) -> None:
        """Passages stay as they are cut, so the next model must be able to read them."""
        here, there = self._preparer.budget, preparer.budget
        if here != there:
            raise JobFailure(
                "internal",
                f"Passages have up to {here} tokens here, and up to {there} with this model: they have to be cut "
                f"again. Set KB_CHUNK_TOKENS to {min(here, there)} or less, or make the index anew with KB_MODEL and "
                "`kb serve --reindex`.",
            )

    def _embed(self, job: Row, preparer: Preparer, held: VectorFile, interrupt: Interrupt) -> None:
        """Embed every passage that has no vector yet, but for the last few that come meanwhile."""
        missing = self._missing(held)
        while len(missing):
            total = len(held) + len(missing)
            for at in range(0, len(missing), AT_ONCE):
                interrupt()
                done = len(held)
                with self._database.write(durable=False, publishes=False) as tx:
                    jobs.progress(tx, job["id"], done, total, f"Embedding passage {done + 1} of {total}")
                with self._database.read() as tx:
                    rows = health.passages(tx, missing[at : at + AT_ONCE].tolist())
                held.append(*embedded(preparer, rows))
            last = len(missing) <= LAST
            missing = self._missing(held)
            if last and len(missing) <= LAST:
                return

    def _missing(self, held: VectorFile) -> NDArray[np.int64]:
        with self._database.read() as tx:
            return held.missing(passage_ids(tx))

    def _compare(
        self, questions: Sequence[KnownAnswer], following: WarmingEmbedder, held: VectorFile, interrupt: Interrupt
    ) -> None:
        """Ask both models the questions; JobFailure if the next one finds less."""
        index = ChunkIndex(following.dimensions, model=following.fingerprint)
        index.load(self._database, held)
        candidate = Searcher(self._database, index, KeywordIndex(), following, static=self._searcher.static)
        before, after = (
            measures.mean([quality(searcher, question, interrupt) for question in questions])
            for searcher in (self._searcher, candidate)
        )
        log.info("nDCG@10 of %d questions: %.3f before, %.3f with the next model", len(questions), before, after)
        if after < before - SLACK:
            raise JobFailure(
                "internal",
                f"The model finds less for your {len(questions)} questions: nDCG@10 is {before:.3f} now, and would be "
                f"{after:.3f}. Nothing was changed; with --force it is used all the same.",
            )

    def _replace(self, job: Row, preparer: Preparer, following: WarmingEmbedder, held: VectorFile) -> bool:
        """Put the new vectors in the place of the old ones, unless too many are missing."""
        with self._database.write() as tx:
            tx.hold(job)
            ids = passage_ids(tx)
            missing = held.missing(ids)
            if len(missing) > LAST:
                return False
            if len(missing):
                held.append(*embedded(preparer, health.passages(tx, missing.tolist())))
            vectors = np.empty((len(ids), following.dimensions), np.float32)
            held.load(ids, vectors)
            tx.vectors.clear(following.dimensions)
            for chunk_id, vector in zip(ids.tolist(), vectors, strict=True):
                tx.vectors.add(chunk_id, vector)
            meta.record(tx, preparer.versions)
            jobs.complete(tx, job["id"], None, None, len(ids))
            tx.publishes(None, lambda: self._models.take_over(following))
        return True


def passage_ids(tx: Transaction) -> NDArray[np.int64]:
    """Every passage in use, also in the trash."""
    return health.ids(tx, health.INDEXED)


def embedded(preparer: Preparer, rows: Sequence[Row]) -> tuple[list[int], Vector]:
    """The ids of these passages, and their vectors."""
    return [row["id"] for row in rows], preparer.embedded([(row["title"], row["heading"], row["text"]) for row in rows])


def quality(searcher: Searcher, question: KnownAnswer, interrupt: Interrupt) -> float:
    interrupt()
    found = searcher.search(SearchRequest(question.query, top=TOP, filter=Filter(tags=tuple(question.tags))))
    places = [place for hit in found.hits for place in (hit, *(hit.also_in or ()))]
    return measures.ndcg(list(dict.fromkeys(str(place.document_id) for place in places)), question.relevant)
