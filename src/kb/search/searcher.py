"""A search from top to bottom: embed and look up, prune and score, rank, load, fit the budget, explain.

Every score is exact. In a scope of up to `EXACT_UP_TO` chunks no row is missed that could be among the best: a smaller
`top` gives a prefix of a larger one, and a filter never hides a match. In a larger scope misses are rare
(`kb.search.pruning`; measured in docs/decisions/010). In hybrid mode a document's best passage counts in full and its
others less, so that one document does not crowd out the rest. What is shown as the score says how sure the search is
(`kb.search.calibration`). Of passages with the same text only the best is a result (`kb.search.hits`).
"""

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kb.core.errors import KBError, Unavailable, is_damage
from kb.core.metadata import remark
from kb.core.searches import Facets, Hit, SearchRequest
from kb.core.wire import wire
from kb.embedding.description import FusionConstants
from kb.embedding.embedder import Embedder
from kb.embedding.runtimes import Finish
from kb.embedding.static import StaticEmbedder
from kb.embedding.tokenizer import Tokens
from kb.index.chunk_index import ChunkIndex, Snapshot
from kb.index.kernels import Rows
from kb.index.sign_bits import ParallelScan
from kb.index.terms import Asked, query_terms
from kb.search.calibration import calibrated, doubt
from kb.search.explain import Explained
from kb.search.facets import FacetIndex
from kb.search.filter_scope import Scope, Scopes
from kb.search.fusion import Fusion, static_weight, trusted, words_trusted
from kb.search.hits import Copies, Passages
from kb.search.keyword import KeywordIndex, Keywords
from kb.search.notice import corrections, notice_for
from kb.search.pruning import Legs, first_of, prune
from kb.search.ranking import Scored
from kb.search.static_leg import Static
from kb.search.vector import Dense
from kb.store.backend import Database

log = logging.getLogger(__name__)

ONLY_MEANING = (
    "The full-text index is damaged: this answer is by meaning only, not by words. Mend it with `kb doctor --fix`."
)
NO_VECTORS = "{n} passages have no vector and are found by their words only. Mend them with `kb doctor --fix`."
FROM_MEMORY = "The database cannot be reached: this answer is as of {moment}. What changed later is not in it."
HARDLY = 0.5  # trust in the keyword leg below which the question seems to be in another language
ACROSS_LANGUAGES = (
    "Hardly a word of the question occurs here: the passages were found by their meaning across languages, whose "
    "scores say little."
)
ATTEMPTS = 3  # for an answer without a passage that was replaced meanwhile
DEEPER = 4  # times as many rows are ranked if too many of them were copies


@dataclass(frozen=True, slots=True)
class Ranking:
    """The best rows, best first and at least as many as asked for if there are, and the legs that scored them."""

    rows: Rows
    scores: NDArray[np.float32]
    legs: Legs
    best: float  # the best score, also if min_score leaves out all rows
    complete: bool  # no further row matches


class Words(NamedTuple):
    """What is known without the question's vector."""

    scope: Scope
    keywords: Keywords | None = None
    damaged: bool = False  # the full-text index could not be read


@dataclass(frozen=True, slots=True)
class Found:
    hits: list[Hit]
    notice: str | None
    facets: Facets | None = None


@dataclass
class Question:
    """A question, with what both legs need of it.

    Every part is computed once, when it is first needed: keyword mode needs no tokens, and thus no model.
    """

    text: str
    _embedder: Embedder

    @cached_property
    def terms(self) -> dict[str, Asked]:
        return query_terms(self.text)

    @cached_property
    def tokens(self) -> Tokens:
        return self._embedder.tokenizer.encode(self.text)

    @cached_property
    def trust(self) -> float:
        letters = self._embedder.tokenizer.letters_per_token(self.text, self.tokens)
        return trusted(letters, self._embedder.description.fusion)


class Inquiry(NamedTuple):
    """A question that is being embedded with the model of the index as it was then."""

    in_use: str
    embedder: Embedder
    question: Question
    finish: Finish | None  # None where only words count


class Searcher:
    def __init__(
        self,
        database: Database,
        live: ChunkIndex,
        keywords: KeywordIndex,
        embedder: Embedder,
        choose: Callable[[Legs, int], Scored] = prune,
        static: StaticEmbedder | None = None,
    ) -> None:
        """`choose` scores at least the rows that can be among the best."""
        self._database = database
        self._live = live
        self._keywords = keywords
        self._embedder = embedder
        self._choose = choose
        self.static = static
        self._scan = ParallelScan()
        self._scopes = Scopes(database)
        self._passages = Passages(database)
        self._facets = FacetIndex(database)

    def search(self, request: SearchRequest) -> Found:
        for _ in range(ATTEMPTS):
            self._live.check()
            asked = self._asked(request)
            if (moment := self._database.catch_up()) is not None:
                return self._from_memory(request, asked, moment)
            try:
                found, vanished = self._search(request, asked)
            except Unavailable:
                if (moment := self._database.catch_up()) is None:
                    raise
                return self._from_memory(request, self._asked(request), moment)
            if not vanished:
                break
            self._database.settle()
        return found

    def _asked(self, request: SearchRequest) -> Inquiry:
        """Embed in other threads while the words are looked up: it takes the longer of both, not the sum."""
        in_use, embedder = self._model_in_use()
        question = Question(request.query, embedder)
        finish = None if request.mode == "fts" else embedder.begin_query(question.text, question.tokens)
        return Inquiry(in_use, embedder, question, finish)

    def _from_memory(self, request: SearchRequest, asked: Inquiry, moment: str) -> Found:
        """The answer while the primary is away: the texts come from any server that still has them."""
        with self._database.reading_anywhere():
            found, _ = self._search(request, asked)
        return replace(found, notice=" ".join(filter(None, (FROM_MEMORY.format(moment=moment), found.notice))))

    def _search(self, request: SearchRequest, asked: Inquiry) -> tuple[Found, bool]:
        """The answer, and whether it lacks a passage that was replaced meanwhile."""
        # The count of changes is taken before anything is read from the database.
        snapshot, changes = self._live.snapshot(), self._database.changes
        if snapshot.model != asked.in_use:  # another model took over meanwhile
            return self._search(request, self._asked(request))
        question, model = asked.question, asked.embedder.description
        words = self._words(request, question, snapshot, changes)
        fusion = self._fusion(request, question, words, model.fusion)
        dense = Dense(words.scope, asked.finish(), self._scan.distances) if asked.finish else None
        static = None
        if fusion.static and self.static is not None:
            static = Static(words.scope, self.static.embed_query(question.text))
        legs = Legs(words.scope, words.keywords, dense, fusion, model.score, static)
        found, vanished = self._attempt(request, question, legs, changes)
        if request.facets:
            found = replace(found, facets=self._count(request, question, words, changes))
        if words.damaged:
            found = replace(found, notice=ONLY_MEANING)
        elif dense and self._live.without_vector:
            found = replace(found, notice=NO_VECTORS.format(n=self._live.without_vector))
        return found, vanished

    def _model_in_use(self) -> tuple[str, Embedder]:
        """The model of the index as it is now, and its embedder."""
        while True:
            model = self._live.model
            if (embedder := self._embedder.of(model)) is not None:
                return model, embedder

    def _fusion(self, request: SearchRequest, question: Question, words: Words, constants: FusionConstants) -> Fusion:
        """How far each leg is trusted with this question."""
        if request.mode == "fts" or words.damaged:
            return Fusion(constants, 1.0)
        if self.static is None or not self.static.is_installed:
            return Fusion(constants, question.trust if request.mode == "hybrid" else 1.0)
        if words.keywords is None:
            return Fusion(constants, question.trust, static=1 - question.trust)
        by_words = words_trusted(words.keywords.known, question.trust, constants)
        return Fusion(constants, question.trust, by_words, static_weight(question.trust, by_words, constants))

    def _count(self, request: SearchRequest, question: Question, words: Words, changes: int) -> Facets | None:
        """Count the documents that hold a word of the question; by words in mode `vector` too."""
        if request.mode == "vector":
            words = self._words(replace(request, mode="hybrid"), question, words.scope.snapshot, changes)
        if words.keywords is None:
            return None
        return self._facets.of(words.scope.snapshot.document_ids.take(words.keywords.doc_ords))

    def _words(self, request: SearchRequest, question: Question, snapshot: Snapshot, changes: int) -> Words:
        scope = self._scopes.of(snapshot, request.filter, changes)
        if request.mode == "vector":
            return Words(scope)
        try:
            with self._database.read() as tx:
                return Words(scope, self._keywords.search(tx, scope, question.terms, first_of(request.top)))
        except KBError as error:
            if request.mode == "fts" or not is_damage(error):
                raise
            log.error("the words of a search cannot be looked up: %s", error.message)
            return Words(scope, damaged=True)

    def _attempt(self, request: SearchRequest, question: Question, legs: Legs, changes: int) -> tuple[Found, bool]:
        """The answer at one moment, and whether it lacks a passage that was replaced meanwhile."""
        depth = request.top
        while True:
            ranking = self._rank(legs, request, depth)
            hits, vanished = self._load(request, ranking, changes)
            if len(hits) == request.top or vanished or ranking.complete:
                break
            depth *= DEEPER
            if legs.keywords is not None:
                legs.keywords.look_for(first_of(depth))
        if hits:
            doubts = doubt(ranking.best, legs.score)
            if doubts and legs.static is not None and legs.fusion.words < HARDLY:
                doubts = f"{doubts} {ACROSS_LANGUAGES}"
            notice = " ".join(filter(None, (corrections(legs.keywords, hits), doubts)))
            return Found(self._fit(hits, request.max_tokens), notice or None), vanished
        with self._database.read() as tx:
            return Found([], notice_for(tx, request, list(question.terms), ranking)), vanished

    def _rank(self, legs: Legs, request: SearchRequest, depth: int) -> Ranking:
        found = calibrated(legs.top_k(self._choose(legs, depth), depth), legs)
        best = float(found.scores[0]) if len(found.scores) else 0.0
        if request.min_score > 0:
            found = found.where(found.scores >= request.min_score)
        return Ranking(found.rows, found.scores, legs, best, complete=len(found.rows) < depth)

    def _load(self, request: SearchRequest, ranking: Ranking, changes: int) -> tuple[list[Hit], bool]:
        """The best passages that still exist, each text once, and whether any had vanished."""
        explained = Explained(ranking.legs) if request.explain else None
        hits: list[Hit] = []
        copies = Copies(self._database, ranking.legs.scope)
        vanished = False
        at = 0
        while len(hits) < request.top and at < len(ranking.rows):
            some = slice(at, at + request.top - len(hits))
            rows, scores = ranking.rows[some], ranking.scores[some].tolist()
            ids = ranking.legs.scope.snapshot.chunk_ids.take(rows).tolist()
            wanted = [id_ for id_ in ids if not copies.left_out(id_)]
            found = self._passages.of(wanted, changes)
            vanished = vanished or len(found) < len(wanted)
            copies.look_up(found.values())
            for id_, score, row in zip(ids, scores, rows.tolist(), strict=True):
                if id_ in found and not copies.left_out(id_):
                    copies.take(id_, found[id_])
                    hits.append(found[id_].scored(score, explained.of(row, score) if explained else None))
            at = some.stop
        return copies.named(hits, self._passages, changes), vanished

    def _fit(self, hits: Sequence[Hit], max_tokens: int | None) -> list[Hit]:
        """As many whole passages, with the names of their copies, as the budget holds.

        When even the first does not fit, its copies are counted instead of named, and its text is cut.
        """
        if max_tokens is None:
            return list(hits)
        fitting: list[Hit] = []
        left = max_tokens
        for hit in hits:
            tokens = self._embedder.tokenizer.count(hit.text) + self._tokens_of_rest(hit)
            if tokens > left:
                return fitting or [self._cut(hit, max_tokens)]
            fitting.append(hit)
            left -= tokens
        return fitting

    def _tokens_of_rest(self, hit: Hit) -> int:
        """Tokens of the names of its copies and of its metadata."""
        rest = [*([wire(hit.also_in)] if hit.also_in else []), *([hit.metadata] if hit.metadata else [])]
        return sum(self._embedder.tokenizer.count(json.dumps(one, ensure_ascii=False)) for one in rest)

    def _cut(self, hit: Hit, max_tokens: int) -> Hit:
        if hit.also_in:
            hit = replace(hit, also_in=None, also_in_more=len(hit.also_in) + (hit.also_in_more or 0))
        offsets = self._embedder.tokenizer.offsets(hit.text)
        if hit.metadata and len(offsets) + self._tokens_of_rest(hit) > max_tokens:
            hit = replace(hit, metadata=remark(list(hit.metadata)))
        if len(offsets) <= max_tokens:
            return hit
        return replace(hit, text=hit.text[: int(offsets[max_tokens - 1][1])], truncated=True)
