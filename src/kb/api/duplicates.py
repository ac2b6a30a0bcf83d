"""Notes that say nearly the same."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from kb.api.dependencies import Answer, EngineOf, errors
from kb.api.schemas import DuplicatesQuery
from kb.core.values import DuplicateList

router = APIRouter(prefix="/duplicates", tags=["notes"])


@router.get("", response_model=DuplicateList, responses=errors())
def list_duplicates(engine: EngineOf, query: Annotated[DuplicatesQuery, Query()]) -> Response:
    """Pairs of notes that say nearly the same, the most similar first; the same text is 1."""
    return Answer(engine.duplicates(query.min_similarity, query.limit))
