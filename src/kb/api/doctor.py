"""Routes of the doctor: examine, and mend."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from kb.api.dependencies import Answer, EngineOf, errors
from kb.api.schemas import DoctorQuery
from kb.core.errors import MethodNotAllowed
from kb.core.status import Diagnosis

router = APIRouter(prefix="/doctor", tags=["state"])


@router.get("", response_model=Diagnosis, responses=errors(405))
def examine(engine: EngineOf, query: Annotated[DoctorQuery, Query()]) -> Response:
    """Look whether everything that belongs together is together. Nothing is changed."""
    if query.fix:
        raise MethodNotAllowed("GET only looks, and nothing was mended. To mend, send POST to /api/v1/doctor.")
    return Answer(engine.doctor.examine())


@router.post("", response_model=Diagnosis, responses=errors())
def mend(engine: EngineOf) -> Response:
    """Look, and mend what can be mended. No document is ever deleted."""
    return Answer(engine.doctor.examine(fix=True))
