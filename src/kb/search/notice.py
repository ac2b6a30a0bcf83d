"""Why a search found nothing, in one or two sentences."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kb.core.values import SearchRequest
from kb.store import documents, jobs
from kb.store.backend import Transaction

if TYPE_CHECKING:
    from kb.search.searcher import Ranking


def notice_for(tx: Transaction, request: SearchRequest, terms: Sequence[str], ranking: "Ranking") -> str:
    if ranking.legs.scope.snapshot.count == 0 and documents.any_published(tx):
        return "No document has any passages: the index is being mended. If that does not end, use `kb doctor --fix`."
    return " ".join(part for part in (reason(request, terms, ranking), unfinished(tx)) if part)


def reason(request: SearchRequest, terms: Sequence[str], ranking: "Ranking") -> str:
    scope, keywords = ranking.legs.scope, ranking.legs.keywords
    only_words = request.mode == "fts"
    if scope.snapshot.count == 0:
        return "The knowledge base is empty: add something first (kb add, kb addnote)."
    if only_words and keywords is not None and not keywords.terms:
        if not terms:
            return "The query holds no word or number to look for."
        return f"No term of the query is known here ({', '.join(terms[:8])}). Try mode 'hybrid' or other words."
    unfiltered = keywords.anywhere if only_words and keywords is not None else scope.snapshot.count
    if scope.matching == 0:
        return f"The filter matches no document; without it there are {unfiltered} matches."
    if ranking.legs.matches:
        return (
            f"All {ranking.legs.matches} matches scored below min_score {request.min_score:g}; the best was "
            f"{ranking.best:.3f}."
        )
    return f"The filter removed all {unfiltered} matches."


def unfinished(tx: Transaction) -> str:
    waiting = jobs.documents_waiting(tx)
    if not waiting:
        return ""
    return f"{waiting} {'document is' if waiting == 1 else 'documents are'} still being indexed."
