"""What should never happen still has the one error shape, and its insides stay inside."""

import asyncio
import json
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kb.api.app import create_app
from kb.core.searches import SearchAnswer, SearchRequest
from kb.core.settings import Settings
from kb.engine.engine import Engine
from kb.http.logs import request_id

SEARCH = {"type": "http.request", "body": b'{"query": "x"}', "more_body": False}


class ServingEngine:
    """What every answer asks of an engine: which one it is, and whether it stops."""

    id = ""
    presence = SimpleNamespace(draining=False)


class BrokenEngine(ServingEngine):
    def tags(self) -> None:
        raise ZeroDivisionError("a secret detail")

    def search(self, request: SearchRequest) -> None:
        raise ZeroDivisionError("a secret detail")


class ListeningEngine(ServingEngine):
    """Remembers for which request it was asked to search."""

    def __init__(self) -> None:
        self.asked_by: list[str] = []

    def search(self, request: SearchRequest) -> SearchAnswer:
        self.asked_by.append(request_id.get())
        return SearchAnswer(request.query, request.mode, [], 0, 0.0)


class Asked:
    """One request to an application without a server, and what came back."""

    def __init__(self, engine: object, settings: Settings, method: str, path: str, *messages: Any) -> None:
        self.sent: list[dict[str, Any]] = []
        self._messages = iter(messages)
        self._app = create_app(cast(Engine, engine), settings)
        self._scope = {
            "type": "http",
            "method": method,
            "path": path,
            "query_string": b"",
            "headers": [(b"host", b"localhost"), (b"content-type", b"application/json"), (b"x-request-id", b"mine")],
        }

    def run(self) -> None:
        asyncio.run(cast(Any, self._app(self._scope, self._receive, self._send)))

    async def _receive(self) -> Any:
        return next(self._messages, {"type": "http.disconnect"})

    async def _send(self, message: Any) -> None:
        self.sent.append(message)

    @property
    def status(self) -> int:
        return int(self.sent[0]["status"])

    @property
    def headers(self) -> dict[bytes, bytes]:
        return dict(self.sent[0]["headers"])

    @property
    def error(self) -> Any:
        return json.loads(self.sent[1]["body"])["error"]


@pytest.mark.parametrize(("method", "path"), [("GET", "/api/v1/tags"), ("POST", "/api/v1/search")])
def test_an_unexpected_failure_has_the_one_error_shape(settings: Settings, method: str, path: str) -> None:
    asked = Asked(BrokenEngine(), settings, method, path, SEARCH)
    with pytest.raises(ZeroDivisionError):  # for the server's log
        asked.run()
    assert asked.status == 500
    assert asked.headers[b"x-kb-version"]
    error = asked.error
    assert (error["code"], error["retryable"], error["details"]) == ("internal", False, {})
    assert "secret" not in error["message"]


def test_a_search_knows_its_request(settings: Settings) -> None:
    engine = ListeningEngine()
    asked = Asked(engine, settings, "POST", "/api/v1/search", SEARCH)
    asked.run()
    assert (asked.status, asked.headers[b"x-request-id"]) == (200, b"mine")
    assert engine.asked_by == ["mine"]


def test_who_hangs_up_in_the_middle_of_a_question_causes_no_failure(settings: Settings) -> None:
    engine = ListeningEngine()
    asked = Asked(engine, settings, "POST", "/api/v1/search", SEARCH | {"more_body": True})
    asked.run()
    assert (asked.status, engine.asked_by) == (422, [])
