"""The calls of the REST API, one method per route, for any transport.

Each method of `Calls` describes its request as a frozen `Call` and passes it to `send`, which a transport overrides:
`kb.cli.transport` with the standard library (`Calls[Json]`), `kb.mcp.engine_client` asynchronously
(`Calls[Awaitable[Json]]`). They share `multipart`, and `kb.client.endpoint` for addresses, errors and answers.

Nothing is imported here that `kb search` does not need: it must feel instant.
"""

import json
import re
from collections.abc import Iterable, Sequence
from os import PathLike, fspath
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar
from urllib.parse import quote, urlencode

from kb.core.types import Json

if TYPE_CHECKING:
    # Creating the values costs a quarter of what `kb search` may take; the client only names their types.
    from typing import TypedDict, Unpack

    from kb.core.searches import Mode, Order, Sort
    from kb.core.values import DocType, JobStatus

    class SearchOptions(TypedDict, total=False):
        top: int | None
        doc_type: DocType | None
        mode: Mode | None
        fts_only: bool | None
        min_score: float | None
        source_path: str | None
        media_type: str | None
        created_after: str | None
        created_before: str | None
        max_tokens: int | None
        explain: bool | None

    class AddFields(TypedDict, total=False):
        title: str | None
        source_path: str | None
        replace_tags: bool | None
        force: bool | None
        created_at: str | None

    class ListOptions(TypedDict, total=False):
        source_path: str | None
        doc_type: DocType | None
        created_after: str | None
        created_before: str | None
        sort: Sort | None
        order: Order | None
        parent: int | None
        limit: int | None
        offset: int | None


API = "/api/v1"
CONNECT_SECONDS = 5
ANSWER_SECONDS = 60  # beyond the time that the engine was asked to wait
SLOW_SECONDS = 3600  # for what reads all documents

Result = TypeVar("Result")  # Json, or an awaitable of it


class FileUpload(NamedTuple):
    """A local file, streamed as one multipart form."""

    path: str
    filename: str
    fields: tuple[tuple[str, str], ...]


class Call(NamedTuple):
    """One request to the engine, independent of the transport."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    body: Json | None = None
    upload: FileUpload | None = None
    wait: int = 0  # seconds that the engine may hold the answer back
    download: str | None = None  # the local file for the answer's bytes; the result has their number
    plain: bool = False  # the answer is text, which is returned as {"text": ...}
    idempotent: bool = False  # it changes something, but the same again changes nothing more and gets the same answer

    @property
    def target(self) -> str:
        """Path and query, percent-encoded."""
        return self.path + ("?" + urlencode(self.query, errors="backslashreplace") if self.query else "")

    @property
    def repeatable(self) -> bool:
        """Whether another engine may be asked when nobody knows whether this one did it."""
        return self.method == "GET" or self.idempotent

    @property
    def timeout(self) -> float:
        return self.wait + ANSWER_SECONDS


class Calls(Generic[Result]):
    """Every call of the API. Arguments that are None are left to the engine's defaults."""

    def send(self, call: Call) -> Result:
        raise NotImplementedError

    def search(self, query: str, *, tags: Iterable[str] = (), **options: "Unpack[SearchOptions]") -> Result:
        body = _given(query=query, tags=list(tags) or None, **options)
        return self.send(Call("POST", f"{API}/search", body=body, idempotent=True))

    def add_note(
        self,
        text: str,
        *,
        tags: Iterable[str] | None = None,
        metadata: Json | None = None,
        wait: int = 0,
        **options: "Unpack[AddFields]",
    ) -> Result:
        body = _given(text=text, tags=None if tags is None else list(tags), metadata=metadata, **options)
        call = Call(
            "POST", f"{API}/jobs", _query(wait=wait or None), body, wait=wait, idempotent=not options.get("force")
        )
        return self.send(call)

    def add_file(
        self,
        path: str | PathLike[str],
        *,
        filename: str | None = None,
        tags: Iterable[str] | None = None,
        metadata: Json | None = None,
        force_ocr: bool | None = None,
        wait: int = 0,
        **options: "Unpack[AddFields]",
    ) -> Result:
        fields = _query(
            **options,
            metadata=None if metadata is None else json.dumps(metadata),
            # A list, so that no tags at all can be told from tags that were not given.
            tags=None if tags is None else json.dumps(list(tags)),
            force_ocr=force_ocr,
        )
        place = fspath(path)
        upload = FileUpload(place, filename or place.replace("\\", "/").rpartition("/")[2], fields)
        # The content or the path is the identity. With force, an edit that came in between would be replaced.
        once = bool(options.get("force"))
        asked = _query(wait=wait or None)
        return self.send(Call("POST", f"{API}/jobs", asked, upload=upload, wait=wait, idempotent=not once))

    def job(self, job_id: str) -> Result:
        return self.send(Call("GET", _path("jobs", job_id)))

    def jobs(self, *, status: "JobStatus | None" = None, limit: int | None = None, offset: int | None = None) -> Result:
        return self.send(Call("GET", f"{API}/jobs", _query(status=status, limit=limit, offset=offset)))

    def cancel_job(self, job_id: str) -> Result:
        return self.send(Call("POST", _path("jobs", job_id, "cancel")))

    def retry_job(self, job_id: str) -> Result:
        return self.send(Call("POST", _path("jobs", job_id, "retry")))

    def reindex(self, *, model: str | None = None, questions: Sequence[Json] = (), force: bool = False) -> Result:
        if model is None:
            return self.send(Call("POST", f"{API}/reindex"))
        body: Json = {"model": model, "questions": list(questions), "force": force}
        return self.send(Call("POST", f"{API}/reindex", body=body))

    def documents(self, *, tags: Iterable[str] = (), **options: "Unpack[ListOptions]") -> Result:
        query = _query(**options) + tuple(("tag", tag) for tag in tags)
        return self.send(Call("GET", f"{API}/documents", query))

    def document(
        self, document_id: int | str, *, first_chunk: int | None = None, max_chunks: int | None = None
    ) -> Result:
        asked = _query(first_chunk=first_chunk, max_chunks=max_chunks)
        return self.send(Call("GET", _path("documents", document_id), asked))

    def text(self, document_id: int | str, *, start: int | None = None, end: int | None = None) -> Result:
        return self.send(Call("GET", _path("documents", document_id, "text"), _query(start=start, end=end), plain=True))

    def links(self, document_id: int | str) -> Result:
        return self.send(Call("GET", _path("documents", document_id, "links")))

    def original(self, document_id: int | str, path: str | PathLike[str]) -> Result:
        return self.send(Call("GET", _path("documents", document_id, "original"), download=fspath(path)))

    def delete_document(self, document_id: int | str, *, purge: bool | None = None) -> Result:
        return self.send(Call("DELETE", _path("documents", document_id), _query(purge=purge)))

    def trash(self, *, limit: int | None = None, offset: int | None = None) -> Result:
        return self.send(Call("GET", f"{API}/trash", _query(limit=limit, offset=offset)))

    def restore_document(self, document_id: int | str, *, without_path: bool | None = None) -> Result:
        return self.send(Call("POST", _path("trash", document_id, "restore"), _query(without_path=without_path)))

    def empty_trash(self, expected_count: int) -> Result:
        query = _query(expected_count=expected_count)
        return self.send(Call("DELETE", f"{API}/trash", query, wait=SLOW_SECONDS))

    def clear(self, confirm: str) -> Result:
        return self.send(Call("DELETE", f"{API}/documents", _query(confirm=confirm), wait=SLOW_SECONDS))

    def edit_tags(self, document_id: int | str, *, add: Iterable[str] = (), remove: Iterable[str] = ()) -> Result:
        body = {"add": list(add), "remove": list(remove)}
        return self.send(Call("POST", _path("documents", document_id, "tags"), body=body, idempotent=True))

    def tags(self) -> Result:
        return self.send(Call("GET", f"{API}/tags"))

    def update_note(self, document_id: int | str, text: str, *, expected_version: int | None = None) -> Result:
        body = _given(text=text, expected_version=expected_version)
        return self.send(Call("PATCH", _path("notes", document_id), body=body))

    def note_versions(self, document_id: int | str) -> Result:
        return self.send(Call("GET", _path("notes", document_id, "versions")))

    def restore_note(self, document_id: int | str, version: int) -> Result:
        return self.send(Call("POST", _path("notes", document_id, "restore"), body={"version": version}))

    def watch(
        self,
        path: str,
        *,
        tags: Iterable[str] = (),
        include: Iterable[str] = (),
        exclude: Iterable[str] = (),
        ocr: bool | None = None,
    ) -> Result:
        body = _given(path=path, tags=list(tags), include=list(include), exclude=list(exclude), ocr=ocr)
        return self.send(Call("POST", f"{API}/folders", body=body))

    def folders(self) -> Result:
        return self.send(Call("GET", f"{API}/folders"))

    def folder(self, folder_id: int) -> Result:
        return self.send(Call("GET", _path("folders", folder_id)))

    def scan_folder(self, folder_id: int, *, confirm: bool = False) -> Result:
        return self.send(Call("POST", _path("folders", folder_id, "scan"), body={"confirm": confirm}))

    def unwatch(self, folder_id: int, *, documents: str | None = None) -> Result:
        return self.send(Call("DELETE", _path("folders", folder_id), _query(documents=documents), wait=SLOW_SECONDS))

    def duplicates(self, *, min_similarity: float | None = None, limit: int | None = None) -> Result:
        asked = _query(min_similarity=min_similarity, limit=limit)
        return self.send(Call("GET", f"{API}/duplicates", asked, wait=SLOW_SECONDS))

    def doctor(self, *, fix: bool = False) -> Result:
        return self.send(Call("POST" if fix else "GET", f"{API}/doctor", wait=SLOW_SECONDS))

    def backup(self, path: str | PathLike[str]) -> Result:
        return self.send(Call("GET", f"{API}/backup", wait=SLOW_SECONDS, download=fspath(path)))

    def export(self, path: str | PathLike[str]) -> Result:
        return self.send(Call("GET", f"{API}/export", wait=SLOW_SECONDS, download=fspath(path)))

    def status(self) -> Result:
        return self.send(Call("GET", f"{API}/status"))

    def health(self) -> Result:
        return self.send(Call("GET", "/health"))


def multipart(upload: FileUpload, boundary: str) -> tuple[bytes, bytes]:
    """The bytes before and after those of the file, which the transport streams between them."""
    parts = [
        f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        for name, value in upload.fields
    ]
    # A quoted string: quotes and backslashes are escaped, line ends cannot stand in a header at all.
    filename = re.sub(r'(["\\])', r"\\\1", re.sub(r"[\r\n]", "_", upload.filename))
    parts.append(
        f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{filename}"\r\n'
        "Content-Type: application/octet-stream\r\n\r\n"
    )
    return _utf8("".join(parts)), _utf8(f"\r\n--{boundary}--\r\n")


def _path(*parts: object) -> str:
    return "/".join((API, *(quote(str(part), safe="", errors="backslashreplace") for part in parts)))


def _given(**fields: object) -> Json:
    return {name: value for name, value in fields.items() if value is not None}


def _query(**fields: object) -> tuple[tuple[str, str], ...]:
    return tuple(
        (name, str(value).lower() if isinstance(value, bool) else str(value))
        for name, value in fields.items()
        if value is not None
    )


def _utf8(text: str) -> bytes:
    # A file name may hold bytes that are no text; they stay visible.
    return text.encode("utf-8", "backslashreplace")
