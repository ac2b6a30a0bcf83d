"""Why a search came back empty: one sentence or two, never silence."""

from typing import TYPE_CHECKING

from kb.search.query import Query
from kb.store import jobs
from kb.store.backend import Transaction

if TYPE_CHECKING:
    from kb.search.hybrid import Ranking


def notice_for(tx: Transaction, query: Query, ranking: "Ranking", chunk_count: int) -> str:
    return " ".join(part for part in (reason(query, ranking, chunk_count), unfinished(tx)) if part)


def reason(query: Query, ranking: "Ranking", chunk_count: int) -> str:
    if chunk_count == 0:
        return "The knowledge base is empty: add something first (kb add, kb addnote)."
    if query.request.mode == "fts" and not query.terms:
        return "The query holds no word or number to look for."
    if ranking.keywords is not None and query.request.mode == "fts" and not ranking.keywords.known_terms:
        return f"No term of the query is known here ({', '.join(query.terms[:8])}). Try mode 'hybrid' or other words."
    if ranking.within == 0:
        return f"The filter matches no document; without it there are {ranking.unfiltered} matches."
    if ranking.below:
        return (
            f"All {ranking.below} matches scored below min_score {query.request.min_score:g}; the best was "
            f"{ranking.best:.3f}."
        )
    return f"The filter removed all {ranking.unfiltered} matches."


def unfinished(tx: Transaction) -> str:
    waiting = jobs.documents_waiting(tx)
    if not waiting:
        return ""
    return f"{waiting} {'document is' if waiting == 1 else 'documents are'} still being indexed."
