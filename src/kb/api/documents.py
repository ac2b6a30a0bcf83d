"""Documents and their tags."""

from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Query, Response
from starlette.responses import FileResponse, PlainTextResponse

from kb.api.dependencies import EngineOf, Ref, errors
from kb.api.responses import Answer
from kb.api.schemas import ClearQuery, DocumentQuery, DocumentsQuery, LedgerQuery, TagsBody, TextQuery
from kb.core.values import (
    Cleared,
    Document,
    DocumentList,
    DocumentSummary,
    DocumentSummaryList,
    LedgerPage,
    Removed,
    TagList,
)

router = APIRouter(tags=["documents"])


@router.get("/documents", response_model=DocumentList | DocumentSummaryList, responses=errors())
def list_documents(engine: EngineOf, query: Annotated[DocumentsQuery, Query()]) -> Response:
    """List documents, the most recently changed first; with `view=summary`, in rows that are short."""
    listing = query.listing()
    return Answer(engine.summaries(listing) if query.view == "summary" else engine.documents(listing))


@router.get("/documents/{id}", response_model=Document | DocumentSummary, responses=errors(404))
def get_document(engine: EngineOf, id: Ref, query: Annotated[DocumentQuery, Query()]) -> Response:  # noqa: A002
    """One document with its chunks; a note with its text, exactly as written."""
    if query.view == "summary":
        return Answer(engine.summary(id))
    return Answer(engine.document(id, first_chunk=query.first_chunk, max_chunks=query.max_chunks))


@router.get("/documents/{id}/ledger", response_model=LedgerPage, responses=errors(404))
def get_ledger(engine: EngineOf, id: Ref, query: Annotated[LedgerQuery, Query()]) -> Response:  # noqa: A002
    """What became of each part of a document: page by page of the list."""
    return Answer(engine.ledger(id, query.state, query.limit, query.offset))


@router.get("/documents/{id}/text", response_class=PlainTextResponse, responses=errors(404))
def get_text(engine: EngineOf, id: Ref, query: Annotated[TextQuery, Query()]) -> Response:  # noqa: A002
    """The extracted text that anchors point into, as `text/plain`; `start` and `end` count characters."""
    return PlainTextResponse(engine.text(id, query.start, query.end))


@router.get(
    "/documents/{id}/original",
    response_class=Response,
    responses={200: {"content": {"*/*": {"schema": {"type": "string", "format": "binary"}}}}, **errors(404)},
)
def get_original(engine: EngineOf, id: Ref) -> Response:  # noqa: A002
    """What was put in, byte for byte, as an attachment."""
    original = engine.original(id)
    disposition = f"attachment; filename*=UTF-8''{quote(original.filename, safe='')}"
    headers = {"Content-Disposition": disposition, "X-Content-Type-Options": "nosniff"}
    if original.path is not None:
        return FileResponse(original.path, media_type=original.media_type, headers=headers)
    return Response(original.text, media_type=original.media_type, headers=headers)


@router.delete("/documents", response_model=Cleared, responses=errors())
def clear(engine: EngineOf, query: Annotated[ClearQuery, Query()]) -> Response:
    """Delete every document, for good."""
    return Answer(engine.clear(query.confirm))


@router.delete("/documents/{id}", response_model=Removed, responses=errors(404))
def delete_document(engine: EngineOf, id: Ref) -> Response:  # noqa: A002
    """Remove a document for good: text, history, full text, vectors, original."""
    return Answer(engine.delete(id))


@router.post("/documents/{id}/tags", response_model=Document, responses=errors(404))
def edit_tags(engine: EngineOf, id: Ref, body: TagsBody) -> Response:  # noqa: A002
    """Add and remove tags in one step."""
    return Answer(engine.edit_tags(id, body.add, body.remove))


@router.get("/tags", response_model=TagList, responses=errors())
def list_tags(engine: EngineOf) -> Response:
    """Every tag with the number of its documents."""
    return Answer(engine.tags())
