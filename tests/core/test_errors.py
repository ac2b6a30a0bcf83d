"""Every error has a code, a status and an exit code that nothing else decides, and survives the wire."""

import pytest

from kb.core import errors
from kb.core.errors import KBError, every_error, from_body

TABLE = {
    "InvalidRequest": ("invalid_request", 422, 2, False),
    "Unauthorized": ("unauthorized", 401, 7, False),
    "Forbidden": ("forbidden", 403, 7, False),
    "NotFound": ("not_found", 404, 3, False),
    "MethodNotAllowed": ("method_not_allowed", 405, 2, False),
    "NotANote": ("not_a_note", 422, 2, False),
    "Conflict": ("conflict", 409, 4, False),
    "UnsupportedFormat": ("unsupported_format", 415, 5, False),
    "TooLarge": ("file_too_large", 413, 5, False),
    "Unavailable": ("unavailable", 503, 6, True),
    "StorageFull": ("storage_full", 507, 6, True),
    "KBError": ("internal", 500, 1, False),
}


def test_the_tree_is_the_published_table() -> None:
    assert {e.__name__: (e.code, e.http_status, e.exit_code, e.retryable) for e in every_error()} == TABLE


def test_the_drawing_at_the_top_shows_every_class_with_its_figures() -> None:
    drawing = errors.__doc__ or ""
    for error in every_error():
        line = next(line for line in drawing.splitlines() if f" {error.__name__} " in line)
        assert f" {error.code} " in line
        assert f" {error.http_status} " in line
        assert f"exit {error.exit_code}" in line
        assert ("retryable" in line) == error.retryable


@pytest.mark.parametrize("kind", every_error())
def test_an_error_that_crosses_the_wire_comes_out_the_same(kind: type[KBError]) -> None:
    sent = kind("The disk is full.", path="/data", left=0)
    received = from_body(sent.body())
    assert type(received) is kind
    assert received.body() == sent.body()


def test_a_code_from_a_newer_engine_is_an_error_all_the_same() -> None:
    received = from_body({"error": {"code": "from_the_future", "message": "Something new."}})
    assert type(received) is KBError
    assert received.message == "Something new."


def test_every_class_says_what_it_means() -> None:
    assert all(error.__doc__ for error in every_error())
