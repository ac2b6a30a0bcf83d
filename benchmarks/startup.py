"""What the command line costs before the engine gets to work, as a multiple of an empty Python.

`python -m benchmarks.startup` runs each command many times, turn by turn, so that a busy moment hits all alike, and
prints the medians and ratios. `kb search` talks to a server that answers at once with a stored answer: the engine's own
time is apart.
"""

import json
import os
import statistics
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ROUNDS = 41
HIT = {
    "chunk_id": 1, "document_id": 1, "uid": "u", "title": "Pensions", "filename": "a.md", "source_path": "/a.md",
    "doc_type": "markdown", "media_type": "text/markdown", "text": "They are revalued every April. " * 20, "score": 0.8,
    "tags": ["work"], "metadata": {}, "anchor": {"heading": "Pensions", "start": 0, "end": 600},
    "created_at": "2026-01-01T00:00:00Z", "updated_at": None, "version": 1,
}  # fmt: skip
ANSWER = {"query": "pensions", "mode": "hybrid", "results": [HIT] * 10, "total": 10, "took_ms": 1.0, "notice": None}
GOALS = {"kb --help": 5.0, "kb search": 6.5}


class Ready(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        body = json.dumps(ANSWER).encode()
        self.send_response(200)
        self.send_header("X-KB-Version", "3.0.0")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


def main() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Ready)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    kb = os.path.join(os.path.dirname(sys.executable), "kb")
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "kb --help": [kb, "--help"],
        "kb search": [kb, "search", "how are pensions revalued"],
    }
    environment = os.environ | {"KB_ENGINE_URL": f"http://127.0.0.1:{server.server_port}"}
    took: dict[str, list[float]] = {name: [] for name in commands}
    for number in range(ROUNDS + 1):
        for name, words in commands.items():
            started = time.perf_counter()
            subprocess.run(words, env=environment, check=True, stdout=subprocess.DEVNULL)
            if number:  # the first round fills the caches of the disk
                took[name].append(time.perf_counter() - started)
    server.shutdown()
    base = statistics.median(took["python -c pass"])
    print(f"Python {sys.version.split()[0]}, {ROUNDS} rounds, median")
    for name, times in took.items():
        ratio = statistics.median(times) / base
        goal = f"  (goal: at most {GOALS[name]})" if name in GOALS else ""
        print(f"{name:<15} {statistics.median(times) * 1000:7.1f} ms  {ratio:4.2f} x{goal}")


if __name__ == "__main__":
    main()
