"""Adding things, and following what becomes of them."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from kb.api import uploads
from kb.api.dependencies import Answer, EngineOf, errors
from kb.api.follow import EventStream, awaited, events
from kb.api.limits import MAX_BODY
from kb.api.schemas import FileForm, JobsQuery, NoteBody, ReindexBody, Wait, content_type
from kb.core.errors import InvalidRequest, TooLarge
from kb.core.values import Accepted, AddOptions, Job, JobList
from kb.engine.engine import Engine

router = APIRouter(prefix="/jobs", tags=["jobs"])
maintenance = APIRouter(tags=["jobs"])

JobId = Annotated[str, Path(description="The job's uuid.", max_length=200)]


def multipart_schema() -> dict[str, Any]:
    schema = FileForm.model_json_schema()
    schema["properties"]["file"] = {"type": "string", "format": "binary"}
    schema["properties"]["metadata"] = {
        "type": "string",
        "description": "A JSON object, at most 32 levels deep and 64 KB.",
    }
    return schema | {"required": ["file"]}


BODY = {
    "required": True,
    "content": {
        "application/json": {"schema": NoteBody.model_json_schema()},
        "multipart/form-data": {"schema": multipart_schema()},
    },
}


@router.post(
    "", status_code=202, response_model=Accepted, responses=errors(409, 415), openapi_extra={"requestBody": BODY}
)
async def add(engine: EngineOf, request: Request, query: Wait) -> Response:
    """Add a note (JSON) or a file (multipart). What is known already is answered at once with `duplicate_of`.

    At a known `source_path`, new content updates the document in place. A note that was edited in kb since is replaced
    only with `force`; a note never becomes a file, nor a file a note: 409 `conflict`.
    """
    kind = content_type(request)
    if kind == "multipart/form-data":
        accepted = await add_file(engine, request)
    elif kind == "application/json":
        accepted = await add_note(engine, request)
    else:
        raise InvalidRequest(
            f"The Content-Type is {kind[:80]!r}. Send application/json to add a note, multipart/form-data for a file."
        )
    return Answer(await awaited(engine, accepted, query.wait), status_code=202)


@router.get("", response_model=JobList, responses=errors())
def list_jobs(engine: EngineOf, query: Annotated[JobsQuery, Query()]) -> Response:
    """List jobs, the newest first."""
    return Answer(engine.jobs(query.status, query.limit, query.offset))


@router.get("/{id}", response_model=Job, responses=errors(404))
def get_job(engine: EngineOf, id: JobId) -> Response:  # noqa: A002
    """How far a job is, or how it ended."""
    return Answer(engine.queue.get(id))


@router.get(
    "/{id}/events",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}, **errors(404)},
)
async def job_events(engine: EngineOf, id: JobId, request: Request) -> Response:  # noqa: A002
    """Server-sent events: `progress` at each step, `end` at the end, each with the job as its data."""
    await run_in_threadpool(engine.queue.get, id)
    return EventStream(request.app.state.streams, events(engine, id))


@router.post("/{id}/cancel", response_model=Job, responses=errors(404, 409))
def cancel_job(engine: EngineOf, id: JobId) -> Response:  # noqa: A002
    """Stop a job that waits or runs. Nothing of its content remains."""
    return Answer(engine.queue.cancel(id))


@router.post("/{id}/retry", response_model=Job, responses=errors(404, 409))
def retry_job(engine: EngineOf, id: JobId) -> Response:  # noqa: A002
    """Run a failed or cancelled job again."""
    return Answer(engine.queue.retry(id))


@maintenance.post("/reindex", status_code=202, response_model=Accepted, responses=errors())
async def reindex(engine: EngineOf, query: Wait, body: ReindexBody | None = None) -> Response:
    """Make the whole index anew, or with another model. The old one answers until the new one is complete."""
    accepted = await run_in_threadpool(engine.reindex, body.wanted() if body else None)
    return Answer(await awaited(engine, accepted, query.wait), status_code=202)


async def add_note(engine: Engine, request: Request) -> Accepted:
    data = bytearray()
    async for block in request.stream():
        data += block
        if len(data) > MAX_BODY:
            raise TooLarge("The note is larger than 1 MB. Split it, or add it as a file.")
    note = NoteBody.model_validate_json(bytes(data))
    return await run_in_threadpool(engine.intake.add_note, note.text, AddOptions(**note.model_dump(exclude={"text"})))


async def add_file(engine: Engine, request: Request) -> Accepted:
    with request.app.state.uploads.held(), engine.originals.stage() as staged:
        upload = await uploads.receive(request, staged)
        options = AddOptions(**upload.form().model_dump())
        return await run_in_threadpool(engine.intake.add_file, staged, upload.filename or "", options)
