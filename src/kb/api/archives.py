"""Everything at once, as a stream: a backup to restore, an export for other programs."""

from collections.abc import Callable, Iterator

from fastapi import APIRouter, Response
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from kb.api.dependencies import EngineOf, errors

router = APIRouter(tags=["archives"])

MEDIA_TYPE = "application/x-tar"


class Download(StreamingResponse):
    """An archive as a download. Its temporary files are removed at the end, also when the client goes away."""

    def __init__(self, filename: str, blocks: Iterator[bytes], close: Callable[[], None]) -> None:
        headers = {"Content-Disposition": f'attachment; filename="{filename}"', "X-Content-Type-Options": "nosniff"}
        super().__init__(blocks, media_type=MEDIA_TYPE, headers=headers)
        self._close = close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._close()


class Tar(Response):
    """What the OpenAPI document says about an archive."""

    media_type = MEDIA_TYPE


@router.get("/backup", response_class=Tar, responses=errors())
def backup(engine: EngineOf) -> Response:
    """One consistent copy of everything as a tar archive, made while writing goes on.

    It holds `kb.db`, `originals/` and, last, `manifest.json` with the sha256 of each.
    """
    archive = engine.archives.backup()
    return Download(archive.filename, archive.blocks, archive.close)


@router.get("/export", response_class=Tar, responses=errors())
def export(engine: EngineOf) -> Response:
    """Everything for other programs to read, as a tar archive.

    It holds `documents.jsonl`, one document per line with its text, chunks and (for a note) versions, and `originals/`.
    From a damaged database it holds what can be read, and names the rest in `unreadable.txt`.
    """
    archive = engine.archives.export()
    return Download(archive.filename, archive.blocks, archive.close)
