"""What should never happen still has the one error shape, and its insides stay inside."""

import asyncio
import json
from typing import Any, cast

import pytest

from kb.api.app import create_app
from kb.engine import Engine
from kb.settings import Settings


class BrokenEngine:
    def tags(self) -> None:
        raise ZeroDivisionError("a secret detail")


def test_an_unexpected_failure_has_the_one_error_shape(settings: Settings) -> None:
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "GET",
        "path": "/api/v1/tags",
        "query_string": b"",
        "headers": [(b"host", b"localhost")],
    }
    app = create_app(cast(Engine, BrokenEngine()), settings)
    with pytest.raises(ZeroDivisionError):
        asyncio.run(cast(Any, app(scope, receive, send)))
    start, body = sent
    assert start["status"] == 500
    assert dict(start["headers"])[b"x-kb-version"]
    error = json.loads(body["body"])["error"]
    assert (error["code"], error["retryable"], error["details"]) == ("internal", False, {})
    assert "secret" not in error["message"]
