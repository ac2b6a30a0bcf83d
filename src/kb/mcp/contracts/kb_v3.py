"""Contract `kb-v3`: `kb` with collections, for agents that were written against v3.

A collection is a tag `collection:<name>`, of which a document has exactly one. Agents see it as a field of its own.
"""

from dataclasses import dataclass, field
from typing import Annotated, Any

import anyio
from pydantic import Field

from kb.core.errors import InvalidRequest
from kb.core.searches import SearchAnswer
from kb.core.types import Json
from kb.core.values import Accepted, Document, DocumentList
from kb.mcp.contracts import arguments as arg
from kb.mcp.contracts.kb import Kb
from kb.mcp.tools import Caller, Shape, tool, tools_of
from kb.mcp.uploads.staging import StagedUpload

PREFIX = "collection:"
DEFAULT = "documents"
KNOWN = (DEFAULT, "memory", "workspace")

Within = Annotated[str | None, Field(description="Only this collection, such as documents, memory or workspace.")]
Into = Annotated[
    str, Field(description="Collection to put it into: documents, memory, workspace, or another that is set up.")
]


@dataclass
class KbV3(Kb):
    name = "kb-v3"
    server_name = "kb-v3"
    title = "kb knowledge base (v3)"

    _moving: anyio.Lock = field(default_factory=anyio.Lock)

    @tool("Search the knowledge base", reads=True)
    async def kb_search(
        self,
        query: arg.Query,
        top: arg.Top = 10,
        tags: arg.FilterTags = None,
        doc_type: arg.DocTypeFilter = None,
        mode: arg.SearchMode = "hybrid",
        fts_only: arg.FtsOnly = False,
        min_score: arg.MinScore = 0.0,
        max_tokens: arg.MaxTokens = None,
        source_path: arg.PathFilter = None,
        created_after: arg.CreatedAfter = None,
        created_before: arg.CreatedBefore = None,
        collection: Within = None,
    ) -> Annotated[Json, Shape(SearchAnswer, arg.ErrorField, without=("facets",))]:
        within = [] if collection is None else [self._tag(collection)]
        answer = await super().kb_search(
            query,
            top,
            [*(tags or []), *within],
            doc_type,
            mode,
            fts_only,
            min_score,
            max_tokens,
            source_path,
            created_after,
            created_before,
        )
        return answer | {"results": [shown(result) for result in answer["results"]]}

    kb_search.__doc__ = f"{Kb.kb_search.__doc__}\n        `collection` limits the search to one collection."

    @tool("Add a note")
    async def kb_addnote(
        self, text: arg.NoteText, tags: arg.Tags = None, title: arg.Title = None, collection: Into = DEFAULT
    ) -> Annotated[Json, Shape(Accepted, arg.ErrorField)]:
        return await super().kb_addnote(text, [self._tag(collection), *plain(tags)], title)

    kb_addnote.__doc__ = f"{Kb.kb_addnote.__doc__}\n        Keep memories of your own in collection memory."

    @tool("Start a file upload")
    async def kb_upload_start(
        self,
        caller: Caller,
        filename: arg.Filename,
        total_size: arg.TotalSize,
        tags: arg.Tags = None,
        collection: Into = DEFAULT,
    ) -> Annotated[Json, Shape(arg.UploadStarted, arg.ErrorField)]:
        return await super().kb_upload_start(caller, filename, total_size, [self._tag(collection), *plain(tags)])

    kb_upload_start.__doc__ = Kb.kb_upload_start.__doc__

    @tool("Update a note", destroys=True, idempotent=True)
    async def kb_update_note(
        self, document_id: arg.DocumentId, text: arg.NoteText, expected_version: arg.ExpectedVersion = None
    ) -> Annotated[Json, Shape(Document, arg.InCollection, arg.ErrorField)]:
        return shown(await super().kb_update_note(document_id, text, expected_version))

    kb_update_note.__doc__ = Kb.kb_update_note.__doc__

    @tool("Get a document", reads=True)
    async def kb_get(
        self,
        document_id: arg.DocumentId | None = None,
        source_path: arg.SourcePath = None,
        first_chunk: arg.FirstChunk = None,
        max_tokens: arg.ReadBudget = None,
    ) -> Annotated[Json, Shape(Document, arg.InCollection, DocumentList, arg.Notice, arg.ErrorField)]:
        answer = await super().kb_get(document_id, source_path, first_chunk, max_tokens)
        if "documents" in answer:
            return answer | {"documents": [shown(document) for document in answer["documents"]]}
        return shown(answer)

    kb_get.__doc__ = Kb.kb_get.__doc__

    @tool("Move a document to a collection", idempotent=True)
    async def kb_set_collection(
        self, document_id: arg.DocumentId, collection: Into
    ) -> Annotated[Json, Shape(Document, arg.InCollection, arg.ErrorField)]:
        """Move a document or note to another collection. Returns the document; it is in exactly one collection."""
        return shown(await self._moved(document_id, self._tag(collection)))

    async def _submit(self, upload: StagedUpload, path: Any) -> Json:
        """A file that is known already moves to the collection that was named now."""
        accepted = await super()._submit(upload, path)
        if "duplicate_of" in accepted:
            await self._moved(accepted["duplicate_of"], upload.tags[0])
        return accepted

    async def _moved(self, document_id: int, tag: str) -> Json:
        async with self._moving:  # two calls, and no other move may come between them
            document = await self.client.document(document_id, max_chunks=0)
            old = [name for name in document["tags"] if name.startswith(PREFIX) and name != tag]
            return await self.client.edit_tags(document_id, add=[tag], remove=old)

    def _tag(self, collection: str) -> str:
        known = (*KNOWN, *self.settings.mcp_collections)
        if collection not in known:
            raise InvalidRequest(
                f"There is no collection {collection[:100]!r}. The collections are {', '.join(known)}.",
                collections=list(known),
            )
        return PREFIX + collection


def plain(tags: list[str] | None) -> list[str]:
    """The tags that name no collection: the argument `collection` decides, and replaces those that do."""
    return [tag for tag in tags or [] if not tag.startswith(PREFIX)]


def shown(thing: Json) -> Json:
    """A document or result with its collection as a field instead of a tag."""
    collections = [tag for tag in thing["tags"] if tag.startswith(PREFIX)]
    return thing | {
        "tags": plain(thing["tags"]),
        "collection": collections[0].removeprefix(PREFIX) if collections else None,
    }


KbV3.tools = tools_of(KbV3)
