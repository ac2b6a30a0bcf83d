"""How the engine is doing."""

from fastapi import APIRouter, Response

from kb.api.answers import Answer
from kb.api.routing import EngineOf, errors
from kb.nouns import Status

router = APIRouter(tags=["state"])


@router.get("/status", response_model=Status, responses=errors())
def status(engine: EngineOf) -> Response:
    """Version, model, counts, queue, storage, limits and health."""
    return Answer(engine.status())
