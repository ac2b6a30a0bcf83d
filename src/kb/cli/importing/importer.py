"""Put documents of one engine into another, over its ordinary routes.

A file is added with its original, title, tags, metadata and path. A note is added with its first text and updated with
the others, so that its versions are the same, and also which of them its path brought. Documents that the engine has
are recognised: a second run changes nothing, and a run after an interruption continues. Documents with the same path
and other content are left alone.

What was found in an archive or a mail comes with it: it is read again, and what the export does not have of it is
removed again.
"""

import hashlib
from typing import TYPE_CHECKING

from kb.cli.follow import WAIT_SECONDS, followed, reason
from kb.cli.outcomes import Task, TaskOutcome, not_done
from kb.core.errors import Conflict, NotFound
from kb.core.types import Json
from kb.core.values import CONTAINERS

if TYPE_CHECKING:
    from kb.cli.importing.exported import Exported
    from kb.cli.transport import SocketClient

PAGE = 1000


class NotDoneError(Exception):
    """A job failed or was cancelled."""

    def __init__(self, answer: Json) -> None:
        super().__init__(reason(answer))
        self.answer = answer


class Importer:
    def __init__(self, client: "SocketClient", *, force: bool) -> None:
        self._client = client
        self._force = force
        self._at_path: dict[str, Json] = {}
        self._files: dict[str, Json] = {}  # without a path, by hash
        self._notes: dict[tuple[str, frozenset[str]], list[Json]] = {}  # without a path, by text and tags
        self._taken: set[int] = set()  # documents that are matched with one of the import
        self._ids: dict[int, int] = {}  # the engine's, by those of the import
        self._added: set[int] = set()  # archives and mails that this run added
        self._found: dict[int, dict[str, Json]] = {}  # what was found in a document, by its path in there
        self._look()

    def task(self, document: Json, archive: "Exported") -> Task:
        name = f"{document['doc_type']} {document['source_path'] or document['title']}"
        about = {"title": document["title"], "source_path": document["source_path"]}

        def act() -> TaskOutcome:
            try:
                state, document_id = self._put(document, archive)
            except NotDoneError as ended:
                return not_done(name, about | ended.answer)
            self._taken.add(document_id)
            if "id" in document:  # only its members need it
                self._ids[document["id"]] = document_id
            if state == "added" and document["doc_type"] in CONTAINERS:
                self._added.add(document_id)
            told = about | {"status": "completed", "document_id": document_id, "outcome": state}
            return TaskOutcome(name, state, f"document {document_id}", told)

        return Task(name, about, act)

    def tidy(self) -> None:
        """Remove what was found in the files that this run added, and is not in the import: it was deleted there."""
        for parent in sorted(self._added):
            for held in self._members(parent).values():
                if held["id"] not in self._taken:
                    self._client.delete_document(held["id"], purge=True)

    def _put(self, document: Json, archive: "Exported") -> tuple[str, int]:
        if document.get("parent") is not None:
            return self._member(document)
        return self._note(document) if document["doc_type"] == "note" else self._file(document, archive)

    def _look(self) -> None:
        """List the engine's documents by all that can identify them."""
        offset = 0
        while page := self._client.documents(sort="created", order="asc", limit=PAGE, offset=offset)["documents"]:
            for held in page:
                if held.get("parent") is not None:
                    continue
                if held["source_path"] is not None:
                    self._at_path[held["source_path"]] = held
                elif held["doc_type"] == "note":
                    self._notes.setdefault((held["content_hash"], frozenset(held["tags"])), []).append(held)
                else:
                    self._files[held["content_hash"]] = held
            offset += len(page)

    def _file(self, document: Json, archive: "Exported") -> tuple[str, int]:
        path, hash_ = document["source_path"], document["content_hash"]
        held = self._files.get(hash_) if path is None else self._at_path.get(path)
        same = held is not None and held["content_hash"] == hash_ and held["doc_type"] != "note"
        if held and same and _complete(held, document):
            return "unchanged", held["id"]
        if held and not same:
            self._refuse_to_replace(held)
        with archive.original(hash_) as original:
            answer = self._client.add_file(
                original,
                filename=document["filename"],
                title=_title(document),
                tags=document["tags"],
                source_path=path,
                metadata=_metadata(document, held if same else None),
                force=self._force or None,
                created_at=document.get("created_at"),
                wait=WAIT_SECONDS,
            )
            return self._done(answer)

    def _member(self, document: Json) -> tuple[str, int]:
        """What was found in a file is there once that file is; its tags may be others."""
        parent = self._ids.get(document["parent"])
        if parent is None:
            raise Conflict("the file that it was found in was not imported")
        held = self._members(parent).get(document["member"])
        if held is None or held["content_hash"] != document["content_hash"]:
            raise NotFound(f"it was not found again in document {parent}, whose ledger says why (kb get {parent})")
        is_new = parent in self._added
        more = [tag for tag in document["tags"] if tag not in held["tags"]]
        fewer = [tag for tag in held["tags"] if tag not in document["tags"]] if is_new else []
        if more or fewer:
            self._client.edit_tags(held["id"], add=more, remove=fewer)
        return "added" if is_new else "updated" if more else "unchanged", held["id"]

    def _members(self, parent: int) -> dict[str, Json]:
        if parent not in self._found:
            found: dict[str, Json] = {}
            while page := self._client.documents(parent=parent, limit=PAGE, offset=len(found))["documents"]:
                found |= {held["member"]: held for held in page}
            self._found[parent] = found
        return self._found[parent]

    def _note(self, document: Json) -> tuple[str, int]:
        texts = [version["text"] for version in reversed(document.get("versions") or [])] or [document["text"]]
        held, reached = self._held_note(document, texts)
        if held is None:
            if other := self._at_path.get(document["source_path"]):
                self._refuse_to_replace(other)
            state, document_id = self._added_note(document, texts[0], more=len(texts) > 1)
            reached = 1
        elif reached < len(texts) or _complete(held, document) or document["source_path"] is None:
            state, document_id = "unchanged", held["id"]
        else:
            state, document_id = self._added_note(document, texts[-1], held)
        for number, text in enumerate(texts[reached:], start=reached + 1):
            if document["source_path"] is not None and number <= document.get("brought", 0):
                self._added_note(document, text)
            else:
                self._client.update_note(document_id, text)
        return ("updated" if state == "unchanged" and texts[reached:] else state), document_id

    def _held_note(self, document: Json, texts: list[str]) -> tuple[Json | None, int]:
        """The engine's copy of the note, and how many of its versions it has."""
        path = document["source_path"]
        for reached in range(len(texts), 0, -1):
            hash_ = hashlib.sha256(texts[reached - 1].encode()).hexdigest()
            if path is not None:
                there = self._at_path.get(path)
                found = [there] if there and there["doc_type"] == "note" and there["content_hash"] == hash_ else []
            else:
                found = self._notes.get((hash_, frozenset(document["tags"])), [])
            for held in found:
                # An earlier text counts only at the same version: the later ones can follow.
                if held["id"] not in self._taken and (reached == len(texts) or held["version"] == reached):
                    return held, reached
        return None, 0

    def _added_note(
        self, document: Json, text: str, held: Json | None = None, *, more: bool = False
    ) -> tuple[str, int]:
        """Add a note. Return its outcome and id. With `more`, other texts follow, so no known note may be changed."""
        given = {
            "title": _title(document),
            "tags": document["tags"],
            "source_path": document["source_path"],
            "metadata": _metadata(document, held),
            "force": self._force or None,
            "created_at": document.get("created_at"),
        }
        state, document_id = self._done(self._client.add_note(text, **given, wait=WAIT_SECONDS))
        unwanted = state != "added" and document["source_path"] is None and more
        if document_id not in self._taken and not unwanted:
            return state, document_id
        # Two notes may have the same text and tags, but cannot be added so: a tag tells them apart for a moment.
        mark = f"kb-import:{document['uid']}"
        given["tags"] = [*document["tags"], mark]
        state, document_id = self._done(self._client.add_note(text, **given, wait=WAIT_SECONDS))
        self._client.edit_tags(document_id, remove=[mark])
        return state, document_id

    def _done(self, accepted: Json) -> tuple[str, int]:
        """The outcome of an addition, and the document's id."""
        answer = followed(self._client, accepted)
        if answer["status"] != "completed":
            raise NotDoneError(answer)
        return answer["outcome"], int(answer["document_id"])

    def _refuse_to_replace(self, held: Json) -> None:
        if not self._force:
            raise Conflict(
                f"document {held['id']} has this source path and other content; it is left alone (--force replaces it)"
            )


def _title(document: Json) -> str | None:
    """The title if it was given; the engine derives any other from the content again."""
    return document["title"] if document.get("titled", True) else None


def _complete(held: Json, document: Json) -> bool:
    return set(document["tags"]) <= set(held["tags"]) and document["metadata"].keys() <= held["metadata"].keys()


def _metadata(document: Json, held: Json | None) -> Json:
    """Metadata to send; for a document with the same content, only what it lacks."""
    there = held["metadata"] if held else {}
    return {name: value for name, value in document["metadata"].items() if name not in there}
