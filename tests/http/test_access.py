"""Which addresses and which pages are let in, without a server around it."""

import pytest

from kb.core.errors import Forbidden
from kb.core.settings import Settings
from kb.http.access import Gate

ALLOWED = ("kb.lan", "kb.example.org")
GATES = [
    Gate.of_engine(Settings(allowed_hosts=ALLOWED)),
    Gate.of_mcp(Settings(mcp_allowed_hosts=ALLOWED)),
]


def passes(gate: Gate, **headers: str) -> bool:
    try:
        gate.check_place({name.replace("_", "-"): value for name, value in headers.items()})
    except Forbidden:
        return False
    return True


@pytest.mark.parametrize("gate", GATES, ids=lambda gate: gate.name)
@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("localhost:8000", "http://localhost:8000"),
        ("LOCALHOST:8000", "HTTP://LocalHost:8000"),
        ("localhost", "http://localhost"),
        ("localhost", "http://localhost:80"),
        ("localhost:80", "http://localhost"),
        ("localhost:", "http://localhost"),
        ("127.0.0.1:3000", "http://127.0.0.1:3000"),
        ("[::1]:8000", "http://[::1]:8000"),
        ("kb.lan:8000", "http://kb.lan:8000"),
        ("kb.example.org", "https://kb.example.org"),
        ("kb.example.org", "https://kb.example.org:443"),
        ("kb.example.org:443", "https://kb.example.org"),
        ("kb.example.org:8443", "https://kb.example.org:8443"),
    ],
)
def test_a_page_may_ask_the_address_that_it_came_from(gate: Gate, host: str, origin: str) -> None:
    assert passes(gate, host=host, origin=origin)


@pytest.mark.parametrize("gate", GATES, ids=lambda gate: gate.name)
@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("localhost:8000", "http://localhost:5173"),
        ("localhost:8000", "http://localhost"),
        ("localhost:8000", "http://127.0.0.1:8000"),
        ("127.0.0.1:8000", "http://[::1]:8000"),
        ("localhost:8000", "https://localhost:8000"),
        ("localhost", "https://localhost"),
        ("localhost:8000", "ws://localhost:8000"),
        ("localhost:8000", "http://localhost.:8000"),
        ("localhost:8000", "http://localhost:8000/"),
        ("localhost:8000", "http://localhost:8000@evil.example"),
        ("localhost:8000", "http://evil.example@localhost:8000"),
        ("localhost:8000", "http://localhost:8000 http://evil.example"),
        ("localhost:8000", "localhost:8000"),
        ("localhost:8000", "file://"),
        ("localhost:8000", "null"),
        ("localhost:8000", ""),
        ("kb.lan:8000", "http://kb.lan:8001"),
        ("kb.lan:8000", "http://kb.example.org:8000"),
        ("127.0.0.1:8000", "https://kb.example.org"),
        ("kb.example.org", "https://kb.example.org:8443"),
        ("kb.example.org", "https://evil.example"),
    ],
)
def test_any_other_page_is_refused(gate: Gate, host: str, origin: str) -> None:
    assert passes(gate, host=host)
    assert not passes(gate, host=host, origin=origin)


@pytest.mark.parametrize("gate", GATES, ids=lambda gate: gate.name)
@pytest.mark.parametrize(
    "host", ["", "evil.example", "localhost.", "evil@localhost", "localhost/", "localhost:x", "[::2]", "::1"]
)  # fmt: skip
def test_a_foreign_host_is_refused(gate: Gate, host: str) -> None:
    assert not passes(gate, host=host)


@pytest.mark.parametrize("gate", GATES, ids=lambda gate: gate.name)
@pytest.mark.parametrize(
    ("site", "passed"),
    [("same-origin", True), ("none", True), ("same-site", False), ("cross-site", False), ("", False)],
)  # fmt: skip
def test_only_what_a_browser_calls_its_own_is_let_in(gate: Gate, site: str, passed: bool) -> None:
    assert passes(gate, host="localhost:8000", sec_fetch_site=site) == passed
