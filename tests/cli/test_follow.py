"""A job is followed to its end, and its end decides the exit code."""

from typing import Any

import pytest

from kb.cli import follow
from kb.cli.follow import exit_code, followed, reason
from kb.client.calls import Call, Calls


class Engine(Calls[dict[str, Any]]):
    """Answers with one job after the other."""

    def __init__(self, *jobs: dict[str, Any]) -> None:
        self.jobs_left = list(jobs)

    def send(self, call: Call) -> dict[str, Any]:
        assert call.path == "/api/v1/jobs/j"
        return self.jobs_left.pop(0)


def job(status: str, document_id: int | None = None, **error: str) -> dict[str, Any]:
    return {"status": status, "document_id": document_id, "error": error or None, "progress": 0.5}


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "POLL_SECONDS", 0)


def test_what_has_ended_is_not_asked_for_again() -> None:
    accepted = {"job_id": "j", "status": "completed", "document_id": 7}
    assert followed(Engine(), accepted) == accepted


def test_a_long_job_is_followed_to_its_end() -> None:
    told: list[str] = []
    engine = Engine(job("queued"), job("running"), job("completed", 7))
    answer = followed(engine, {"job_id": "j", "status": "queued"}, lambda now: told.append(now["status"]))
    assert answer == {"job_id": "j", "status": "completed", "document_id": 7}
    assert told == ["queued", "running", "completed"]


@pytest.mark.parametrize(
    ("code", "exit_with"),
    [("corrupt", 5), ("encrypted", 5), ("no_text", 5), ("timeout", 5), ("internal", 1), ("crashed", 1)],
)
def test_a_failed_job_carries_its_reason_and_exits_5_or_1(code: str, exit_with: int) -> None:
    engine = Engine(job("failed", code=code, message="It is broken."))
    answer = followed(engine, {"job_id": "j", "status": "failed"})
    assert answer["error"] == {"code": code, "message": "It is broken."}
    assert exit_code(answer) == exit_with
    assert reason(answer) == "It is broken."


def test_a_cancelled_job_is_no_success() -> None:
    answer = followed(Engine(job("cancelled")), {"job_id": "j", "status": "running"})
    assert exit_code(answer) == 4
    assert reason(answer) == "the job was cancelled"


def test_a_job_that_is_under_way_is_no_failure() -> None:
    assert exit_code({"job_id": "j", "status": "queued"}) == 0
