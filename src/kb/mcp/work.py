"""Waiting for a job on somebody's behalf: progress is told, and nobody's job outlives the wish for it."""

from collections.abc import Awaitable
from contextlib import suppress

import anyio

from kb.core.errors import KBError
from kb.core.values import Json
from kb.mcp.engine_client import Client
from kb.mcp.tools import Caller

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 0.5
ENDED = ("completed", "failed", "cancelled")


async def seen_through(submission: Awaitable[Json]) -> Json:
    """Once begun, cancelling waits until the engine has answered: a job that nobody knows could not be stopped."""
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
    """Stop a job that nobody waits for; one that has ended meanwhile is left as it is."""
    with suppress(KBError):  # it has just ended, or the engine is away: there is nobody left to tell
        await client.cancel_job(job_id)
