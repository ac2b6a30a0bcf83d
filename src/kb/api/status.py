"""How the engine is doing."""

from fastapi import APIRouter, Response

from kb.api.dependencies import Answer, EngineOf, errors
from kb.core.status import Status

router = APIRouter(tags=["state"])


@router.get("/status", response_model=Status, responses=errors())
def status(engine: EngineOf) -> Response:
    """Version, model, counts, queue, storage, limits and health."""
    return Answer(engine.monitor.status())
