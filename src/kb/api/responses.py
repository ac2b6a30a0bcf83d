"""How a value becomes an answer."""

from typing import Any

from pydantic_core import to_json
from starlette.responses import JSONResponse, Response

from kb.core.errors import KBError
from kb.core.wire import wire


class Answer(JSONResponse):
    """A noun as JSON."""

    def render(self, content: Any) -> bytes:
        return to_json(wire(content))


def error_answer(error: KBError) -> Response:
    headers = {"WWW-Authenticate": "Bearer"} if error.http_status == 401 else None
    return Answer(error.body(), status_code=error.http_status, headers=headers)
