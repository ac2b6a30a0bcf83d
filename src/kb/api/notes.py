"""Notes that change in place, and their history."""

from fastapi import APIRouter, Response

from kb.api.dependencies import Answer, EngineOf, Ref, errors
from kb.api.schemas import MergeBody, RestoreBody, UpdateNoteBody
from kb.core.values import Document, NoteHistory

router = APIRouter(prefix="/notes", tags=["notes"])


@router.patch("/{id}", response_model=Document, responses=errors(404, 409))
def update_note(engine: EngineOf, id: Ref, body: UpdateNoteBody) -> Response:  # noqa: A002
    """Replace a note's text. It is searchable under the new text when this answers."""
    return Answer(engine.editor.update(id, body.text, body.expected_version))


@router.get("/{id}/versions", response_model=NoteHistory, responses=errors(404))
def note_versions(engine: EngineOf, id: Ref) -> Response:  # noqa: A002
    """Every version of a note, newest first."""
    return Answer(engine.note_versions(id))


@router.post("/{id}/restore", response_model=Document, responses=errors(404))
def restore_note(engine: EngineOf, id: Ref, body: RestoreBody) -> Response:  # noqa: A002
    """Make an old version's text the newest version."""
    return Answer(engine.editor.restore(id, body.version))


@router.post("/{id}/merge", response_model=Document, responses=errors(404, 409))
def merge_notes(engine: EngineOf, id: Ref, body: MergeBody) -> Response:  # noqa: A002
    """Make one note of two, in one transaction: this one gets the text and the tags of both, the other is deleted."""
    return Answer(engine.editor.merge(id, str(body.other), body.text, body.expected_version, body.other_version))
