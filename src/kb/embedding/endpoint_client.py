"""Requests to an embedding endpoint of the user's own: OpenAI's protocol, which most servers speak, or Ollama's.

No proxy and no redirect: texts and the key go to the given address and nowhere else. Every failure is raised as an
error that says what the endpoint did and what to do; an answer is taken only if it is complete and every number finite.
"""

import http.client
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from kb.core.errors import InvalidRequest, KBError, Unavailable

Vectors = NDArray[np.float32]

OLLAMA = "/api/embed"
OPENAI = "/embeddings"
# Where a server that is named without a path may answer. Ollama's own protocol first: it refuses what is too long for
# the model, where its imitation of OpenAI's cuts in silence.
GUESSES = (OLLAMA, f"/v1{OPENAI}", OPENAI)
PASSING = {408, 425, 429, 500, 502, 503, 504}  # statuses after which the same request may succeed
WAITS = (0.5, 2.0)  # seconds before a request is repeated
LARGEST_ANSWER = 2**26  # bytes
BLOCK = 2**16
LONGEST_SAID = 200  # characters of an error of the endpoint
NO_LENGTH = 1e-9  # a vector with smaller numbers has no direction
UNNAMED = "default"  # sent where no model is named and the server lists none: it has only one


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where an embedding server is, and what to ask it for."""

    url: str  # of the server, of its `/v1`, or of the very path that embeds
    model: str = ""  # empty: the only one that the server lists
    key: str = ""


class EndpointClient:
    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        split = urlsplit(endpoint.url)
        self._secure, self._host, self._path = split.scheme == "https", split.hostname, split.path
        try:
            self._port = split.port
        except ValueError:
            self._host = None
        if not self._host or "@" in split.netloc or split.query or split.fragment:
            raise InvalidRequest(
                "KB_EMBED_URL is no plain address of a server, like http://127.0.0.1:11434. A key belongs into "
                "KB_EMBED_API_KEY."
            )
        self._target = ""  # the path that embeds, once it is known

    def model(self) -> str:
        """The name of the model: the one that was asked for, else the only one that the server lists."""
        if self._endpoint.model:
            return self._endpoint.model
        base = self._path.removesuffix(OLLAMA).removesuffix(OPENAI).removesuffix("/v1")
        names: list[str] = []
        for path, held, named in ((f"{base}/v1/models", "data", "id"), (f"{base}/api/tags", "models", "name")):
            status, answer = self._exchange("GET", path, None, seconds=10)
            try:
                names = [str(one[named]) for one in json.loads(answer)[held]] if status == 200 else []
            except (ValueError, KeyError, TypeError):
                continue
            if names:
                break
        if len(names) > 1:
            raise InvalidRequest(
                f"The embedding endpoint {self._endpoint.url} has several models: {', '.join(sorted(names))}. "
                "Name one of them with KB_EMBED_MODEL."
            )
        return names[0] if names else UNNAMED

    def embed(self, model: str, texts: Sequence[str], *, seconds: float, repeat: bool) -> Vectors:
        """A vector for each text, in order, as the endpoint gives it. `seconds` without a byte end a request."""
        for wait in WAITS if repeat else ():
            try:
                return self._embedded(model, texts, seconds)
            except Unavailable:
                time.sleep(wait)
        return self._embedded(model, texts, seconds)

    def _embedded(self, model: str, texts: Sequence[str], seconds: float) -> Vectors:
        for target in self._targets():
            # What is too long for the model is refused, as far as the protocol can say so: nothing is cut in silence.
            own = {"truncate": False} if target.endswith(OLLAMA) else {"encoding_format": "float"}
            body = {"model": model, "input": list(texts)} | own
            status, answer = self._exchange("POST", target, body, seconds)
            if status == 200:
                vectors = self._read(answer, len(texts))
                self._target = target
                return vectors
            refusal = self._refusal(status, answer)
            if status not in (400, 404, 405, 501):  # of a path that the server does not know
                break
        raise refusal

    def _targets(self) -> Sequence[str]:
        """The paths to try, the likeliest first."""
        if self._target:
            return [self._target]
        if self._path.endswith((OLLAMA, OPENAI)):
            return [self._path]
        if self._path.endswith("/v1"):
            return [f"{self._path}{OPENAI}"]
        return [f"{self._path}{guess}" for guess in GUESSES]

    def _exchange(self, method: str, path: str, body: Any, seconds: float) -> tuple[int, bytes]:
        """One request on a connection of its own; the status and the body of the answer."""
        assert self._host is not None
        kind: Callable[..., http.client.HTTPConnection] = http.client.HTTPConnection
        if self._secure:
            kind = http.client.HTTPSConnection
        connection = kind(self._host, self._port, timeout=seconds)
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        if self._endpoint.key:
            headers["Authorization"] = f"Bearer {self._endpoint.key}"
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            read = answer.read(LARGEST_ANSWER + 1)
        except (TimeoutError, socket.gaierror, ssl.SSLError, http.client.HTTPException, OSError) as wrong:
            reason = getattr(wrong, "strerror", None) or str(wrong) or type(wrong).__name__
            raise self.unavailable(f"cannot be reached ({reason})") from wrong
        finally:
            connection.close()
        if len(read) > LARGEST_ANSWER:
            raise self.unavailable("answers with more than 64 MB")
        return answer.status, read

    def _read(self, answer: bytes, wanted: int) -> Vectors:
        """The vectors of an answer in either protocol."""
        try:
            held = json.loads(answer)
            if "embeddings" in held:
                rows = held["embeddings"]
            else:
                rows = [row["embedding"] for row in sorted(held["data"], key=lambda row: int(row["index"]))]
            vectors = np.array(rows, np.float32)
        except (ValueError, KeyError, TypeError) as wrong:
            raise self.unavailable("answers with something that is no list of vectors") from wrong
        if vectors.ndim != 2 or len(vectors) != wanted or not vectors.shape[1]:
            raise self.unavailable(f"answers with {len(rows)} vectors to {wanted} texts, or with empty ones")
        if not np.isfinite(vectors).all() or not (np.abs(vectors).max(axis=1) > 0).all():
            raise self.unavailable("answers with vectors that have no direction")
        return vectors

    def _refusal(self, status: int, answer: bytes) -> KBError:
        said = " ".join(answer[:300].decode(errors="replace").split())
        if status in (401, 403):
            return self.unavailable(f"refuses the key ({status}): set KB_EMBED_API_KEY")
        if 300 <= status < 400:
            return self.unavailable(
                f"answers with a redirect ({status}), which kb does not follow: name the address itself"
            )
        if status in PASSING or status in (404, 405, 501):
            return self.unavailable(f"answers {status}: {said}")
        return InvalidRequest(
            f"The embedding endpoint {self._endpoint.url} refuses a text ({status}): {said}. A smaller KB_CHUNK_TOKENS "
            "makes shorter passages.",
            endpoint_status=status,
        )

    def unavailable(self, what: str) -> Unavailable:
        return Unavailable(
            f"The embedding endpoint {self._endpoint.url} {what}. Nothing is lost: additions wait for it, and searches "
            "by words alone (mode `fts`) work.",
            endpoint_away=True,
        )
