"""Views of an original: pages, the boxes of a passage on them, cells."""

from collections.abc import Callable
from typing import Annotated, TypeVar

import anyio
import anyio.to_thread
from fastapi import APIRouter, Path, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from kb.api.dependencies import Answer, EngineOf, Ref, errors
from kb.api.follow import awaited
from kb.api.limits import Slots
from kb.api.schemas import BoxesQuery, ImageQuery, RereadBody, TableQuery, Wait
from kb.core.values import Accepted, PageBoxes, TableWindow

router = APIRouter(prefix="/documents", tags=["documents"])

AT_ONCE = 2  # each may keep a core busy
WAITING = 100  # a screen full of thumbnails
# The page at an address may change, and no proxy may keep a deleted one.
HEADERS = {"Cache-Control": "private, no-cache", "X-Content-Type-Options": "nosniff"}

PageNumber = Annotated[int, Path(description="Counted from 1; a picture has one.", le=10**9)]
Shown = TypeVar("Shown")


class Turns:
    """Limits how many pages are drawn at a time. A request that waits holds no thread that a search could need."""

    def __init__(self) -> None:
        self._limiter = anyio.CapacityLimiter(AT_ONCE)
        self._slots = Slots(
            AT_ONCE + WAITING, f"{WAITING} pages are waiting to be drawn already. Try again in a moment."
        )

    async def run(self, show: Callable[[], Shown]) -> Shown:
        with self._slots.held():
            return await anyio.to_thread.run_sync(show, limiter=self._limiter)


@router.get(
    "/{id}/pages/{n}/image",
    response_class=Response,
    responses={
        200: {"content": {"image/jpeg": {"schema": {"type": "string", "format": "binary"}}}},
        304: {"description": "It is the picture that `If-None-Match` names."},
        **errors(404, 409),
    },
)
async def page_image(
    engine: EngineOf,
    request: Request,
    id: Ref,  # noqa: A002
    n: PageNumber,
    query: Annotated[ImageQuery, Query()],
) -> Response:
    """A page of a PDF, or a picture, as a JPEG. A picture that is narrower than `width` keeps its width."""
    image = await request.app.state.turns.run(lambda: engine.views.image(id, n, query.width))
    headers = HEADERS | {"ETag": f'"{image.tag}"'}
    known = (tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(","))
    if any(tag in ("*", headers["ETag"]) for tag in known):
        return Response(status_code=304, headers=headers)
    return Response(image.jpeg, media_type="image/jpeg", headers=headers)


@router.get("/{id}/pages/{n}/boxes", response_model=PageBoxes, responses=errors(404, 409))
async def page_boxes(
    engine: EngineOf,
    request: Request,
    id: Ref,  # noqa: A002
    n: PageNumber,
    query: Annotated[BoxesQuery, Query()],
) -> Response:
    """Where a passage stands on a page, a box for each line; `exact` is false where only the page is known.

    Boxes fit the picture of the page: both show it cropped and turned as a viewer does.
    """
    return Answer(await request.app.state.turns.run(lambda: engine.views.boxes(id, n, query.start, query.end)))


@router.get("/{id}/table", response_model=TableWindow, responses=errors(404, 409))
async def table(
    engine: EngineOf,
    request: Request,
    id: Ref,  # noqa: A002
    query: Annotated[TableQuery, Query()],
) -> Response:
    """The cells that a citation of a workbook names, with some rows and columns around them."""
    return Answer(await request.app.state.turns.run(lambda: engine.views.table(id, query.sheet, query.range)))


@router.post("/{id}/reread", status_code=202, response_model=Accepted, responses=errors(404, 409))
async def reread(engine: EngineOf, id: Ref, body: RereadBody, query: Wait) -> Response:  # noqa: A002
    """Read the stored original again, by OCR if asked to. The document keeps its id, version, tags and metadata.

    Its text is replaced when the job ends well; until then, and if it fails, the old one stays.
    """
    accepted = await run_in_threadpool(lambda: engine.intake.reread(id, force_ocr=body.force_ocr, pages=body.pages))
    return Answer(await awaited(engine, accepted, query.wait), status_code=202)
