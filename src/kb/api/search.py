"""POST /search."""

from fastapi import APIRouter, Response

from kb.api.answers import Answer
from kb.api.bodies import SearchBody
from kb.api.routing import EngineOf, errors
from kb.nouns import SearchAnswer

router = APIRouter(tags=["search"])


@router.post("/search", response_model=SearchAnswer, responses=errors())
def search(engine: EngineOf, body: SearchBody) -> Response:
    """Find passages by meaning and by keywords. An empty answer says why in `notice`."""
    return Answer(engine.search(body.request()))
