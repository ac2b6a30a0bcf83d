"""How a value becomes an answer."""

from typing import Any

from pydantic_core import to_json
from starlette.responses import JSONResponse

from kb.core.wire import wire


class Answer(JSONResponse):
    """A value of `core.values` as JSON."""

    def render(self, content: Any) -> bytes:
        return to_json(wire(content))
