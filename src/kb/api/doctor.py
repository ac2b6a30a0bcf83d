"""What is wrong, and mending it."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from kb.api.dependencies import EngineOf, errors
from kb.api.responses import Answer
from kb.api.schemas import DoctorQuery
from kb.core.values import Diagnosis

router = APIRouter(prefix="/doctor", tags=["state"])


@router.get("", response_model=Diagnosis, responses=errors())
def doctor(engine: EngineOf, query: Annotated[DoctorQuery, Query()]) -> Response:
    """Look whether everything that belongs together is together; mend what can be mended when asked to."""
    return Answer(engine.examine(fix=query.fix))
