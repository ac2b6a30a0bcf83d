"""Addresses that open one answer, once and soon, without the key."""

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kb.api.tickets import MOST, SECONDS, Tickets
from kb.core.errors import Unauthorized, Unavailable
from support import EngineProcess, Http, Reply

KEY = {"Authorization": "Bearer sesame"}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Any:
    process = EngineProcess(tmp_path_factory.mktemp("tickets") / "data", KB_API_KEY="sesame")
    yield process
    process.stop()


@pytest.fixture
def owner(engine: EngineProcess) -> Http:
    return Http(engine.url, KEY)


@pytest.fixture
def stranger(engine: EngineProcess) -> Http:
    return Http(engine.url)


def ticket(http: Http, path: Any) -> Reply:
    return http("POST", "/api/v1/tickets", {"path": path})


def test_a_ticket_opens_its_path_once_without_the_key(owner: Http, stranger: Http) -> None:
    id_ = owner.add_file("bilby.txt", b"what a bilby digs").json["document_id"]
    path = f"/api/v1/documents/{id_}/original"
    assert stranger("GET", path).status == 401
    issued = ticket(owner, path)
    assert (issued.status, set(issued.json), issued.headers["cache-control"]) == (
        200,
        {"url", "expires_at"},
        "no-store",
    )
    left = datetime.fromisoformat(issued.json["expires_at"]) - datetime.now(UTC)
    assert 50 < left.total_seconds() <= 60
    opened = stranger("GET", issued.json["url"])
    assert (opened.status, opened.body) == (200, b"what a bilby digs")
    again = stranger("GET", issued.json["url"])
    assert (again.status, again.json["error"]["code"]) == (401, "unauthorized")


@pytest.mark.parametrize(
    "path", ["/api/v1/documents?limit=1&tag=%C3%BC&tag=a%20b", "/api/v1/backup", "/api/v1/status?"]
)
def test_any_get_route_with_its_query_string_can_be_opened(owner: Http, stranger: Http, path: str) -> None:
    reply = stranger("GET", ticket(owner, path).json["url"])
    assert reply.status == 200, reply.body


def test_a_ticket_opens_nothing_else(owner: Http, stranger: Http) -> None:
    url = ticket(owner, "/api/v1/documents?limit=1").json["url"]
    secret = url.partition("ticket=")[2]
    for other in (
        f"/api/v1/documents?limit=2&ticket={secret}",
        f"/api/v1/documents?ticket={secret}",
        f"/api/v1/documents?ticket={secret}&limit=1",
        f"/api/v1/status?ticket={secret}",
        f"/metrics?ticket={secret}",
        f"/openapi.json?ticket={secret}",
        f"/api/v1/documents?limit=1&ticket={secret[:-1]}",
        "/api/v1/documents?limit=1&ticket=",
    ):
        assert stranger("GET", other).status == 401, other
    for method in ("HEAD", "POST", "DELETE", "PATCH", "OPTIONS"):
        assert stranger(method, url).status == 401
    assert stranger("GET", url, Origin="http://evil.example").status == 403
    assert stranger("GET", url, Host="evil.example").status == 403
    assert stranger("GET", url, Sec_Fetch_Site="cross-site").status == 403
    assert stranger("GET", url, Sec_Fetch_Site="none").status == 200  # none of these used it up


@pytest.mark.parametrize(
    "path",
    [
        "", "/", "/health", "/metrics", "/openapi.json", "/api/v1", "/api/v1/", "/api/v1/nothing", "api/v1/status",
        "/api/v1/search", "/api/v1/tickets", "/api/v1/reindex", "http://127.0.0.1/api/v1/status",
        "//evil.example/api/v1/status", "/api/v1/../../etc/passwd", "/api/v1/documents/../status",
        "/api/v1/documents/%2e%2e/status", "/api/v1/status#x", "/api/v1\\status", "/api/v1/status?a=b c",
        "/api/v1/status?ü", "/api/v1/status\r\nX: y", "/api/v1/status?" + "x" * 4000, None, 7, ["/api/v1/status"],
    ],
)  # fmt: skip
def test_only_own_paths_get_a_ticket(owner: Http, path: Any) -> None:
    refused = ticket(owner, path)
    assert (refused.status, refused.json["error"]["code"]) == (422, "invalid_request")


def test_a_ticket_needs_the_key(stranger: Http) -> None:
    assert ticket(stranger, "/api/v1/status").status == 401


def test_of_many_who_open_at_once_one_gets_in(owner: Http, stranger: Http) -> None:
    url = ticket(owner, "/api/v1/status").json["url"]
    with ThreadPoolExecutor(8) as pool:
        statuses = [reply.status for reply in pool.map(lambda _: stranger("GET", url), range(8))]
    assert sorted(statuses) == [200] + [401] * 7


def test_tickets_are_not_logged(engine: EngineProcess, owner: Http, stranger: Http) -> None:
    url = ticket(owner, "/api/v1/status").json["url"]
    stranger("GET", url)
    stranger("GET", url)
    secret = url.partition("ticket=")[2]
    assert re.fullmatch(r"[\w-]{43}", secret)
    assert secret not in Path(engine.log).read_text()


def test_without_a_key_a_ticket_is_still_good_for_one_use(http: Http) -> None:
    url = ticket(http, "/api/v1/status").json["url"]
    assert [http("GET", url).status for _ in range(2)] == [200, 401]


def test_time_ends_a_ticket_and_makes_room_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    moment = 1000.0
    monkeypatch.setattr("kb.api.tickets.time.monotonic", lambda: moment)
    tickets = Tickets()
    urls = [tickets.issue("/api/v1/status").url for _ in range(MOST)]
    with pytest.raises(Unavailable):
        tickets.issue("/api/v1/status")
    query = urls[0].partition("?")[2].encode()
    scope = {
        "type": "http", "method": "GET", "path": "/api/v1/status", "raw_path": b"/api/v1/status", "query_string": query,
    }  # fmt: skip
    moment += SECONDS
    with pytest.raises(Unauthorized):
        tickets.opens(scope)
    assert tickets.issue("/api/v1/status").url
