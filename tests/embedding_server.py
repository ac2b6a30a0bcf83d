"""An embedding server on a real socket, in this process: kb's own model behind the protocols of OpenAI and Ollama."""

import json
import threading
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

from kb.core.settings import bundled_model_dir
from kb.embedding.embedder import load

Embed = Callable[[Sequence[str]], Any]  # rows of numbers
Answer = Callable[[Sequence[str]], tuple[int, Any]]


class EmbeddingServer:
    """`answer` gives status and body of the next answers in place of vectors; None: as it should be."""

    def __init__(
        self, embed: Embed, protocol: str = "openai", models: Sequence[str] = ("served",), port: int = 0
    ) -> None:
        self.embed, self.protocol, self.models = embed, protocol, list(models)
        self.answer: Answer | None = None
        self.refused = ""  # a text that is answered with 500
        self.requests: list[dict[str, Any]] = []  # bodies, with the headers under `headers`
        self._http = ThreadingHTTPServer(("127.0.0.1", port), partial(Handler, self))
        self.port = self._http.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def listed(self, path: str) -> tuple[int, Any]:
        if path == "/v1/models" and self.protocol == "openai":
            return 200, {"data": [{"id": name} for name in self.models]}
        if path == "/api/tags" and self.protocol == "ollama":
            return 200, {"models": [{"name": name} for name in self.models]}
        return 404, {"error": "no such path"}

    def embedded(self, path: str, body: dict[str, Any], headers: dict[str, str]) -> tuple[int, Any]:
        if path != {"openai": "/v1/embeddings", "ollama": "/api/embed"}[self.protocol]:
            return 404, "no such path"
        self.requests.append(body | {"headers": headers})
        if self.refused in body["input"]:
            return 500, {"error": {"message": "it makes the server stumble"}}
        if self.answer:
            return self.answer(body["input"])
        rows = [[float(number) for number in row] for row in self.embed(body["input"])]
        if self.protocol == "ollama":
            return 200, {"embeddings": rows}
        # In any order: `index` says which is which.
        return 200, {"data": [{"index": index, "embedding": row} for index, row in enumerate(rows)][::-1]}

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()

    def again(self) -> "EmbeddingServer":
        """The same server at the same port, after it was closed."""
        return EmbeddingServer(self.embed, self.protocol, self.models, self.port)


class Handler(BaseHTTPRequestHandler):
    def __init__(self, server: EmbeddingServer, *arguments: Any) -> None:
        self.embeddings = server
        super().__init__(*arguments)

    def do_GET(self) -> None:
        self.reply(*self.embeddings.listed(self.path))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.reply(*self.embeddings.embedded(self.path, body, dict(self.headers)))

    def reply(self, status: int, body: Any) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        pass


def minilm() -> Embed:
    """The vectors of kb's own model, longer than unit vectors, as some servers give them."""
    model = load(bundled_model_dir())
    return lambda texts: model.embed([text[:500] for text in texts]) * 3


def bags_of_words(dimensions: int) -> Embed:
    """Vectors that count words: no model, and with as many dimensions as a test wants."""

    def embed(texts: Sequence[str]) -> Any:
        rows = np.full((len(texts), dimensions), 0.01)
        for row, text in zip(rows, texts, strict=True):
            for word in text.lower().split():
                row[zlib.crc32(word.encode()) % dimensions] += 1
        return rows

    return embed
