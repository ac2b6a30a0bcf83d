"""Documents and their tags."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from kb.api.answers import Answer
from kb.api.bodies import ChunksQuery, DocumentsQuery, TagsBody
from kb.api.routing import EngineOf, Ref, errors
from kb.nouns import Document, DocumentList, Removed, TagList

router = APIRouter(tags=["documents"])


@router.get("/documents", response_model=DocumentList, responses=errors())
def list_documents(engine: EngineOf, query: Annotated[DocumentsQuery, Query()]) -> Response:
    """List documents, the most recently changed first."""
    return Answer(
        engine.documents(query.filter(), sort=query.sort, order=query.order, limit=query.limit, offset=query.offset)
    )


@router.get("/documents/{id}", response_model=Document, responses=errors(404))
def get_document(engine: EngineOf, id: Ref, query: Annotated[ChunksQuery, Query()]) -> Response:  # noqa: A002
    """One document with its chunks; a note with its text, exactly as written."""
    return Answer(engine.document(id, first_chunk=query.first_chunk, max_chunks=query.max_chunks))


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
