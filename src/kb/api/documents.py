"""Documents and their tags."""

from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Path, Query, Response
from starlette.concurrency import run_in_threadpool
from starlette.responses import FileResponse, PlainTextResponse

from kb.api.dependencies import Answer, EngineOf, Ref, errors
from kb.api.follow import awaited
from kb.api.schemas import (
    BulkBody,
    ClearQuery,
    DeleteQuery,
    DocumentQuery,
    DocumentsQuery,
    LedgerQuery,
    RenameTagBody,
    TagsBody,
    TextQuery,
    Wait,
)
from kb.core.values import (
    Accepted,
    Cleared,
    Document,
    DocumentLinks,
    DocumentList,
    DocumentSummary,
    DocumentSummaryList,
    LedgerPage,
    Removed,
    TagCount,
    TagList,
)

router = APIRouter(tags=["documents"])

TagName = Annotated[str, Path(description="The tag as it is now.", max_length=1000)]


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


@router.get("/documents/{id}/links", response_model=DocumentLinks, responses=errors(404))
def get_links(engine: EngineOf, id: Ref) -> Response:  # noqa: A002
    """What a note or a Markdown file links to, and which documents link to this one.

    `[[Note]]`, `[[folder/Note#Heading|shown]]`, `![[embed]]` and `[text](other.md)` count, the first 10,000 of a text.
    They are looked up now, by path, file name, title of a note and `aliases`: what was added later is found, too.
    """
    return Answer(engine.links(id))


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
    """Delete every document for good, also those in the trash."""
    return Answer(engine.clear(query.confirm))


@router.delete("/documents/{id}", response_model=Removed, responses=errors(404))
def delete_document(engine: EngineOf, id: Ref, query: Annotated[DeleteQuery, Query()]) -> Response:  # noqa: A002
    """Put a document into the trash: it is gone from everywhere else, and can be brought back until `expires_at`.

    With `purge`, remove it for good, also from the trash: text, history, full text, vectors, original. Where
    `KB_TRASH_DAYS` is 0, every deletion is for good; the answer then has no `expires_at`.
    """
    return Answer(engine.trash.delete(id, purge=query.purge))


@router.post("/documents/{id}/tags", response_model=Document, responses=errors(404))
def edit_tags(engine: EngineOf, id: Ref, body: TagsBody) -> Response:  # noqa: A002
    """Add and remove tags in one step."""
    return Answer(engine.catalogue.edit_tags(id, body.add, body.remove))


@router.get("/tags", response_model=TagList, responses=errors())
def list_tags(engine: EngineOf) -> Response:
    """Every tag with the number of its documents."""
    return Answer(engine.tags())


@router.post("/documents/bulk", status_code=202, response_model=Accepted, responses=errors(409))
async def change_many(engine: EngineOf, body: BulkBody, query: Wait) -> Response:
    """Change the tags of many documents, or put them into the trash, as a job.

    409 `conflict` when the number of documents is not the expected one. When other documents match by the time the job
    begins, it fails with `conflict` and changes nothing.
    """
    accepted = await run_in_threadpool(engine.bulk.submit, body.change(), body.expected_count)
    return Answer(await awaited(engine, accepted, query.wait), status_code=202)


@router.post("/tags/{tag:path}/rename", response_model=TagCount, responses=errors(404))
def rename_tag(engine: EngineOf, tag: TagName, body: RenameTagBody) -> Response:
    """Rename a tag in all documents that have it; a tag that exists already takes the documents of both.

    The answer has the new name, and how many documents have it now.
    """
    return Answer(engine.catalogue.rename_tag(tag, body.to))
