"""The trash: what was deleted and can be brought back."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from kb.api.dependencies import Answer, EngineOf, Ref, errors
from kb.api.schemas import EmptyTrashQuery, PageQuery, UndeleteQuery
from kb.core.values import Document, Emptied, TrashList

router = APIRouter(prefix="/trash", tags=["trash"])


@router.get("", response_model=TrashList, responses=errors())
def list_trash(engine: EngineOf, query: Annotated[PageQuery, Query()]) -> Response:
    """List the documents in the trash, the latest deletion first, and until when each can be brought back."""
    return Answer(engine.trash.page(query.limit, query.offset))


@router.post("/{id}/restore", response_model=Document, responses=errors(404, 409))
def restore_document(engine: EngineOf, id: Ref, query: Annotated[UndeleteQuery, Query()]) -> Response:  # noqa: A002
    """Bring a document back as it was; it is searchable when this answers.

    409 `conflict` when another document has its source path by now; `details.document_id` names that one.
    """
    return Answer(engine.trash.restore(id, without_path=query.without_path))


@router.delete("", response_model=Emptied, responses=errors(409))
def empty_trash(engine: EngineOf, query: Annotated[EmptyTrashQuery, Query()]) -> Response:
    """Remove everything in the trash for good."""
    return Answer(engine.trash.empty(query.expected_count))
