"""Which engine a call goes to, and when another one may be asked."""

from typing import Any

import pytest

from kb.client.calls import Call, Calls
from kb.client.engines import Engines
from kb.core.errors import Unavailable
from kb.core.settings import Settings

URLS = "http://a:1, http://b:2,http://c:3"
READ = Call("GET", "/api/v1/status")
WRITE = Call("DELETE", "/api/v1/documents/1")
IN_DOUBT = Unavailable("it broke", in_doubt=True)


def engines(urls: str = URLS) -> Engines:
    return Engines.of(Settings(engine_url=urls))


def asked(calls: Engines, call: Call, *errors: Unavailable) -> str:
    """The hosts that are asked when the first ones fail in these ways."""
    attempts = calls.attempts(call)
    hosts = attempts.engine.host
    for error in errors:
        attempts.failed(error)
        hosts += attempts.engine.host
    return hosts


def test_calls_go_to_the_engines_in_turn() -> None:
    calls = engines()
    assert [asked(calls, READ) for _ in range(4)] == ["a", "b", "c", "a"]


def test_an_engine_that_failed_is_asked_last() -> None:
    calls = engines()
    assert asked(calls, READ, Unavailable("not now")) == "ab"
    assert [asked(calls, READ) for _ in range(4)] == ["b", "c", "b", "b"]


@pytest.mark.parametrize("call", [READ, WRITE])
def test_what_did_not_happen_goes_to_the_next_engine(call: Call) -> None:
    refused = Unavailable("not now")
    assert asked(engines(), call, refused, refused) == "abc"


def test_what_may_have_happened_is_repeated_only_if_that_does_no_harm() -> None:
    assert asked(engines(), READ, IN_DOUBT) == "ab"
    with pytest.raises(Unavailable) as told:
        asked(engines(), WRITE, IN_DOUBT)
    assert told.value is IN_DOUBT


def test_the_doubt_outlives_the_attempts_after_it() -> None:
    """An addition that may have happened, and that no other engine could take."""
    with pytest.raises(Unavailable) as told:
        asked(engines(), READ, IN_DOUBT, Unavailable("refused"), Unavailable("refused"))
    assert told.value is IN_DOUBT


def test_the_error_names_every_engine_that_failed() -> None:
    with pytest.raises(Unavailable, match=r"^No engine could answer: a is away; b is away; c is away\.$"):
        asked(engines(), READ, *(Unavailable(f"{name} is away.") for name in "abc"))
    with pytest.raises(Unavailable, match=r"^it is away$"):
        asked(engines("http://a"), READ, Unavailable("it is away"))


def test_a_load_balancer_is_asked_a_second_time_when_its_engine_went_away() -> None:
    lost = Unavailable("502", in_doubt=True, proxy=True)
    assert asked(engines("http://a"), READ, lost) == "aa"
    with pytest.raises(Unavailable):
        asked(engines("http://a"), READ, lost, lost)
    with pytest.raises(Unavailable):
        asked(engines("http://a"), WRITE, lost)


class Described(Calls[Call]):
    def send(self, call: Call) -> Call:
        return call


@pytest.mark.parametrize(
    ("method", "arguments", "repeatable"),
    [
        ("search", {"query": "x"}, True),
        ("document", {"document_id": 1}, True),
        ("add_note", {"text": "x"}, True),
        ("add_note", {"text": "x", "source_path": "/x", "force": True}, False),
        ("add_file", {"path": "x"}, True),
        ("edit_tags", {"document_id": 1, "add": ["x"]}, True),
        ("update_note", {"document_id": 1, "text": "x"}, False),
        ("update_note", {"document_id": 1, "text": "x", "expected_version": 1}, False),
        ("delete_document", {"document_id": 1}, False),
        ("restore_note", {"document_id": 1, "version": 1}, False),
        ("empty_trash", {"expected_count": 1}, False),
        ("retry_job", {"job_id": "x"}, False),
    ],
)
def test_a_call_says_whether_it_may_be_repeated(method: str, arguments: dict[str, Any], repeatable: bool) -> None:
    call: Call = getattr(Described(), method)(**arguments)
    assert call.repeatable is repeatable
