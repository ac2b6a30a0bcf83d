"""Requests to an embedding endpoint of the user's own: OpenAI's protocol, which most servers speak, or Ollama's.

No proxy and no redirect: texts and the key go to the given address and nowhere else. Every failure is raised as an
error that says what the endpoint did; an answer is taken only if it is complete and every number finite.
"""

import http.client
import json
import socket
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
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
UNKNOWN_PATH = (400, 404, 405, 501)  # statuses of a server that does not know a path
PASSING = (408, 425, 429, 500, 502, 503, 504)  # after which the same request may succeed
WAITS = (0.5, 2.0)  # seconds before a request is repeated
LIST_SECONDS = 10.0
LARGEST_ANSWER = 2**26  # bytes
LONGEST_SAID = 200  # characters of what an endpoint says of an error
SMALLEST = 1e-9  # the largest number of a vector that has a direction is not below it
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
        self._secure, self._path = split.scheme == "https", split.path
        self._host, self._port = plain_address(endpoint.url)
        if not endpoint.key.isascii() or not endpoint.key.isprintable():
            raise InvalidRequest(
                "KB_EMBED_API_KEY holds characters that cannot be sent: a key has printable ASCII only."
            )
        self._target = ""  # the path that embeds, once it is known
        self._open: set[http.client.HTTPConnection] = set()
        self._closed = False

    def close(self) -> None:
        """End the requests that are under way; later ones fail at once."""
        self._closed = True
        for connection in list(self._open):
            abort(connection)

    def model(self) -> str:
        """The name of the model: the one that was asked for, else the only one that the server lists."""
        if self._endpoint.model:
            return self._endpoint.model
        base = self._path.removesuffix(OLLAMA).removesuffix(OPENAI).removesuffix("/v1")
        names: list[str] = []
        for path, held, named in ((f"{base}/v1/models", "data", "id"), (f"{base}/api/tags", "models", "name")):
            status, answer = self._exchange("GET", path, None, LIST_SECONDS)
            with suppress(ValueError, KeyError, TypeError, RecursionError):
                names = names or ([str(one[named]) for one in json.loads(answer)[held]] if status == 200 else [])
        if len(names) > 1:
            raise InvalidRequest(
                f"The embedding endpoint {self._endpoint.url} has several models: {', '.join(sorted(names))}. "
                "Name one of them with KB_EMBED_MODEL."
            )
        return names[0] if names else UNNAMED

    def embed(self, model: str, texts: Sequence[str], *, seconds: float, repeat: bool) -> Vectors:
        """A vector for each text, in order, as the endpoint gives it. A request that takes `seconds` is ended."""
        for wait in WAITS if repeat else ():
            try:
                return self._embedded(model, texts, seconds)
            except Unavailable:
                time.sleep(0 if self._closed else wait)
        return self._embedded(model, texts, seconds)

    def _embedded(self, model: str, texts: Sequence[str], seconds: float) -> Vectors:
        refusals = []
        for target in self._targets():
            # What is too long for the model is refused, as far as the protocol can say so: nothing is cut in silence.
            own = {"truncate": False} if target.endswith(OLLAMA) else {"encoding_format": "float"}
            status, answer = self._exchange("POST", target, {"model": model, "input": list(texts)} | own, seconds)
            if status == 200:
                vectors = self._read(answer, len(texts))
                self._target = target
                return vectors
            said = error_in(answer)
            refusals.append((not said, self._refusal(status, said)))
            if status not in UNKNOWN_PATH:
                break
        # Of several, the first that gives a reason: a server says of a path that it does not know less than of a model.
        raise min(refusals, key=lambda each: each[0])[1]

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
        kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
        connection = kind(self._host, self._port, timeout=seconds)
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        if self._endpoint.key:
            headers["Authorization"] = f"Bearer {self._endpoint.key}"
        deadline = threading.Timer(seconds, abort, [connection])
        deadline.daemon = True
        self._open.add(connection)
        try:
            if self._closed:
                raise ConnectionAbortedError("kb is being stopped")
            deadline.start()
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            read = answer.read(LARGEST_ANSWER + 1)
        except (http.client.HTTPException, OSError) as wrong:
            late = deadline.finished.is_set() and not self._closed
            reason = f"no answer within {seconds:.0f} seconds" if late else reason_of(wrong)
            raise self.unavailable(f"cannot be reached ({reason})") from wrong
        finally:
            deadline.cancel()
            self._open.discard(connection)
            connection.close()
        if len(read) > LARGEST_ANSWER:
            raise self.unavailable("answers with more than 64 MB")
        return answer.status, read

    def _read(self, answer: bytes, wanted: int) -> Vectors:
        """The vectors of an answer in either protocol."""
        try:
            held = json.loads(answer)
            if "embeddings" in held:
                rows = list(held["embeddings"])
            else:
                data = sorted(held["data"], key=lambda row: int(row["index"]))
                rows = [row["embedding"] for at, row in enumerate(data) if int(row["index"]) == at]
            vectors = np.array(rows, np.float32)
        except (ValueError, KeyError, TypeError, RecursionError) as wrong:
            raise self.unavailable("answers with something that is no list of vectors") from wrong
        if vectors.ndim != 2 or len(vectors) != wanted or not vectors.shape[1]:
            raise self.unavailable(f"answers with {len(rows)} vectors to {wanted} texts, or with empty ones")
        if not np.isfinite(vectors).all() or not (np.abs(vectors).max(axis=1) >= SMALLEST).all():
            raise self.unavailable("answers with vectors that have no direction")
        return vectors

    def _refusal(self, status: int, said: str) -> KBError:
        answers = f"answers {status}{said and f' ({said})'}"
        if status in (401, 403):
            return self.unavailable(f"refuses the key ({status}): set KB_EMBED_API_KEY")
        if 300 <= status < 400:
            return self.unavailable(f"answers {status}, a redirect, which kb does not follow: name the address itself")
        if status in PASSING or status in UNKNOWN_PATH[1:]:
            return self.unavailable(answers)
        return InvalidRequest(
            f"The embedding endpoint {self._endpoint.url} {answers}. If a text is too long for its model, a smaller "
            "KB_CHUNK_TOKENS makes shorter passages.",
            endpoint_status=status,
        )

    def unavailable(self, what: str) -> Unavailable:
        return Unavailable(f"The embedding endpoint {self._endpoint.url} {what}.")


def plain_address(url: str) -> tuple[str, int | None]:
    split = urlsplit(url)
    with suppress(ValueError):  # a port that is none
        if split.hostname and "@" not in split.netloc and not split.query and not split.fragment:
            return split.hostname, split.port
    raise InvalidRequest(
        "KB_EMBED_URL is no plain address of a server, like http://127.0.0.1:11434. A key belongs into "
        "KB_EMBED_API_KEY."
    )


def error_in(answer: bytes) -> str:
    """What an answer says is wrong, as both protocols do: `error`, which may hold a `message`."""
    try:
        said = json.loads(answer)["error"]
        said = said["message"] if isinstance(said, dict) else said
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
    return " ".join(str(said).split())[:LONGEST_SAID]


def reason_of(wrong: Exception) -> str:
    return getattr(wrong, "strerror", None) or str(wrong) or type(wrong).__name__


def abort(connection: http.client.HTTPConnection) -> None:
    """End a request from another thread: what waits for its answer fails."""
    with suppress(OSError, AttributeError):  # it may have ended just now
        connection.sock.shutdown(socket.SHUT_RDWR)
