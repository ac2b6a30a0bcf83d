"""A small MCP client: one session over Streamable HTTP, carried by the standard library.

`kb connect` proves a configuration with it, `kb bridge` lends it to agents that only speak stdio. Failures
are raised as the client's errors, in one sentence that names the address.
"""

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import SplitResult, urlsplit

from kb import __version__
from kb.core.errors import Forbidden, InvalidRequest, KBError, NotFound, Unauthorized, Unavailable
from kb.core.types import Json

PROTOCOL = "2025-06-18"
CONNECT_SECONDS = 5
# A tool may work for long on a large file; a server that is gone closes the connection.
ANSWER_SECONDS = 3600
LONGEST_REASON = 300


class SessionLostError(Exception):
    """The server no longer knows the session, as it was restarted."""


class Conversation:
    """What an agent does with an MCP server, over any transport."""

    url: str  # where the server is, for people

    def post(self, message: Json) -> Iterator[Json]:
        """Send one message, and yield the server's messages about it as they arrive."""
        raise NotImplementedError

    def close(self) -> None:
        """End the session on the server."""
        raise NotImplementedError

    def call(self, method: str, params: Json) -> Json:
        """The result of one request."""
        for answer in self.post({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}):
            if "error" in answer:
                raise Unavailable(str(answer["error"].get("message")), url=self.url)
            if "result" in answer:
                result: Json = answer["result"]
                return result
        raise Unavailable(f"The MCP server at {self.url} gave no answer to {method}.")

    def initialize(self) -> Json:
        """Do the handshake. Return what the server says about itself."""
        about = {"name": "kb", "version": __version__}
        said = self.call("initialize", {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": about})
        for _ in self.post({"jsonrpc": "2.0", "method": "notifications/initialized"}):
            pass
        return said


class McpSession(Conversation):
    """One session over HTTP. Messages may overlap: each has a connection of its own."""

    def __init__(self, url: str, headers: "dict[str, str] | None" = None) -> None:
        self.url = url
        self._parts = _address(url)
        self._headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "User-Agent": f"kb/{__version__}",
            **(headers or {}),
        }
        self._session: dict[str, str] = {}
        self._opening = threading.Lock()
        self._opened_with: Json | None = None

    def post(self, message: Json) -> Iterator[Json]:
        """If the server was restarted meanwhile, open a new session first; the agent does not notice."""
        if message.get("method") == "initialize":
            yield from self._open(message)
            return
        session = self._session
        try:
            yield from self._exchange(message, session)
        except SessionLostError:
            with self._opening:
                if self._session is session:
                    self._reopen()
            yield from self._exchange(message, self._session)

    def close(self) -> None:
        if "Mcp-Session-Id" in self._session:
            with suppress(KBError, SessionLostError), self._request("DELETE", b"", self._session):
                pass
            self._session = {}

    def _open(self, message: Json) -> Iterator[Json]:
        self._opened_with = message
        with self._request("POST", _bytes(message), {}) as answer:
            session = answer.headers.get("Mcp-Session-Id")
            for said in _messages(answer):
                revision = said.get("result", {}).get("protocolVersion")
                # Both go with every request from now on.
                given = {"Mcp-Session-Id": session, "MCP-Protocol-Version": revision}
                self._session = {name: value for name, value in given.items() if value}
                yield said

    def _reopen(self) -> None:
        if self._opened_with is None:
            raise NotFound(f"The MCP server at {self.url} knows no such session.")
        for _ in self._open(self._opened_with):
            pass
        for _ in self._exchange({"jsonrpc": "2.0", "method": "notifications/initialized"}, self._session):
            pass

    def _exchange(self, message: Json, session: dict[str, str]) -> Iterator[Json]:
        with self._request("POST", _bytes(message), session) as answer:
            yield from _messages(answer)

    @contextmanager
    def _request(self, method: str, body: bytes, session: dict[str, str]) -> Iterator[http.client.HTTPResponse]:
        parts = self._parts
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        connection = kind(parts.hostname or "", parts.port, timeout=CONNECT_SECONDS)
        try:
            try:
                connection.connect()
            except OSError as refused:
                raise self._away(refused.strerror or refused) from refused
            connection.sock.settimeout(ANSWER_SECONDS)
            target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            connection.request(method, target, body, self._headers | session)
            answer = connection.getresponse()
            if answer.status >= 400:
                self._refuse(answer.status, answer.read(), known=bool(session))
            yield answer
        except (OSError, http.client.HTTPException) as broken:
            raise Unavailable(f"The connection to the MCP server at {self.url} broke: {broken}.") from broken
        finally:
            connection.close()

    def _away(self, reason: object) -> Unavailable:
        return Unavailable(f"The MCP server at {self.url} is unreachable ({reason}); start it with: kb up")

    def _refuse(self, status: int, body: bytes, *, known: bool) -> None:
        if status == 404 and known:
            raise SessionLostError
        why = _reason(body)
        if status == 401:
            raise Unauthorized(f"The MCP server at {self.url} wants another key: set KB_MCP_API_KEY to the one it has.")
        if status == 403:
            raise Forbidden(f"The MCP server at {self.url} refused the request: {why}")
        if status == 404:
            raise NotFound(f"There is no MCP server at {self.url}: HTTP 404.")
        raise KBError(f"The MCP server at {self.url} answered HTTP {status}: {why}")


def _address(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        fits = parts.scheme in ("http", "https") and parts.hostname and (parts.port or 1)
    except ValueError:
        fits = None
    if not fits:
        raise InvalidRequest(f"{url!r} is not the address of an MCP server: it looks like http://HOST:PORT/mcp.")
    return parts


def _bytes(message: Json) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode()


def _messages(answer: http.client.HTTPResponse) -> Iterator[Json]:
    """JSON as a whole, or server-sent events as they come."""
    kind = answer.headers.get_content_type()
    if kind == "text/event-stream":
        data: list[str] = []
        for line in answer:
            text = line.decode("utf-8", "replace").rstrip("\r\n")
            if text.startswith("data:"):
                data.append(text[5:].removeprefix(" "))
            elif not text and any(data):
                yield json.loads("\n".join(data))
            if not text:
                data.clear()
    elif body := answer.read():
        try:
            yield json.loads(body)
        except ValueError as strange:
            raise http.client.HTTPException("what came back is not an MCP answer") from strange


def _reason(body: bytes) -> str:
    try:
        return str(json.loads(body)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return body[:LONGEST_REASON].decode("utf-8", "replace") or "no reason was given"
