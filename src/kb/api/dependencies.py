"""What every file of routes needs: the engine, how a value becomes an answer, and the descriptions of errors."""

from typing import Annotated, Any

from fastapi import Depends, Path, Request, Security
from fastapi.security import HTTPBearer
from pydantic_core import to_json
from starlette.responses import JSONResponse

from kb.core.errors import every_error
from kb.core.wire import wire
from kb.engine.engine import Engine


class Answer(JSONResponse):
    """A value of `core.values` as JSON."""

    def render(self, content: Any) -> bytes:
        return to_json(wire(content))


async def the_engine(request: Request) -> Engine:
    engine: Engine = request.app.state.engine
    return engine


EngineOf = Annotated[Engine, Depends(the_engine)]
# For the OpenAPI document only: the guard has checked the key before any route is reached.
KEY = Security(HTTPBearer(auto_error=False, scheme_name="key", description="Needed when `KB_API_KEY` is set."))
Ref = Annotated[str, Path(description="Integer id or uid of a document.", max_length=200)]


ERROR_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message", "retryable", "details"],
            "properties": {
                "code": {"type": "string", "enum": [cls.code for cls in every_error()]},
                "message": {"type": "string"},
                "retryable": {"type": "boolean"},
                "details": {"type": "object"},
            },
        }
    },
}


def errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The error answers of a route, for the OpenAPI document."""
    always = (401, 403, 409, 413, 422, 500, 503, 507)  # 409: what is stored is damaged
    return {
        status: {
            "description": ", ".join(dict.fromkeys(cls.code for cls in every_error() if cls.http_status == status)),
            "content": {"application/json": {"schema": ERROR_SCHEMA}},
        }
        for status in sorted({*always, *statuses})
    }
