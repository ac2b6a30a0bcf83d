"""The typed client of the REST API: every call is described once, whoever carries it.

`Calls` has one method per route; each describes its request as a frozen `Call` and hands it to `send`. Who
carries calls derives from it and overrides `send` alone: `kb.cli.transport` with the standard library
(`Calls[Json]`), an asynchronous one as `Calls[Awaitable[Json]]`. They share what is here: where the engine
is and the sentences for what can go wrong on the way (`Engine`), how a file is framed (`multipart`), what an
answer means (`read_answer`). The MCP server's is in `kb.mcp.engine_client`.

Nothing is imported here that `kb search` does not need: it must feel instant.
"""

import json
import re
from collections.abc import Iterable
from os import PathLike, fspath
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from kb import __version__
from kb.core.errors import InvalidRequest, KBError, Unavailable, from_body

if TYPE_CHECKING:
    # Creating the values costs a quarter of what `kb search` may take; the client only names their types.
    from kb.core.endpoint import Place
    from kb.core.settings import Settings
    from kb.core.values import DocType, JobStatus, Json, Mode, Order, Sort

API = "/api/v1"
MIN_ENGINE_VERSION = "3.0.0"
CONNECT_SECONDS = 5
# What an answer may take beyond the time that the engine was asked to wait.
ANSWER_SECONDS = 60
# What looks at everything may take this long.
SLOW_SECONDS = 3600

Result = TypeVar("Result")  # Json, or an awaitable of it


class Upload(NamedTuple):
    """A file of this machine, sent as one multipart form without being read into memory."""

    path: str
    filename: str
    fields: tuple[tuple[str, str], ...]


class Call(NamedTuple):
    """One request to the engine, before anybody decided how to carry it."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    body: "Json | None" = None
    upload: Upload | None = None
    wait: int = 0  # seconds that the engine may hold the answer back
    download: str | None = None  # a file of this machine that takes the answer's bytes; the answer says how many
    plain: bool = False  # the answer is text, which is handed on as {"text": ...}

    @property
    def target(self) -> str:
        """Path and query, percent-encoded."""
        return self.path + ("?" + urlencode(self.query, errors="backslashreplace") if self.query else "")

    @property
    def timeout(self) -> float:
        return self.wait + ANSWER_SECONDS


class Calls(Generic[Result]):
    """Every call of the API. Arguments that are None are left to the engine's defaults."""

    def send(self, call: Call) -> Result:
        raise NotImplementedError

    def search(
        self,
        query: str,
        *,
        top: int | None = None,
        tags: Iterable[str] = (),
        doc_type: "DocType | None" = None,
        mode: "Mode | None" = None,
        fts_only: bool | None = None,
        min_score: float | None = None,
        source_path: str | None = None,
        media_type: str | None = None,
        created_after: str | None = None,
        created_before: str | None = None,
        max_tokens: int | None = None,
        explain: bool | None = None,
    ) -> Result:
        body = _given(
            query=query,
            top=top,
            tags=list(tags) or None,
            doc_type=doc_type,
            mode=mode,
            fts_only=fts_only,
            min_score=min_score,
            source_path=source_path,
            media_type=media_type,
            created_after=created_after,
            created_before=created_before,
            max_tokens=max_tokens,
            explain=explain,
        )
        return self.send(Call("POST", f"{API}/search", body=body))

    def add_note(
        self,
        text: str,
        *,
        title: str | None = None,
        tags: Iterable[str] | None = None,
        source_path: str | None = None,
        metadata: "Json | None" = None,
        replace_tags: bool | None = None,
        force: bool | None = None,
        wait: int = 0,
    ) -> Result:
        body = _given(
            text=text,
            title=title,
            tags=None if tags is None else list(tags),
            source_path=source_path,
            metadata=metadata,
            replace_tags=replace_tags,
            force=force,
        )
        return self.send(Call("POST", f"{API}/jobs", _query(wait=wait or None), body, wait=wait))

    def add_file(
        self,
        path: str | PathLike[str],
        *,
        filename: str | None = None,
        title: str | None = None,
        tags: Iterable[str] | None = None,
        source_path: str | None = None,
        metadata: "Json | None" = None,
        force_ocr: bool | None = None,
        replace_tags: bool | None = None,
        force: bool | None = None,
        wait: int = 0,
    ) -> Result:
        fields = _query(
            title=title,
            source_path=source_path,
            metadata=None if metadata is None else json.dumps(metadata),
            # A list, so that no tags at all can be told from tags that were not given.
            tags=None if tags is None else json.dumps(list(tags)),
            force_ocr=force_ocr,
            replace_tags=replace_tags,
            force=force,
        )
        place = fspath(path)
        upload = Upload(place, filename or place.replace("\\", "/").rpartition("/")[2], fields)
        return self.send(Call("POST", f"{API}/jobs", _query(wait=wait or None), upload=upload, wait=wait))

    def job(self, job_id: str) -> Result:
        return self.send(Call("GET", _path("jobs", job_id)))

    def jobs(self, *, status: "JobStatus | None" = None, limit: int | None = None, offset: int | None = None) -> Result:
        return self.send(Call("GET", f"{API}/jobs", _query(status=status, limit=limit, offset=offset)))

    def cancel_job(self, job_id: str) -> Result:
        return self.send(Call("POST", _path("jobs", job_id, "cancel")))

    def retry_job(self, job_id: str) -> Result:
        return self.send(Call("POST", _path("jobs", job_id, "retry")))

    def reindex(self) -> Result:
        return self.send(Call("POST", f"{API}/reindex"))

    def documents(
        self,
        *,
        source_path: str | None = None,
        tags: Iterable[str] = (),
        doc_type: "DocType | None" = None,
        sort: "Sort | None" = None,
        order: "Order | None" = None,
        limit: int | None = None,
        offset: int | None = None,
    ) -> Result:
        asked = _query(source_path=source_path, doc_type=doc_type, sort=sort, order=order, limit=limit, offset=offset)
        return self.send(Call("GET", f"{API}/documents", asked + tuple(("tag", tag) for tag in tags)))

    def document(
        self, document_id: int | str, *, first_chunk: int | None = None, max_chunks: int | None = None
    ) -> Result:
        asked = _query(first_chunk=first_chunk, max_chunks=max_chunks)
        return self.send(Call("GET", _path("documents", document_id), asked))

    def text(self, document_id: int | str, *, start: int | None = None, end: int | None = None) -> Result:
        return self.send(Call("GET", _path("documents", document_id, "text"), _query(start=start, end=end), plain=True))

    def original(self, document_id: int | str, path: str | PathLike[str]) -> Result:
        return self.send(Call("GET", _path("documents", document_id, "original"), download=fspath(path)))

    def delete_document(self, document_id: int | str) -> Result:
        return self.send(Call("DELETE", _path("documents", document_id)))

    def clear(self, confirm: str) -> Result:
        return self.send(Call("DELETE", f"{API}/documents", _query(confirm=confirm), wait=SLOW_SECONDS))

    def edit_tags(self, document_id: int | str, *, add: Iterable[str] = (), remove: Iterable[str] = ()) -> Result:
        body = {"add": list(add), "remove": list(remove)}
        return self.send(Call("POST", _path("documents", document_id, "tags"), body=body))

    def tags(self) -> Result:
        return self.send(Call("GET", f"{API}/tags"))

    def update_note(self, document_id: int | str, text: str, *, expected_version: int | None = None) -> Result:
        body = _given(text=text, expected_version=expected_version)
        return self.send(Call("PATCH", _path("notes", document_id), body=body))

    def note_versions(self, document_id: int | str) -> Result:
        return self.send(Call("GET", _path("notes", document_id, "versions")))

    def restore_note(self, document_id: int | str, version: int) -> Result:
        return self.send(Call("POST", _path("notes", document_id, "restore"), body={"version": version}))

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


class Engine(NamedTuple):
    """Where the engine is and what every request to it carries."""

    url: str  # as people write it, without a slash at the end
    secure: bool
    host: str
    port: int
    authority: str  # host and port as the header Host wants them
    prefix: str  # path that a reverse proxy puts before everything
    headers: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, settings: "Settings | Place") -> "Engine":
        """The engine that the settings name; what cannot work is refused by name."""
        url, key = settings.engine_url, settings.api_key
        if key and not re.fullmatch(r"[!-~]+", key):
            raise InvalidRequest("KB_API_KEY holds what no HTTP header can carry: use printable ASCII.")
        try:
            parts = urlsplit(url)
            port = parts.port or (443 if parts.scheme == "https" else 80)
            host = parts.hostname or ""
            if not host.isascii():  # the encoding is slow to load
                host = host.encode("idna").decode()
        except ValueError as wrong:
            raise InvalidRequest(f"KB_ENGINE_URL is {url!r}, which is not a URL: {wrong}.") from wrong
        if parts.username or parts.password:
            raise InvalidRequest("KB_ENGINE_URL must not hold a user or password: the key is KB_API_KEY.")
        if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment:
            raise InvalidRequest(
                f"KB_ENGINE_URL is {url!r}, but must look like http://HOST:PORT or https://HOST/PREFIX."
            )
        if parts.port == 0:
            raise InvalidRequest(
                "The engine takes any free port (KB_PORT is 0), so its address is not known: set KB_ENGINE_URL to the "
                "one that `kb serve` shows."
            )
        headers = [("Accept", "application/json"), ("User-Agent", f"kb/{__version__}")]
        if key:
            headers.append(("Authorization", f"Bearer {key}"))
        name = f"[{host}]" if ":" in host else host
        prefix = parts.path.rstrip("/")
        return cls(
            url=f"{parts.scheme}://{parts.netloc}{prefix}",
            secure=parts.scheme == "https",
            host=host,
            port=port,
            authority=name if parts.port is None else f"{name}:{port}",
            prefix=quote(prefix, safe="/%"),
            headers=tuple(headers),
        )

    def unreachable(self, reason: object) -> Unavailable:
        return self._away(f"The engine at {self.url} is unreachable ({reason}); start it with: kb serve")

    def silent(self, call: Call) -> Unavailable:
        return self._away(
            f"The engine at {self.url} did not answer {call.method} {call.path} within {call.timeout:g} s. "
            "It may be busy: try again, or look at its log."
        )

    def broken(self, reason: object) -> Unavailable:
        return self._away(
            f"The connection to {self.url} broke before the answer was complete ({reason}). "
            "Whether the request took effect is not known: look before you repeat it."
        )

    def foreign(self, what: str) -> Unavailable:
        return self._away(f"What answers at {self.url} is not a kb engine: {what}. Check KB_ENGINE_URL.")

    def outdated(self, version: str | None) -> Unavailable:
        told = f"is version {version}" if version else "does not say its version, so it is older"
        return self._away(
            f"kb {__version__} needs an engine of version {MIN_ENGINE_VERSION} or newer, but the one at "
            f"{self.url} {told}: update it."
        )

    def _away(self, message: str) -> Unavailable:
        return Unavailable(message, url=self.url)


def read_answer(engine: Engine, status: int, version: str | None, body: bytes, *, plain: bool = False) -> "Json":
    """The engine's answer as plain data, or the error that it carries. `version`: the header X-KB-Version."""
    try:
        answer = {"text": body.decode()} if plain and version and status < 400 else json.loads(body)
    except ValueError:
        answer = None
    if version is None and not isinstance(answer, dict):
        raise engine.foreign(f"it sent HTTP {status} without a version and without JSON")
    if version is None or _numbers(version) < _numbers(MIN_ENGINE_VERSION):
        raise engine.outdated(version)
    if not isinstance(answer, dict):
        raise KBError(f"The engine at {engine.url} sent HTTP {status} with no JSON object in it.")
    if status < 400:
        return answer
    if not isinstance(answer.get("error"), dict):
        raise KBError(f"The engine at {engine.url} sent HTTP {status} without saying why.")
    raise from_body(answer)


def multipart(upload: Upload, boundary: str) -> tuple[bytes, bytes]:
    """What goes before and after the file's bytes, so that any transport can stream them between."""
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


def _given(**fields: object) -> "Json":
    return {name: value for name, value in fields.items() if value is not None}


def _query(**fields: object) -> tuple[tuple[str, str], ...]:
    return tuple(
        (name, str(value).lower() if isinstance(value, bool) else str(value))
        for name, value in fields.items()
        if value is not None
    )


def _utf8(text: str) -> bytes:
    # A file name may hold bytes that are no text; they stay visible instead of stopping the upload.
    return text.encode("utf-8", "backslashreplace")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])
