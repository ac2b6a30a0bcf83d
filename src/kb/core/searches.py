"""What a search or a list asks for, and what a search answers."""

from dataclasses import dataclass
from typing import Literal

from kb.core.types import Json
from kb.core.values import Anchor, DocType, LedgerState
from kb.core.wire import absent

Mode = Literal["hybrid", "fts", "vector"]
Sort = Literal["recent", "created", "filename", "size"]
Order = Literal["asc", "desc"]


@dataclass(frozen=True, slots=True)
class Filter:
    """Which documents a search may answer from; None means any."""

    tags: tuple[str, ...] = ()  # all must match
    doc_type: DocType | None = None
    source_path: str | None = None  # one that ends with "/" is a folder: everything below it
    media_type: str | None = None
    created_after: str | None = None  # inclusive
    created_before: str | None = None  # exclusive
    parent: int | None = None  # what was found in this document


EVERYTHING = Filter()


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Which documents a list shows, and in which order."""

    filter: Filter = EVERYTHING
    words: str = ""  # each of them begins a word of the title or of the file name
    state: LedgerState | None = None  # some part of the document is in this state
    sort: Sort = "recent"
    order: Order | None = None  # None: the natural one of `sort`
    limit: int = 100
    offset: int = 0


@dataclass(frozen=True, slots=True)
class SearchRequest:
    query: str
    top: int = 10
    mode: Mode = "hybrid"
    filter: Filter = EVERYTHING
    min_score: float = 0.0
    max_tokens: int | None = None  # budget for the returned text
    explain: bool = False
    facets: bool = False


@dataclass(frozen=True, slots=True)
class LegExplanation:
    """One leg's view of a hit."""

    rank: int  # 1 is the leg's best; 0 when the leg did not find it
    score: float  # raw: BM25 or cosine
    share: float  # what it adds to the hit's score; the shares of both legs add up to it


@dataclass(frozen=True, slots=True)
class Explanation:
    fts: LegExplanation | None
    vector: LegExplanation | None
    static: LegExplanation | None  # vectors that read many languages; where the other legs cannot be trusted
    matched_terms: list[str]


@dataclass(frozen=True, slots=True)
class Copy:
    """Another passage with the same text as a hit."""

    document_id: int
    chunk_id: int
    title: str
    filename: str | None
    source_path: str | None
    anchor: Anchor


@dataclass(frozen=True)
class Hit:
    chunk_id: int
    document_id: int
    uid: str
    title: str
    filename: str | None
    source_path: str | None
    doc_type: DocType
    media_type: str
    text: str
    score: float  # 0..1, falls with rank
    tags: list[str]
    metadata: Json
    anchor: Anchor
    created_at: str
    updated_at: str | None
    version: int
    parent: int | None = absent()  # the document that this one was found in; `anchor.member` is its path in there
    truncated: bool | None = absent()  # true when max_tokens cut the text
    hidden: bool | None = absent()  # true when some of the text cannot be seen in the original
    also_in: list[Copy] | None = absent()  # where else the same text stands; only the best of them is a result
    also_in_more: int | None = absent()  # how many further copies are not named
    explain: Explanation | None = absent()


@dataclass(frozen=True, slots=True)
class Facets:
    """Documents that hold a word of the question, within the filter, counted."""

    type: dict[str, int]
    tag: dict[str, int]  # the 1,000 most frequent
    month: dict[str, int]  # of `created_at`, as "2026-11"; the newest first


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    query: str
    mode: Mode
    results: list[Hit]
    total: int  # results returned
    took_ms: float
    notice: str | None = absent()  # why there is nothing, or less than expected
    facets: Facets | None = absent()
