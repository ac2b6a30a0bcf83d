"""Folders that the engine keeps in step with the disk."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response

from kb.api.dependencies import Answer, EngineOf, errors
from kb.api.schemas import MAX_ID, FolderBody, FolderQuery, ScanBody, UnwatchQuery
from kb.core.folders import Folder, FolderList, Unwatched

router = APIRouter(prefix="/folders", tags=["folders"])

FolderId = Annotated[int, Path(description="Integer id of a watched folder.", ge=1, le=MAX_ID)]


@router.get("", response_model=FolderList, responses=errors())
def list_folders(engine: EngineOf) -> Response:
    """The watched folders: how each stands, and how many of its files are indexed."""
    return Answer(engine.folders.list())


@router.post("", status_code=201, response_model=Folder, responses=errors(403, 409))
def watch_folder(engine: EngineOf, body: FolderBody) -> Response:
    """Watch a folder: its files become documents, and stay in step with the disk.

    Links are not followed. Hidden files and what `.gitignore` and `.kbignore` name are left out. A folder that holds
    another watched one, or lies in one, is refused: 409 `conflict`.
    """
    return Answer(engine.folders.watch(body.path, body.options()), status_code=201)


@router.get("/{id}", response_model=Folder, responses=errors(404))
def get_folder(engine: EngineOf, id: FolderId, query: Annotated[FolderQuery, Query()]) -> Response:  # noqa: A002
    """A folder with the files that are not indexed, and why: failed ones first, then waiting, then left out."""
    return Answer(engine.folders.get(id, limit=query.limit, offset=query.offset))


@router.post("/{id}/scan", status_code=202, response_model=Folder, responses=errors(404))
def scan_folder(engine: EngineOf, id: FolderId, body: ScanBody | None = None) -> Response:  # noqa: A002
    """Compare everything with the disk now, and read again what failed.

    A folder is `paused` when many files are missing at once; `confirm` removes their documents.
    """
    return Answer(engine.folders.scan(id, confirmed=bool(body and body.confirm)), status_code=202)


@router.delete("/{id}", response_model=Unwatched, responses=errors(404))
def unwatch_folder(engine: EngineOf, id: FolderId, query: Annotated[UnwatchQuery, Query()]) -> Response:  # noqa: A002
    """Watch a folder no longer. The files on the disk stay as they are in either case."""
    return Answer(engine.folders.unwatch(id, query.documents))
