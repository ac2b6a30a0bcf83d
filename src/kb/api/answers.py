"""How a value becomes an answer."""

import json
from typing import Any

from starlette.responses import JSONResponse, Response

from kb.errors import KBError
from kb.nouns import wire


class Answer(JSONResponse):
    """A noun as JSON."""

    def render(self, content: Any) -> bytes:
        return json.dumps(wire(content), ensure_ascii=False, separators=(",", ":")).encode()


def error_answer(error: KBError) -> Response:
    headers = {"WWW-Authenticate": "Bearer"} if error.http_status == 401 else None
    return Answer(error.body(), status_code=error.http_status, headers=headers)
