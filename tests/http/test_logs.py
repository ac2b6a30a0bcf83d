"""Logs: one request, one line, nothing that is nobody's business."""

import json
import logging

import pytest

from kb.http.guard import new_request_id
from kb.http.logs import JsonLines, TextLines
from support import EngineProcess, Http, StartEngine


def line(formatter: logging.Formatter, message: str) -> str:
    return formatter.format(logging.LogRecord("kb.test", logging.INFO, "", 0, message, None, None))


def test_control_characters_never_reach_a_terminal() -> None:
    assert "\x1b" not in line(TextLines(), "red \x1b[31m text\x07\u202e\r")
    assert "\\x1b[31m" in line(TextLines(), "red \x1b[31m text")
    assert json.loads(line(JsonLines(), "red \x1b[31m\n"))["message"] == "red \x1b[31m\n"


def test_nobody_forges_a_line() -> None:
    assert "\n" not in line(TextLines(), "name\n2026-01-01 INFO forged")


@pytest.mark.parametrize("given", ["", "a b", "x" * 65, "é", "a\nb", "../x"])
def test_a_request_id_that_is_not_sane_is_replaced(given: str) -> None:
    assert new_request_id(given) != given
    assert new_request_id("abc123") == "abc123"


def entries(engine: EngineProcess) -> list[dict[str, str]]:
    return [json.loads(text) for text in engine.log.read_text().splitlines() if text.startswith("{")]


def test_a_request_is_one_line_with_its_id_and_without_its_content(start_engine: StartEngine) -> None:
    engine = start_engine(KB_LOG_FORMAT="json", KB_API_KEY="hush-hush")
    own = Http(engine.url, {"Authorization": "Bearer hush-hush", "X-Request-Id": "trace42"})
    own.add_note("a confidential remark")
    assert own("POST", "/api/v1/search", {"query": "confidential question"}).headers["x-request-id"] == "trace42"
    engine.stop()
    (searched,) = [entry for entry in entries(engine) if "/search" in entry["message"]]
    assert searched["request"] == "trace42"
    assert searched["message"].startswith("POST /api/v1/search 200 ")
    log = engine.log.read_text()
    for secret in ("hush-hush", "confidential"):
        assert secret not in log
