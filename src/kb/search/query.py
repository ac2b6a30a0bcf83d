"""What a question means: its vector, and how far that is to be trusted."""

from dataclasses import dataclass

from kb.embed import Embedder
from kb.nouns import SearchRequest
from kb.search import fuse
from kb.store.backend import Vector


@dataclass(frozen=True, slots=True)
class Query:
    request: SearchRequest
    vector: Vector | None  # None in fts mode
    trust: float  # in what the vector says


def parse(request: SearchRequest, embedder: Embedder) -> Query:
    return Query(
        request,
        None if request.mode == "fts" else embedder.embed_query(request.query),
        fuse.trust(embedder.tokenizer.letters_per_token(request.query)) if request.mode == "hybrid" else 1.0,
    )
