"""Waiting for a job: the caller gets progress, and a caller that cancels or goes away cancels the job."""

from collections.abc import Awaitable
from contextlib import suppress

import anyio

from kb.core.errors import KBError
from kb.core.types import Json
from kb.mcp.engine_client import Client
from kb.mcp.tools import Caller

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 0.5
ENDED = ("completed", "failed", "cancelled")


async def seen_through(submission: Awaitable[Json]) -> Json:
    """The engine's answer to a submission. Cancelling waits for it: a job without a known id cannot be stopped."""
    with anyio.CancelScope(shield=True):
        accepted = await submission
    return accepted  # noqa: RET504 - the scope could swallow an exception, as far as the type checker knows


async def ended(client: Client, job_id: str, caller: Caller) -> Json:
    """The job once it has ended. A caller that cancels or goes away cancels the job."""
    try:
        return await _followed(client, job_id, caller)
    except anyio.get_cancelled_exc_class():
        with anyio.CancelScope(shield=True):
            await cancel(client, job_id)
        raise


async def _followed(client: Client, job_id: str, caller: Caller) -> Json:
    told, pause = -1.0, FIRST_PAUSE
    while True:
        job = await client.job(job_id)
        if job["progress"] > told:  # a notification's progress has to grow
            told = job["progress"]
            await caller.progress(told, 1.0, job["current_step"] or job["status"])
        if job["status"] in ENDED:
            return job
        with anyio.move_on_after(pause):
            await caller.gone.wait()
        if caller.gone.is_set():
            await cancel(client, job_id)
        pause = min(pause * 1.5, LONGEST_PAUSE)


async def cancel(client: Client, job_id: str) -> None:
    """Cancel a job whose caller is gone; a job that has ended meanwhile stays as it is."""
    with suppress(KBError):  # it has just ended, or the engine is away, and the caller is gone
        await client.cancel_job(job_id)
