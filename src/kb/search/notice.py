"""Why a search found nothing, or what it looked for instead, in one or two sentences."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kb.core.searches import Hit, SearchRequest
from kb.index.terms import word_with
from kb.search.keyword import Keywords
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
        words = ", ".join(word_with(request.query, term) or term for term in terms[:8])
        return f"No term of the query is known here ({words}). Try mode 'hybrid' or other words."
    passages = keywords.anywhere if only_words and keywords is not None else scope.snapshot.count
    if scope.matching == 0:
        which = "that hold a word of the query" if only_words else "that are here"
        return f"The filter matches no document: it leaves out all {passages} passages {which}."
    if ranking.legs.matches:
        return (
            f"All {ranking.legs.matches} matches scored below min_score {request.min_score:g}; the best was "
            f"{ranking.best:.3f}."
        )
    return f"The filter removed all {passages} matches."


def corrections(keywords: Keywords | None, hits: Sequence[Hit]) -> str | None:
    """Which words were taken for misspelt ones. The passages that were found show how the right ones are written."""
    if keywords is None or not keywords.corrected:
        return None
    said = [f"'{spelt(term, hits)}' instead of '{word}'" for word, term in keywords.corrected.items()]
    where = "which occurs nowhere here" if len(said) == 1 else "which occur nowhere here"
    return f"Searched for {' and '.join(said)}, {where}."


def spelt(term: str, hits: Sequence[Hit]) -> str:
    return next((word for hit in hits if (word := word_with(hit.text, term))), term)


def unfinished(tx: Transaction) -> str:
    waiting = jobs.documents_waiting(tx)
    if not waiting:
        return ""
    return f"{waiting} {'document is' if waiting == 1 else 'documents are'} still being indexed."
