"""A question, parsed once: its terms and its vector, as far as the mode needs them."""

from dataclasses import dataclass

from kb import terms
from kb.embed import Embedder
from kb.nouns import SearchRequest
from kb.search import fuse
from kb.store.backend import Vector


@dataclass(frozen=True, slots=True)
class Query:
    request: SearchRequest
    terms: list[str]  # empty in vector mode
    vector: Vector | None  # None in fts mode
    trust: float  # in what the vector says


def parse(request: SearchRequest, embedder: Embedder) -> Query:
    return Query(
        request,
        [] if request.mode == "vector" else terms.query_terms(request.query),
        None if request.mode == "fts" else embedder.embed_query(request.query),
        fuse.trust(embedder.tokenizer.letters_per_token(request.query)) if request.mode == "hybrid" else 1.0,
    )
