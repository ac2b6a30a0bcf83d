"""Tickets: addresses that open one answer, once and soon, without the key.

A browser downloads a large file to the disk only if it opens the address itself, and then it cannot send the key.
"""

import hmac
import re
import secrets
import time
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import NamedTuple
from urllib.parse import unquote

from fastapi import APIRouter, Request, Response
from starlette.routing import BaseRoute, Match
from starlette.types import Scope

from kb.api.dependencies import Answer, errors
from kb.api.schemas import TicketBody
from kb.core.errors import InvalidRequest, Unauthorized, Unavailable
from kb.core.times import stamp
from kb.core.values import Ticket

router = APIRouter(prefix="/tickets", tags=["state"])

SECONDS = 60
MOST = 1000  # that are not used yet
OWN = re.compile(r"/api/v1/[!-~]+", re.ASCII)  # a path that a browser sends unchanged
PARAMETER = b"ticket="


@router.post("", response_model=Ticket, responses=errors())
async def issue_ticket(request: Request, body: TicketBody) -> Response:
    """An address that opens `path` once within 60 seconds, by GET and without the key; for downloads in a browser."""
    target = own_target(body.path, request.app.routes)
    return Answer(request.app.state.tickets.issue(target), headers={"Cache-Control": "no-store"})


class Issued(NamedTuple):
    target: bytes  # path and query string
    until: float  # on the monotonic clock


class Tickets:
    """Used from the event loop only, so it needs no lock. Of a ticket only the hash is kept."""

    def __init__(self) -> None:
        self._live: dict[bytes, Issued] = {}

    def issue(self, target: str) -> Ticket:
        now = time.monotonic()
        self._live = {key: issued for key, issued in self._live.items() if issued.until > now}
        if len(self._live) >= MOST:
            raise Unavailable(f"{MOST} tickets wait to be used already. Try again in a minute.")
        secret = secrets.token_urlsafe(32)
        self._live[sha256(secret.encode()).digest()] = Issued(target.encode(), now + SECONDS)
        url = f"{target}{'&' if '?' in target else '?'}{PARAMETER.decode()}{secret}"
        return Ticket(url, stamp(datetime.now(UTC) + timedelta(seconds=SECONDS)))

    def opens(self, scope: Scope) -> bool:
        """Whether a GET request came with a ticket, which is used up by it. The routes do not see the ticket."""
        if not OWN.match(scope["path"]):
            return False
        query, named, secret = scope["query_string"].rpartition(PARAMETER)
        if not named or (query and not query.endswith(b"&")):
            return False
        query = query.removesuffix(b"&")
        target = scope["raw_path"] + (b"?" + query if query else b"")
        key = sha256(secret).digest()
        issued = self._live.get(key)
        if issued is None or issued.until <= time.monotonic() or not hmac.compare_digest(issued.target, target):
            raise Unauthorized(
                "This address was used already, or its time is over. Ask for another one with POST /api/v1/tickets."
            )
        del self._live[key]
        scope["query_string"] = query
        return True


def own_target(path: str, routes: list[BaseRoute]) -> str:
    """The path, if it is one of a GET route; anything else is refused."""
    base, _, query = path.partition("?")
    decoded = unquote(base)
    scope = {"type": "http", "method": "GET", "path": decoded, "root_path": "", "headers": []}
    is_plain = OWN.fullmatch(path) and not set('#\\"<>^`{|}') & set(path)
    if not is_plain or not {".", ".."}.isdisjoint(decoded.split("/")):
        raise InvalidRequest(
            "`path` must be a path of this engine as a browser sends it, percent-encoded, like "
            "/api/v1/documents/7/original."
        )
    if not any(route.matches(scope)[0] is Match.FULL for route in routes):
        raise InvalidRequest("`path` is not the path of a GET route under /api/v1. The routes are listed at /docs.")
    query = query.strip("&")
    return f"{base}?{query}" if query else base
