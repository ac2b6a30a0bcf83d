"""Following a job without holding a thread: each change of the job wakes all that wait for it."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator

from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from kb.api.limits import Slots
from kb.core.values import Accepted, Job
from kb.core.wire import wire
from kb.engine.engine import Engine

KEEP_ALIVE_SECONDS = 15
KEEP_ALIVE = ": still there\n\n"
MAX_STREAMS = 100


class Bell(asyncio.Event):
    """An event that any thread may set, by calling it."""

    def __init__(self) -> None:
        super().__init__()
        self._loop = asyncio.get_running_loop()

    def __call__(self) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is gone when the engine stops
            self._loop.call_soon_threadsafe(self.set)

    async def rang(self) -> bool:
        """Wait for it, at most until a stream needs a sign of life; return whether it was set."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.wait(), KEEP_ALIVE_SECONDS)
        return self.is_set()


async def changes(engine: Engine, job_id: str) -> AsyncIterator[Job | None]:
    """Yield the job now, after each change, and when it has ended; None after each quiet 15 seconds.

    An engine that stops lets go of it: another one may run it.
    """
    changed = Bell()
    with engine.queue.watch(job_id, changed):
        while True:
            changed.clear()
            job = await run_in_threadpool(engine.queue.get, job_id)
            yield job
            if job.ended or engine.queue.stopped:
                return
            while not await changed.rang():
                yield None


async def ended(engine: Engine, job_id: str, seconds: float) -> Job:
    """The job when it has ended, or as it is when the time is up."""
    latest = await run_in_threadpool(engine.queue.get, job_id)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            async for job in changes(engine, job_id):
                latest = job or latest
    return latest


async def awaited(engine: Engine, accepted: Accepted, seconds: float) -> Accepted:
    """The answer as it is after waiting for the end of the job, or for this long."""
    if not seconds or accepted.status == "completed":
        return accepted
    job = await ended(engine, accepted.job_id, seconds)
    document_id = job.document_id or accepted.document_id
    return Accepted(job.id, job.status, document_id, accepted.duplicate_of, job.outcome)


async def events(engine: Engine, job_id: str) -> AsyncIterator[str]:
    async for job in changes(engine, job_id):
        if job is None:
            yield KEEP_ALIVE
        else:
            data = json.dumps(wire(job), ensure_ascii=False)
            yield f"event: {'end' if job.ended else 'progress'}\ndata: {data}\n\n"


def stream_slots() -> Slots:
    return Slots(MAX_STREAMS, f"{MAX_STREAMS} event streams are open already. Close one, or ask for the job instead.")


class EventStream(StreamingResponse):
    """Server-sent events. A slot is held from before the first byte until the connection ends."""

    def __init__(self, slots: Slots, lines: AsyncIterator[str]) -> None:
        super().__init__(lines, media_type="text/event-stream", headers={"Cache-Control": "no-store"})
        self._slots = slots

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._slots.held():
            await self.stream(scope, receive, send)

    async def stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        await super().__call__(scope, receive, send)
