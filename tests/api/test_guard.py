"""Who may ask, from where, and what every answer carries."""

from collections.abc import Iterator
from contextlib import closing, suppress
from http.client import HTTPConnection

import pytest

from kb import __version__
from support import EngineProcess, Http


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    engine = EngineProcess(
        tmp_path_factory.mktemp("locked") / "data", KB_API_KEY="s3cret", KB_ALLOWED_HOSTS="kb.lan, engine"
    )
    yield engine.url
    engine.stop()


@pytest.mark.parametrize("path", ["/health", "/", "/api/v1/status", "/nope", "/docs", "/openapi.json"])
def test_every_answer_carries_the_version(http: Http, path: str) -> None:
    assert http("GET", path).headers["x-kb-version"] == __version__


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/api/v1/status"), ("POST", "/api/v1/search"), ("GET", "/nope"), ("GET", "/docs"),
     ("GET", "/openapi.json"),
     ("DELETE", "/api/v1/documents/1"), ("POST", "/health")],
)  # fmt: skip
def test_with_a_key_set_every_route_needs_it(locked: str, method: str, path: str) -> None:
    refused = Http(locked)(method, path)
    assert (refused.status, refused.json["error"]["code"]) == (401, "unauthorized")
    assert refused.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("sent", ["Bearer wrong", "Bearer", "Basic s3cret", "s3cret", "Bearer s3cret2", "Bearer \xe9"])
def test_a_wrong_key_is_refused(locked: str, sent: str) -> None:
    assert Http(locked)("GET", "/api/v1/status", Authorization=sent).status == 401


def test_the_right_key_opens(locked: str) -> None:
    assert Http(locked)("GET", "/api/v1/status", Authorization="Bearer s3cret").status == 200


@pytest.mark.parametrize("path", ["/health", "/"])
def test_liveness_and_the_page_need_no_key(locked: str, path: str) -> None:
    assert Http(locked)("GET", path).status == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:8000", "", "[::2]"])
def test_a_foreign_host_is_refused_even_with_the_key(locked: str, host: str) -> None:
    refused = Http(locked)("GET", "/health", Host=host, Authorization="Bearer s3cret")
    assert (refused.status, refused.json["error"]["code"]) == (403, "forbidden")


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:1", "[::1]:8000", "kb.lan", "ENGINE:8000"])
def test_loopback_and_allowed_hosts_are_answered(locked: str, host: str) -> None:
    assert Http(locked)("GET", "/health", Host=host).status == 200


FOREIGN_PAGES = [
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://localhost:5173"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
]


@pytest.mark.parametrize("headers", FOREIGN_PAGES, ids=str)
@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/health"), ("GET", "/"), ("GET", "/docs"), ("GET", "/metrics"), ("GET", "/api/v1/documents"),
     ("POST", "/api/v1/search"), ("POST", "/api/v1/jobs"), ("DELETE", "/api/v1/documents/1"), ("OPTIONS", "/"),
     ("GET", "/nope")],
)  # fmt: skip
def test_a_foreign_page_is_refused_everywhere(http: Http, headers: dict[str, str], method: str, path: str) -> None:
    refused = Http(http.url, headers)(method, path, {"query": "x"} if method == "POST" else None)
    assert (refused.status, refused.json["error"]["code"]) == (403, "forbidden")


@pytest.mark.parametrize("headers", FOREIGN_PAGES, ids=str)
def test_asking_for_a_websocket_is_no_way_around(http: Http, headers: dict[str, str]) -> None:
    upgrade = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "eA==",
    }
    refused = Http(http.url, headers | upgrade)("GET", "/api/v1/documents")
    assert (refused.status, refused.json["error"]["code"]) == (403, "forbidden")


def test_the_own_page_may_ask(http: Http) -> None:
    assert http("GET", "/api/v1/status", Origin=http.url, Sec_Fetch_Site="same-origin").status == 200


def test_a_page_behind_a_proxy_with_tls_may_ask_under_an_allowed_name(locked: str) -> None:
    key = {"Authorization": "Bearer s3cret"}
    for host, origin, status in (
        ("kb.lan", "https://kb.lan", 200),
        ("kb.lan", "https://kb.lan:8443", 403),
        ("localhost", "https://localhost", 403),
    ):
        assert Http(locked, key)("GET", "/api/v1/status", Host=host, Origin=origin).status == status


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nope", 404, "not_found"),
        ("GET", "/api/v1/nope", 404, "not_found"),
        ("PUT", "/api/v1/search", 405, "method_not_allowed"),
        ("GET", "/api/v1/documents/x", 404, "not_found"),
    ],
)
def test_errors_have_one_shape(http: Http, method: str, path: str, status: int, code: str) -> None:
    reply = http(method, path)
    assert reply.status == status
    assert set(reply.json["error"]) == {"code", "message", "retryable", "details"}
    assert reply.json["error"]["code"] == code


def test_a_body_that_is_too_large_is_refused_before_it_is_read(http: Http) -> None:
    with closing(HTTPConnection(http.url.removeprefix("http://"), timeout=30)) as connection:
        connection.putrequest("POST", "/api/v1/search")
        connection.putheader("Content-Type", "application/json")
        connection.putheader("Content-Length", str(9 * 2**20))
        connection.endheaders()
        with suppress(OSError):  # it may hang up on us
            for _ in range(9):
                connection.send(b" " * 2**20)
        with connection.getresponse() as answer:
            assert answer.status == 413


def test_the_page_loads_nothing_from_elsewhere(http: Http) -> None:
    for path in ("/", "/docs"):
        page = http("GET", path).body.decode()
        assert "https://" not in page
        assert "http://" not in page
