"""Documents as resources: `kb://documents/{id}` is a document's text, with a link to the original."""

import re
from typing import Any, NoReturn

from mcp.server.context import ServerRequestContext
from mcp_types import (
    INVALID_PARAMS,
    ListResourcesResult,
    ListResourceTemplatesResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextResourceContents,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from kb.client.calls import API
from kb.core.errors import KBError, NotFound
from kb.core.invisible import plain
from kb.mcp.engine_client import Client
from kb.mcp.errors import SERVER_ERROR, wire_error

Context = ServerRequestContext[Any, Any]
TEMPLATE = "kb://documents/{id}"
PAGE = 100
RESOURCE_NOT_FOUND = -32002  # as the handshake revisions have it; later ones say -32602


class Resources:
    def __init__(self, client: Client) -> None:
        self._client = client

    async def templates(self, _ctx: Context, _params: PaginatedRequestParams | None) -> ListResourceTemplatesResult:
        about = "A document or note by its document_id: its text, and a link to the original file."
        template = ResourceTemplate(
            name="document", title="Document", uri_template=TEMPLATE, description=about, mime_type="text/plain"
        )
        return ListResourceTemplatesResult(resource_templates=[template])

    async def listed(self, _ctx: Context, params: PaginatedRequestParams | None) -> ListResourcesResult:
        """Documents, the most recently changed first."""
        cursor = (params.cursor if params else None) or "0"
        if not re.fullmatch(r"\d{1,12}", cursor):
            raise wire_error(INVALID_PARAMS, "The cursor is not one of this server's.")
        try:
            found = await self._client.documents(limit=PAGE, offset=int(cursor))
        except KBError as error:
            raise wire_error(SERVER_ERROR, error.message, error.code) from error
        after = int(cursor) + len(found["documents"])
        resources = [
            Resource(
                name=plain(document["filename"] or document["title"]),
                title=plain(document["title"]),
                uri=TEMPLATE.format(id=document["id"]),
                mime_type="text/plain",
                description=f"{document['doc_type']}, {document['chunk_count']} passages",
            )
            for document in found["documents"]
        ]
        return ListResourcesResult(resources=resources, next_cursor=str(after) if after < found["total"] else None)

    async def read(self, ctx: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        found = re.fullmatch(r"kb://documents/(\d{1,18})", str(params.uri))
        if found is None:
            _not_found(ctx, str(params.uri))
        try:
            text = plain((await self._client.text(found[1]))["text"])
        except NotFound:
            _not_found(ctx, str(params.uri))
        except KBError as error:
            raise wire_error(SERVER_ERROR, error.message, error.code) from error
        uri = TEMPLATE.format(id=found[1])
        link = f"{self._client.url}{API}/documents/{found[1]}/original"
        return ReadResourceResult(
            contents=[
                TextResourceContents(uri=uri, mime_type="text/plain", text=text),
                TextResourceContents(uri=f"{uri}/original", mime_type="text/uri-list", text=link),
            ]
        )


def _not_found(ctx: Context, uri: str) -> NoReturn:
    code = INVALID_PARAMS if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS else RESOURCE_NOT_FOUND
    raise wire_error(code, f"There is no resource {uri[:200]!r}.", "not_found", uri=uri[:200])
