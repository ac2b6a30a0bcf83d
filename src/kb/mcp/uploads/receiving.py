"""The upload address: one PUT of the raw bytes, so that a file never has to pass through a model."""

from pathlib import Path

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse

from kb.core.errors import InvalidRequest, TooLarge
from kb.core.sizes import readable_size
from kb.mcp.uploads.staging import StagedUpload, Uploads


async def receive(uploads: Uploads, request: Request) -> JSONResponse:
    """Takes exactly the announced bytes. A transfer that broke may be tried again; a complete one may not."""
    upload = uploads.by_token(request.path_params["token"])
    part = upload.folder / "put"
    upload.busy = True
    try:
        size = await _saved(request, upload, part)
        if size < upload.total_size:
            missing, announced = readable_size(upload.total_size - size), readable_size(upload.total_size)
            raise InvalidRequest(f"{missing} of the announced {announced} did not come. Send the file again.")
        uploads.take_whole(upload, part)
    except ClientDisconnect:
        raise InvalidRequest("The connection broke before all bytes came. Send the file again.") from None
    finally:
        upload.busy = False
        part.unlink(missing_ok=True)
    answer = {"upload_id": upload.id, "received_bytes": size, "next": "Call kb_upload_finish with this upload_id."}
    return JSONResponse(answer, status_code=201)


async def _saved(request: Request, upload: StagedUpload, part: Path) -> int:
    size = 0
    with part.open("wb") as file:
        async for block in request.stream():
            size += len(block)
            if size > upload.total_size:
                raise TooLarge(
                    f"More came than the announced {readable_size(upload.total_size)}. Begin again with the right size."
                )
            file.write(block)
            upload.touch()
    return size
