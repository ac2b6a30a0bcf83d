"""The story of a search: parse, score every chunk within the filter, rank, load, fit the budget, explain.

Every chunk is scored by both legs, so how deep the answer goes changes nothing: a smaller `top` is a prefix of a
larger one, and a filter never hides a match. In hybrid mode a document's best passage counts in full and its others
less, so that several good passages of one document do not crowd out the rest; the modes of one leg show what that
leg says and nothing else.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kb.embed import Embedder
from kb.nouns import Explanation, Hit, LegExplanation, SearchRequest
from kb.search import fuse, vectors
from kb.search.keywords import KeywordIndex, Keywords, Scope
from kb.search.live import LiveChunks, Snapshot
from kb.search.notice import notice_for
from kb.search.query import Query, parse
from kb.store import chunks, documents
from kb.store.backend import Database, Row, Transaction

ATTEMPTS = 3  # when a passage was replaced while it was being ranked
SPARE = 100  # places ranked beyond `top`, in case some vanish


@dataclass(frozen=True, slots=True)
class Ranking:
    """The places that answer the question, best first, and what each leg says about them."""

    places: NDArray[np.int64]
    scores: NDArray[np.float32]  # by place, not by rank
    keywords: Keywords | None
    cosines: NDArray[np.float32] | None
    below: int  # how many matches min_score left out, when it left out all
    best: float
    within: int | None  # how many documents the filter lets through; None without a filter
    unfiltered: int  # how many matches there were before the filter


@dataclass(frozen=True, slots=True)
class Found:
    hits: list[Hit]
    notice: str | None


class Searcher:
    def __init__(self, database: Database, live: LiveChunks, keywords: KeywordIndex, embedder: Embedder) -> None:
        self._database = database
        self._live = live
        self._keywords = keywords
        self._embedder = embedder

    @property
    def cached_postings(self) -> int:
        return self._keywords.cached_postings

    def search(self, request: SearchRequest) -> Found:
        query = parse(request, self._embedder)
        for _ in range(ATTEMPTS):
            found, vanished = self._attempt(query)
            if not vanished:
                break
            self._database.settle()
        return found

    def _attempt(self, query: Query) -> tuple[Found, bool]:
        """One moment's answer, and whether it had to pass over a passage that was replaced meanwhile."""
        snapshot = self._live.snapshot()
        with self._database.read() as tx:
            ranking = self._rank(tx, snapshot, query)
            hits, vanished = self._load(tx, snapshot, query, ranking)
            notice = None if hits else notice_for(tx, query, ranking, snapshot.count)
        return Found(self._fit(hits, query.request.max_tokens), notice), vanished

    def _rank(self, tx: Transaction, snapshot: Snapshot, query: Query) -> Ranking:
        request = query.request
        matches, within = snapshot.alive, None
        if not request.filter.is_empty:
            allowed = np.asarray(documents.matching(tx, request.filter), np.int64)
            matches = matches & np.isin(snapshot.document_ids, allowed)
            within = len(allowed)
        unfiltered = snapshot.count
        keywords = cosines = None
        if request.mode != "vector":
            keywords = self._keywords.search(tx, snapshot, Scope.of(snapshot, matches), query.terms)
        if query.vector is not None:
            cosines = vectors.cosines(snapshot, query.vector)
        if keywords is None:
            assert cosines is not None
            scores = cosines
        elif cosines is None:
            scores, matches, unfiltered = fuse.sureness(keywords.scores), keywords.scores > 0, keywords.anywhere
        else:
            scores = fuse.fused(keywords.scores, vectors.with_documents(snapshot, cosines), query.trust)
        # Ranked by what the answer shows: below zero is as good as zero, and ties break by id.
        scores = np.clip(scores, 0, 1)
        candidates = np.flatnonzero(matches)
        ranked = (best_mixed if request.mode == "hybrid" else best)(candidates, scores, snapshot, request.top + SPARE)
        places = ranked[scores[ranked] >= request.min_score]
        return Ranking(
            places,
            scores,
            keywords,
            cosines,
            0 if len(places) else len(candidates),
            float(scores[ranked].max(initial=0.0)),
            within,
            unfiltered,
        )

    def _load(self, tx: Transaction, snapshot: Snapshot, query: Query, ranking: Ranking) -> tuple[list[Hit], bool]:
        """The best passages that still exist, and whether any had to be passed over."""
        rows: list[tuple[int, Row]] = []
        vanished = False
        at = 0
        while len(rows) < query.request.top and at < len(ranking.places):
            places = ranking.places[at : at + query.request.top - len(rows)]
            ids = [int(id_) for id_ in snapshot.chunk_ids[places]]
            found = chunks.hits(tx, ids)
            vanished = vanished or len(found) < len(ids)
            rows += [(int(place), found[id_]) for place, id_ in zip(places, ids, strict=True) if id_ in found]
            at += len(places)
        tags = documents.tags_of(tx, [row["id"] for _, row in rows])
        return [self._hit(place, row, tags[row["id"]], query, ranking) for place, row in rows], vanished

    def _hit(self, place: int, row: Row, tags: list[str], query: Query, ranking: Ranking) -> Hit:
        return Hit(
            chunk_id=row["chunk_id"],
            document_id=row["id"],
            uid=row["uid"],
            title=row["title"],
            filename=row["filename"],
            source_path=row["source_path"],
            doc_type=row["doc_type"],
            media_type=row["media_type"],
            text=row["text"],
            score=float(ranking.scores[place]),
            tags=tags,
            metadata=json.loads(row["metadata"]),
            anchor=chunks.anchor_of(row),
            created_at=row["created_at"],
            updated_at=row["updated_at"],
            version=row["version"],
            explain=explained(place, ranking) if query.request.explain else None,
        )

    def _fit(self, hits: Sequence[Hit], max_tokens: int | None) -> list[Hit]:
        """As many whole passages as the budget holds; the first is cut when even it does not fit."""
        if max_tokens is None:
            return list(hits)
        fitting: list[Hit] = []
        left = max_tokens
        for hit in hits:
            offsets = self._embedder.tokenizer.offsets(hit.text)
            if len(offsets) > left:
                if not fitting:
                    fitting.append(replace(hit, text=hit.text[: int(offsets[left - 1][1])], truncated=True))
                break
            fitting.append(hit)
            left -= len(offsets)
        return fitting


def best(places: NDArray[np.int64], scores: NDArray[np.float32], snapshot: Snapshot, count: int) -> NDArray[np.int64]:
    """The best places, best first; ties by chunk id, so that none of them is a matter of luck."""
    if len(places) > count:
        own = scores[places]
        places = places[own >= np.partition(own, len(own) - count)[len(own) - count]]
    ranked: NDArray[np.int64] = places[np.lexsort((snapshot.chunk_ids[places], -scores[places]))]
    return ranked


def best_mixed(
    places: NDArray[np.int64], scores: NDArray[np.float32], snapshot: Snapshot, count: int
) -> NDArray[np.int64]:
    """The same, after the scores of a document's further passages were lowered.

    Lowering never raises anybody, so who is not among the best before it may be left out once enough of those are
    still better afterwards.
    """
    depth = 2 * count
    while True:
        ranked = best(places, scores, snapshot, depth)
        floor = scores[ranked[-1]] if len(ranked) < len(places) else -1.0
        lowered = scores.copy()
        _, firsts = np.unique(snapshot.document_ids[ranked], return_index=True)
        further = np.ones(len(ranked), np.bool_)
        further[firsts] = False
        lowered[ranked[further]] *= np.float32(fuse.SECOND)
        mixed = best(ranked, lowered, snapshot, count)
        if floor < 0 or (len(mixed) >= count and lowered[mixed[count - 1]] > floor):
            scores[ranked] = lowered[ranked]
            return mixed[:count]
        depth *= 4


def explained(place: int, ranking: Ranking) -> Explanation:
    keywords, cosines = ranking.keywords, ranking.cosines
    return Explanation(
        fts=None if keywords is None else leg(place, keywords.scores, found=bool(keywords.scores[place] > 0)),
        vector=None if cosines is None else leg(place, cosines, found=True),
        matched_terms=[] if keywords is None else [t for t, at in keywords.places.items() if bool(np.any(at == place))],
    )


def leg(place: int, scores: NDArray[np.float32], *, found: bool) -> LegExplanation:
    return LegExplanation(int(np.count_nonzero(scores > scores[place])) + 1 if found else 0, float(scores[place]))
