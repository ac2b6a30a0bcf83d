"""One stream of events about all jobs and documents."""

import json
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Header, Request, Response
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from kb.api.dependencies import EngineOf, errors
from kb.api.follow import KEEP_ALIVE, Bell, EventStream
from kb.api.limits import Slots
from kb.engine.feed import Event, Feed

router = APIRouter(tags=["state"])

LastEvent = Annotated[str | None, Header(description="Id of the last event seen, from before a broken connection.")]


@router.get(
    "/events",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}, **errors()},
)
async def events(engine: EngineOf, request: Request, last_event_id: LastEvent = None) -> Response:
    """Server-sent events about all jobs and documents: `job` and `document`, each with `{"id", "action"}` as its data.

    Actions of a job: `queued`, `running`, `progress` (at most one a second), `cancelling`, `completed`, `failed`,
    `cancelled`. Actions of a document: `added`, `updated`, `tags`, `deleted`. The event `reset` says that events were
    missed, or that everything changed: load again what is shown.
    """
    return ChangeStream(request.app.state.streams, engine.feed, last_event_id)


class ChangeStream(EventStream):
    """Follows the feed from before the first byte: a client that sees the answer begin misses no later event."""

    def __init__(self, slots: Slots, feed: Feed, since: str | None) -> None:
        self._feed = feed
        self._happened = Bell()
        self._following = feed.follow(self._happened, since)
        super().__init__(slots, self._lines())

    async def stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._following as self._follower:
            await super().stream(scope, receive, send)

    async def _lines(self) -> AsyncIterator[str]:
        yield ": connected\n\n"
        while not self._feed.closed:
            self._happened.clear()
            for event in self._follower.take():
                yield as_text(event)
            if not await self._happened.rang():
                yield KEEP_ALIVE


def as_text(event: Event) -> str:
    id_, change = event
    return f"id: {id_}\nevent: {change.kind}\ndata: {json.dumps({'id': change.id, 'action': change.action})}\n\n"
