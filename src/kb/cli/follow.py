"""Follow a job to its end, and translate that end into an exit code."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from kb.core.errors import Conflict, KBError, UnsupportedFormat
from kb.core.types import Json

if TYPE_CHECKING:
    from kb.client.calls import Calls

# How long the engine may hold one request; for a longer job it is repeated.
WAIT_SECONDS = 60
POLL_SECONDS = 0.25
# Failures of kb itself; all others are caused by the file.
OUR_FAULT = ("internal", "crashed")


def followed(client: "Calls[Json]", accepted: Json, tell: "Callable[[Json], None] | None" = None) -> Json:
    """Wait for the job of an addition. Return its answer; that of a failed job has its `error`."""
    answer = dict(accepted)
    job: Json | None = None
    while answer["status"] in ("queued", "running"):
        if job is not None:
            time.sleep(POLL_SECONDS)
        job = client.job(answer["job_id"])
        if tell:
            tell(job)
        answer["status"] = job["status"]
        if job["document_id"] is not None:
            answer["document_id"] = job["document_id"]
        if "outcome" in job:
            answer["outcome"] = job["outcome"]
    if answer["status"] == "failed":
        answer["error"] = (job or client.job(answer["job_id"]))["error"]
    return answer


def exit_code(answer: Json) -> int:
    """0 for what went well or is still under way; a failed job exits 5, 4 after a conflict, 1 when kb is to blame."""
    if answer["status"] == "failed":
        code = (answer.get("error") or {}).get("code")
        if code == Conflict.code:
            return Conflict.exit_code
        return KBError.exit_code if code in OUR_FAULT else UnsupportedFormat.exit_code
    return Conflict.exit_code if answer["status"] == "cancelled" else 0


def reason(answer: Json) -> str:
    """One sentence for a job that did not complete."""
    if answer["status"] == "cancelled":
        return "the job was cancelled"
    error = answer.get("error") or {}
    return str(error.get("message") or "the job failed and gave no reason")
