"""What is wrong, and mending it."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from kb.api.answers import Answer
from kb.api.bodies import DoctorQuery
from kb.api.routing import EngineOf, errors
from kb.nouns import Diagnosis

router = APIRouter(prefix="/doctor", tags=["state"])


@router.get("", response_model=Diagnosis, responses=errors())
def doctor(engine: EngineOf, query: Annotated[DoctorQuery, Query()]) -> Response:
    """Look whether everything that belongs together is together; mend what can be mended when asked to."""
    return Answer(engine.examine(fix=query.fix))
