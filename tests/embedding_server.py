"""An embedding server on a real socket, in this process: kb's own model behind the protocols of OpenAI and Ollama."""

import json
import threading
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

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
        self.requests: list[dict[str, Any]] = []  # bodies, with the headers under `headers`
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path == "/v1/models" and server.protocol == "openai":
                    self.reply(200, {"data": [{"id": name} for name in server.models]})
                elif self.path == "/api/tags" and server.protocol == "ollama":
                    self.reply(200, {"models": [{"name": name} for name in server.models]})
                else:
                    self.reply(404, {"error": "no such path"})

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if self.path != {"openai": "/v1/embeddings", "ollama": "/api/embed"}[server.protocol]:
                    self.reply(404, {"error": "no such path"})
                    return
                server.requests.append(body | {"headers": dict(self.headers)})
                if server.answer:
                    self.reply(*server.answer(body["input"]))
                    return
                rows = [[float(number) for number in row] for row in server.embed(body["input"])]
                if server.protocol == "ollama":
                    self.reply(200, {"embeddings": rows})
                else:  # in any order: `index` says which is which
                    data = [{"index": index, "embedding": row} for index, row in enumerate(rows)]
                    self.reply(200, {"data": data[::-1]})

            def reply(self, status: int, body: Any) -> None:
                data = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: Any) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.port = self._http.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()

    def again(self) -> "EmbeddingServer":
        """The same server at the same port, after it was closed."""
        return EmbeddingServer(self.embed, self.protocol, self.models, self.port)


def minilm() -> Embed:
    """The vectors of kb's own model, longer than unit vectors, as some servers give them."""
    model = load(bundled_model_dir())
    return lambda texts: model.embed([text[:500] for text in texts]) * 3
